// With this script, the file stays chosen between Check and Add, and Add shows its progress.
"use strict";

{
	const form = document.querySelector("#import");
	const result = document.querySelector("#result");
	const progress = form.querySelector(".progress");
	const [bar, label] = progress.children;

	// The response is the page, after a line with two numbers for each request of the API.
	const receive = async (response) => {
		const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
		let text = "";
		for (;;) {
			const { done, value } = await reader.read();
			if (done) {
				return text;
			}
			text += value;
			const last = text.split("<", 1)[0].match(/\d+ \d+\n/g)?.at(-1);
			if (last) {
				[bar.value, bar.max] = last.split(" ").map(Number);
				label.textContent = `${bar.value.toLocaleString("en")} of ${bar.max.toLocaleString("en")}`;
			}
		}
	};

	const show = (...content) => {
		result.replaceChildren(...content);
		result.querySelectorAll("time").forEach(localize);
		result.querySelectorAll(".countdown").forEach(countDown);
		result.querySelector("[tabindex]")?.focus();
	};

	form.addEventListener("submit", async (event) => {
		event.preventDefault();
		const add = event.submitter?.getAttribute("formaction"); // null: check
		const body = new FormData(form);
		result.replaceChildren();
		progress.hidden = !add;
		bar.removeAttribute("value");
		label.textContent = "";
		try {
			const response = await fetch(add ?? form.action, { method: "POST", body, headers: { Accept: "text/plain" } });
			const text = await receive(response);
			const page = new DOMParser().parseFromString(text.slice(text.indexOf("<")), "text/html");
			if (!page.querySelector("main")) {
				throw new Error("the page is cut off");
			}
			page.querySelectorAll("[autofocus]").forEach((e) => e.removeAttribute("autofocus")); // show does that
			show(...(page.querySelector("#result") ?? page.querySelector("main")).childNodes);
		} catch {
			const problem = element("p", `The connection was lost${label.textContent && ` after ${label.textContent} pets`}. To continue, send the same file again. No pet is added twice.`);
			show(Object.assign(problem, { className: "notice wrong", tabIndex: -1, role: "alert" }));
		}
		progress.hidden = true;
		form.querySelector("[role=status]").hidden = true;
		form.querySelectorAll("button").forEach((button) => { button.disabled = false; });
	});
}
