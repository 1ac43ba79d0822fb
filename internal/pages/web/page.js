// Adds a button to every code block that copies its text, and a key to search.
"use strict";

document.addEventListener("keydown", (event) => {
	const search = document.querySelector("#filter");
	if (search && event.key === "/" && !event.target.matches("input, textarea, select")) {
		event.preventDefault();
		search.focus();
	}
});

for (const block of document.querySelectorAll("figure.block:not(.output)")) {
	const button = document.createElement("button");
	button.type = "button";
	button.className = "copy";
	button.textContent = "Copy";
	button.addEventListener("click", async () => {
		const code = block.querySelector("code");
		try {
			await navigator.clipboard.writeText(code.textContent.trimEnd());
			button.textContent = "Copied";
		} catch { // only pages on HTTPS or localhost have a clipboard
			getSelection().selectAllChildren(code);
			button.textContent = "Selected";
		}
		setTimeout(() => { button.textContent = "Copy"; }, 2000);
	});
	block.append(button);
}
