// Every page of the console works without this script.
"use strict";

const styles = {
	clock: { hour: "2-digit", minute: "2-digit" },
	time: { hour: "2-digit", minute: "2-digit", second: "2-digit" },
	short: { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" },
	full: { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" },
};

// Times in the reader's zone, with UTC at hand.
const localize = (time) => {
	const at = new Date(time.dateTime);
	time.title = at.toLocaleString("en-GB", { ...styles.full, timeZone: "UTC" });
	time.textContent = at.toLocaleString("en-GB", styles[time.dataset.style || "full"]);
	return time;
};
document.querySelectorAll("time").forEach(localize);

// Today is the reader's day, even if the page stays open overnight.
const today = document.querySelector("#today");
if (today) {
	const sinceMidnight = () => {
		today.href = `/console/events?${new URLSearchParams({ since: new Date(new Date().setHours(0, 0, 0, 0)).toISOString() })}`;
	};
	sinceMidnight();
	today.addEventListener("click", sinceMidnight);
}

// A list of choices shows only what begins with the text in its field: typing replaces it.
for (const field of document.querySelectorAll("input[list]")) {
	field.addEventListener("focus", () => field.select());
}

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

// Reloading the response to a form, or returning to it, must not send the form again.
const { here } = document.querySelector("main").dataset;
if (here) {
	history.replaceState(null, "", here);
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

// Events as they happen.
const element = (name, text) => Object.assign(document.createElement(name), { textContent: text });

const link = (path, text) => Object.assign(element("a", text), { href: path });

const cell = (...content) => {
	const td = document.createElement("td");
	td.append(...content);
	return td;
};

const pageOf = ({ subject, data }) => {
	const [kind, id] = subject.split("/");
	if (kind === "photo") {
		return `/console/photos/${id}/image?at=${Date.parse(data.createdAt)}`;
	}
	const pages = { pet: "pets", order: "orders", key: "keys", category: "categories", webhook: "webhooks" }[kind];
	return pages && `/console/${pages}/${id}`;
};

const feed = document.querySelector(".feed tbody");
const live = document.querySelector(".following");
const names = live ? JSON.parse(live.dataset.names) : {}; // of keys

// Days are the reader's, like times.
const groupByDay = () => {
	feed.querySelectorAll(".day").forEach((row) => row.remove());
	let last = "";
	for (const row of [...feed.rows]) {
		const day = new Date(row.querySelector("time").dateTime).toLocaleDateString("en-GB", { weekday: "long", day: "numeric", month: "long", year: "numeric" });
		if (day !== last) {
			const heading = document.createElement("tr");
			heading.className = "day";
			heading.append(Object.assign(element("th", day), { colSpan: 6, scope: "rowgroup" }));
			row.before(heading);
			last = day;
		}
	}
};
if (feed) {
	groupByDay();
}

// As in actors.go.
const who = ({ actor, keyId, requestId }) => {
	if (!keyId) {
		return cell({ key: "another key", command_line: "command line" }[actor] || "the service");
	}
	const by = names[keyId] || `key ${keyId}`;
	return cell(live.dataset.admin === undefined ? element("bdi", by) : link(`/console/keys/${keyId}`, by), " ", element("small", live.dataset.requests === undefined ? "" : requestId || ""));
};

const show = (event) => {
	const { data } = event;
	if (event.type.startsWith("key.")) {
		names[data.id] = data.name;
	}
	const summary = [
		data.petId && link(`/console/pets/${data.petId}`, `pet ${data.petId}`),
		data.width && element("bdi", `${data.width.toLocaleString("en")} × ${data.height.toLocaleString("en")}`),
		...[data.name, data.url, data.status, data.state, data.plan].filter(Boolean).map((part) => element("bdi", part)),
	].filter(Boolean).flatMap((part, i) => i ? [", ", part] : [part]);
	const details = Object.assign(document.createElement("div"), { className: "clamp" });
	details.append(...summary);
	const row = document.createElement("tr");
	const time = document.createElement("time");
	time.dateTime = event.time;
	time.dataset.style = "time";
	const removed = event.type.endsWith(".deleted");
	if (removed) { // older rows must no longer link to it
		[...feed.querySelectorAll("td:nth-child(3) a")].filter((a) => a.textContent === event.subject).forEach((a) => a.replaceWith(event.subject));
	}
	const page = removed ? "" : pageOf(event);
	row.append(cell(event.id), cell(event.type), cell(page ? link(page, event.subject) : event.subject), cell(details), cell(localize(time)), who(event));
	row.children[3].className = "name";
	row.children[4].dataset.label = "At";
	row.children[5].dataset.label = "By";
	row.className = "new";
	feed.prepend(row);
};

// A page that stays open for days must not grow forever: its oldest rows go.
const cut = (rows) => {
	const older = document.querySelector("main [rel=next]");
	if (feed.rows.length <= rows) {
		return;
	}
	while (feed.rows.length > rows) {
		feed.lastElementChild.remove();
	}
	if (older) {
		const { subject, types } = live.dataset;
		const at = new URL(older.getAttribute("href") || `/console/events?${new URLSearchParams({ type: types, subject })}`, location.href);
		at.searchParams.set("before", [...feed.querySelectorAll("tr:not(.day)")].at(-1).cells[0].textContent);
		older.href = at;
		older.hidden = false;
	}
};

if (live) {
	const { worker, types, subject } = live.dataset;
	const port = window.SharedWorker ? new SharedWorker(worker).port : new Worker(worker);
	let after = Number(live.dataset.after);
	const follow = () => port.postMessage(document.visibilityState === "visible" ? { after, types: types.split(","), subject } : null);
	port.onmessage = ({ data: { open, event } }) => {
		if (!event) {
			live.hidden = !open;
			return;
		}
		after = event.id;
		show(event);
		cut(300);
		groupByDay();
		feed.closest(".scroll").hidden = false;
		document.querySelector(".none").hidden = true;
	};
	document.addEventListener("visibilitychange", follow);
	addEventListener("pageshow", follow);
	addEventListener("pagehide", () => port.postMessage(null));
}
