// Photos can be dropped on their section of a page, as well as chosen in its form.
"use strict";

{
	const form = document.querySelector(".drop");
	const area = form.closest(".photos");
	const files = form.querySelector("[type=file]");
	const status = form.querySelector("[role=status]");

	const hasFiles = (event) => event.dataTransfer?.types.includes("Files");

	const mark = (over) => form.classList.toggle("over", over);

	// The server stops reading a form that is too large, so it couldn't say what is wrong.
	const check = () => {
		const size = [...files.files].reduce((sum, file) => sum + file.size, 0);
		files.setCustomValidity(size > form.dataset.max ? `These files are larger than ${form.dataset.max >> 20} MiB together: add fewer at once.` : "");
	};

	files.addEventListener("change", check);
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
			check();
			form.requestSubmit();
		}
	});

	form.querySelector("small").append(", or drop them here");
	form.addEventListener("submit", () => {
		const n = files.files.length;
		status.textContent = `Sending ${n === 1 ? "one photo" : `${n} photos`}…`;
		status.hidden = false;
	});
	addEventListener("pageshow", () => { status.hidden = true; });
}
