// Files can be dropped on the section of their form, as well as chosen there.
"use strict";

{
	const form = document.querySelector(".drop");
	const area = form.closest("section") ?? form;
	const files = form.querySelector("[type=file]");
	const status = form.querySelector("[role=status]");

	const hasFiles = (event) => event.dataTransfer?.types.includes("Files");

	const mark = (over) => form.classList.toggle("over", over);

	// The server stops reading a form that is too large, so it couldn't say what is wrong.
	const max = Number(form.dataset.max ?? files.dataset.max);
	const left = Number(files.dataset.left ?? Infinity);
	const check = () => {
		const size = [...files.files].reduce((sum, file) => sum + file.size, 0);
		files.setCustomValidity(
			files.files.length > left ? `At most ${left} more photos are possible.` : size > max ? `At most ${max >> 20} MiB can be sent at once.` : "");
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
			if (form.dataset.wait === undefined) {
				form.requestSubmit();
			}
		}
	});

	form.querySelector("label[for=files] small").append(", or drop here");
	form.addEventListener("submit", () => {
		status.textContent = "Sending…";
		status.hidden = false;
	});
	addEventListener("pageshow", () => { status.hidden = true; });
}
