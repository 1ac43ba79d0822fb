// One click marks all rows of the page, or none.
"use strict";

{
	const marks = [...document.querySelectorAll("input[name=mark]")];
	const all = document.querySelector("#all");
	const allMarked = () => marks.every((mark) => mark.checked);
	const update = () => { all.textContent = allMarked() ? "Unmark all" : "Mark all"; };
	all.addEventListener("click", (event) => {
		event.preventDefault();
		const checked = !allMarked();
		marks.forEach((mark) => { mark.checked = checked; });
		update();
	});
	marks.forEach((mark) => mark.addEventListener("change", update));
	addEventListener("pageshow", update); // browsers restore marks
}
