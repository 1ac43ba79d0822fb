// What makes the console a little nicer. Every page works without it.
"use strict";

const styles = {
	clock: { hour: "2-digit", minute: "2-digit" },
	short: { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" },
	full: { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" },
};

// Times in the reader's zone, with UTC at hand.
const localize = (time) => {
	const at = new Date(time.dateTime);
	time.title = at.toISOString();
	time.textContent = at.toLocaleString("en-GB", styles[time.dataset.style || "full"]);
	return time;
};
document.querySelectorAll("time").forEach(localize);

// How long until a limit ends.
for (const element of document.querySelectorAll(".countdown")) {
	const until = Date.now() + parseInt(element.dataset.seconds, 10) * 1000;
	const tick = () => {
		const left = Math.max(0, Math.ceil((until - Date.now()) / 1000));
		element.textContent = left > 3600
			? `${Math.floor(left / 3600)} h ${Math.floor(left % 3600 / 60)} min`
			: left > 60 ? `${Math.floor(left / 60)} min ${left % 60} s` : `${left} s`;
		if (left > 0) {
			setTimeout(tick, 1000);
		}
	};
	tick();
}

// A second click must not send a form again while the first is on its way.
for (const form of document.querySelectorAll("form[method=post]")) {
	form.addEventListener("submit", () => {
		for (const button of form.querySelectorAll("button")) {
			button.disabled = true;
		}
	});
}

addEventListener("pageshow", () => { // back from the next page
	for (const button of document.querySelectorAll("form[method=post] button")) {
		button.disabled = false;
	}
});

// Events as they happen. The browser connects again by itself, and goes on after the
// last event it knows.
const types = ["pet.created", "pet.updated", "pet.deleted", "order.created", "order.updated", "category.updated",
	"key.created", "key.updated", "key.rotated", "key.revoked", "key.banned", "key.unbanned",
	"webhook.created", "webhook.updated", "webhook.deleted", "webhook.disabled"];

const element = (name, text) => Object.assign(document.createElement(name), { textContent: text });

const link = (path, text) => Object.assign(element("a", text), { href: path });

const cell = (...content) => {
	const td = document.createElement("td");
	td.append(...content);
	return td;
};

const pageOf = (subject) => {
	const [kind, id] = subject.split("/");
	return { pet: "/console/pets/", order: "/console/orders/", key: "/console/keys/", category: "/console/categories/" }[kind] + id;
};

const show = (event, who) => {
	const { data } = event;
	const summary = [data.petId && `pet ${data.petId}`, data.name, data.url, data.status, data.state, data.plan].filter(Boolean)
		.flatMap((part, i) => i ? [", ", element("bdi", part)] : [element("bdi", part)]);
	const row = document.createElement("tr");
	const time = localize(Object.assign(document.createElement("time"), { dateTime: event.time }));
	const linked = event.type !== "pet.deleted" && !event.type.startsWith("webhook");
	row.append(cell(event.id), cell(event.type), cell(linked ? link(pageOf(event.subject), event.subject) : event.subject), cell(...summary), cell(time));
	row.children[3].className = "name";
	row.children[4].dataset.label = "At";
	if (who) {
		row.append(event.keyId ? cell(link(`/console/keys/${event.keyId}`, `key ${event.keyId}`), " ", element("small", event.requestId || "")) : cell(element("small", "command line")));
		row.children[5].dataset.label = "By";
	}
	row.className = "new";
	return row;
};

const live = document.querySelector("[data-stream]");
if (live) {
	const body = document.querySelector(".feed tbody");
	const who = document.querySelectorAll(".feed thead th").length > 5;
	const stream = new EventSource(live.dataset.stream);
	stream.addEventListener("open", () => { live.hidden = false; });
	stream.addEventListener("error", () => { live.hidden = true; });
	for (const type of types) {
		stream.addEventListener(type, (message) => {
			body.prepend(show(JSON.parse(message.data), who));
			body.closest(".scroll").hidden = false;
			document.querySelector(".empty").hidden = true;
			while (body.children.length > 100) {
				body.lastElementChild.remove();
			}
		});
	}
	addEventListener("pagehide", () => stream.close());
}
