// Photos can be dropped on their section of a page, besides choosing them in its form.
"use strict";

{
	const form = document.querySelector(".drop");
	const area = form.closest(".photos");
	const files = form.querySelector("[type=file]");
	const says = form.querySelector("[role=status]");

	const hasFiles = (event) => event.dataTransfer?.types.includes("Files");

	const mark = (over) => form.classList.toggle("over", over);

	area.addEventListener("dragover", (event) => {
		if (hasFiles(event)) {
			event.preventDefault();
			mark(true);
		}
	});
	area.addEventListener("dragleave", (event) => {
		if (!area.contains(event.relatedTarget)) {
			mark(false);
		}
	});
	area.addEventListener("drop", (event) => {
		mark(false);
		if (hasFiles(event)) {
			event.preventDefault();
			files.files = event.dataTransfer.files;
			form.requestSubmit();
		}
	});

	form.querySelector("small").append(", or drop them here");
	form.addEventListener("submit", () => {
		const n = files.files.length;
		says.textContent = `Sending ${n === 1 ? "one photo" : `${n} photos`}…`;
		says.hidden = false;
	});
	addEventListener("pageshow", () => { says.hidden = true; });
}
