// What makes the console a little nicer. Every page works without it.
"use strict";

const styles = {
	clock: { hour: "2-digit", minute: "2-digit" },
	short: { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" },
	full: { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" },
};

// Times in the reader's zone, with UTC at hand.
for (const time of document.querySelectorAll("time")) {
	const at = new Date(time.dateTime);
	time.title = at.toISOString();
	time.textContent = at.toLocaleString("en-GB", styles[time.dataset.style || "full"]);
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
