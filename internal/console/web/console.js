// Every page of the console works without this script.
"use strict";

const styles = {
	time: { hour: "2-digit", minute: "2-digit" },
	day: { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" },
	full: { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" },
};

// Times in the reader's zone. The full time is shown on hover, also in UTC.
const localize = (time) => {
	const at = new Date(time.dateTime);
	const write = (style) => at.toLocaleString("en-GB", style);
	time.title = [...new Set([write(styles.full), write({ ...styles.full, timeZone: "UTC" })])].join("\n");
	const { style } = time.dataset;
	if (style !== "age") {
		const thisYear = style !== "day" || at.getFullYear() === new Date().getFullYear();
		time.textContent = write(thisYear ? styles[style] : { ...styles.day, year: "numeric" });
	}
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
const countDown = (element) => {
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
};
document.querySelectorAll(".countdown").forEach(countDown);

// Reloading the response to a form, or returning to it, must not send the form again.
const { here } = document.querySelector("main").dataset;
if (here) {
	history.replaceState(null, "", here);
}

// A preset ticks its permissions in the form, and keeps what was typed.
for (const preset of document.querySelectorAll("[data-permissions]")) {
	preset.addEventListener("click", (event) => {
		event.preventDefault();
		const permissions = preset.dataset.permissions.split(",");
		for (const box of document.querySelectorAll("[name=permission]")) {
			box.checked = permissions.includes(box.value);
		}
	});
}

// Only the enterprise plan takes limits.
const limits = document.querySelector("#limits");
if (limits) {
	const plan = document.querySelector("#plan");
	const update = () => { limits.hidden = limits.disabled = plan.value !== "enterprise"; };
	plan.addEventListener("change", update);
	addEventListener("pageshow", update); // browsers restore choices
	update();
}

// While the server doesn't respond, because it restarts or the network is gone, a page stays
// with what was typed, and its form is sent once the server is back. Links lose nothing:
// browsers try them again themselves.
const waiting = Object.assign(document.createElement("p"), {
	className: "notice wrong", role: "alert", tabIndex: -1,
	textContent: "The server doesn’t respond. This page stays as it is, and the form is sent once the server is back.",
});

const responds = async () => {
	try {
		const { status } = await fetch("/livez", { cache: "no-store", signal: AbortSignal.timeout(10000) });
		return ![502, 503, 504].includes(status); // of a proxy
	} catch {
		return false;
	}
};

const untilItResponds = async () => {
	while (!await responds()) {
		if (!waiting.isConnected) {
			document.querySelector("main").prepend(waiting);
			waiting.focus();
		}
		await new Promise((resolve) => { setTimeout(resolve, 1000); });
	}
	waiting.remove();
};

// A second click sends nothing while a form is on its way.
let sending;

document.addEventListener("submit", async (event) => {
	const { target: form, submitter: button } = event;
	if (form.method !== "post" || event.defaultPrevented || sending?.now) { // nothing is lost, another script sends it, or it is sent now
		return;
	}
	event.preventDefault();
	if (sending) {
		return;
	}
	sending = { button, text: button?.textContent };
	if (button) {
		button.textContent = button.dataset.busy ?? "Saving…";
	}
	await untilItResponds();
	sending.now = true;
	form.requestSubmit(button);
	sending.now = false;
});

addEventListener("pageshow", () => { // back from the next page
	if (sending?.button) {
		sending.button.textContent = sending.text;
	}
	sending = undefined;
});

// Events as they happen.
const element = (name, text) => Object.assign(document.createElement(name), { textContent: text });

// As in names.go.
const named = (name) => /[\p{L}\p{M}\p{N}\p{P}\p{S}]/u.test(name.replace(/[\p{Default_Ignorable_Code_Point}\u2800]/gu, ""))
	? element("bdi", name) : element("em", "no visible character");

const link = (path, content) => {
	const a = Object.assign(document.createElement("a"), { href: path });
	a.append(content);
	return a;
};

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
const titles = live ? JSON.parse(live.dataset.titles) : {}; // of types

// Days are the reader's, like times.
const groupByDay = () => {
	feed.querySelectorAll(".day").forEach((row) => row.remove());
	let last = "";
	for (const row of [...feed.rows]) {
		const day = new Date(row.querySelector("time").dateTime).toLocaleDateString("en-GB", { weekday: "long", day: "numeric", month: "long", year: "numeric" });
		if (day !== last) {
			const heading = document.createElement("tr");
			heading.className = "day";
			heading.append(Object.assign(element("th", day), { colSpan: 5, scope: "rowgroup" }));
			row.before(heading);
			last = day;
		}
	}
};
if (feed) {
	groupByDay();
}

// As in history.go.
const who = ({ actor, keyId, keyName, requestId }) => {
	if (!keyId) {
		return cell({ key: "another key", command_line: "command line" }[actor] || "the service");
	}
	const by = keyName ?? `key ${keyId}`;
	return cell(live.dataset.admin === undefined ? named(by) : link(`/console/keys/${keyId}`, named(by)), " ", element("small", live.dataset.requests === undefined ? "" : requestId || ""));
};

const gone = new Set(); // pages of what was removed

const show = (event) => {
	const { data } = event;
	const removed = event.type.endsWith(".deleted");
	const page = pageOf(event);
	if (removed) { // older rows must no longer link to it
		gone.add(page);
		[...feed.querySelectorAll("a")].filter((a) => a.getAttribute("href") === page).forEach((a) => a.replaceWith(a.textContent));
	}
	const summary = [
		data.petId && (gone.has(`/console/pets/${data.petId}`) ? element("bdi", `pet ${data.petId}`) : link(`/console/pets/${data.petId}`, `pet ${data.petId}`)),
		data.width && element("bdi", `${data.width.toLocaleString("en")} × ${data.height.toLocaleString("en")}`),
		...[data.name, data.url, data.status, data.state, data.plan].filter(Boolean).map(named),
	].filter(Boolean).flatMap((part, i) => i ? [", ", part] : [part]);
	const details = Object.assign(document.createElement("div"), { className: "clamp" });
	details.append(...summary);
	const row = document.createElement("tr");
	const time = document.createElement("time");
	time.dateTime = event.time;
	time.dataset.style = "time";
	const name = event.subject.replace("/", " ");
	row.append(cell(titles[event.type] || event.type), cell(page && !removed ? Object.assign(link(page, name), { className: "whole" }) : name), cell(details), cell(localize(time)), who(event));
	row.dataset.id = event.id;
	row.children[0].title = event.type;
	row.children[2].className = "name";
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
		const { subject, types, pet = "" } = live.dataset;
		const at = new URL(older.getAttribute("href") || `/console/events?${new URLSearchParams({ type: types, subject, pet })}`, location.href);
		at.searchParams.set("before", [...feed.querySelectorAll("tr:not(.day)")].at(-1).dataset.id);
		older.href = at;
		older.hidden = false;
	}
};

if (live) {
	const { worker, types, subject, pet } = live.dataset;
	const matches = (event) => subject ? event.subject === subject : !pet || event.subject === `pet/${pet}` || String(event.data.petId) === pet;
	const port = window.SharedWorker ? new SharedWorker(worker).port : new Worker(worker);
	let after = Number(live.dataset.after);
	const follow = () => port.postMessage(document.visibilityState === "visible" ? { after, types: types.split(",") } : null);
	port.onmessage = ({ data: { open, event } }) => {
		if (!event) {
			live.hidden = !open;
			return;
		}
		after = event.id;
		if (!matches(event)) {
			return;
		}
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
