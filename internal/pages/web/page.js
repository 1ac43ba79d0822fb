// Adds a button to every code block that copies its text.
"use strict";

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
