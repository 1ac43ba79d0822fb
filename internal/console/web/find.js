// Suggestions for the search box, as a combobox:
// https://www.w3.org/WAI/ARIA/apg/patterns/combobox/. Without it, the box leads to a list.
"use strict";

{
	const set = (element, attributes) => {
		for (const [name, value] of Object.entries(attributes)) {
			element.setAttribute(name, value);
		}
		return element;
	};

	const make = (name, attributes, ...content) => {
		const element = set(document.createElement(name), attributes);
		element.append(...content);
		return element;
	};

	const box = document.querySelector("#find");
	const list = make("ul", { id: "matches", class: "matches", role: "listbox", "aria-label": "Matching pets", hidden: "" });
	const said = make("p", { class: "hidden", role: "status" });

	const pause = 250; // milliseconds without a key, before a request
	let allowed = 20; // requests of one page, because each is charged to the key
	const known = new Map(); // matches by text
	let timer;
	let request;
	let active = -1;

	const close = () => {
		list.hidden = true;
		active = -1;
		box.setAttribute("aria-expanded", "false");
		box.removeAttribute("aria-activedescendant");
		said.classList.replace("matches", "hidden");
	};

	const activate = (index) => {
		list.children[active]?.setAttribute("aria-selected", "false");
		active = index;
		list.children[active].setAttribute("aria-selected", "true");
		list.children[active].scrollIntoView({ block: "nearest" });
		box.setAttribute("aria-activedescendant", list.children[active].id);
	};

	const visit = (option) => { location.href = `/console/pets/${option.dataset.pet}`; };

	const optionFor = (pet, i) => {
		const face = pet.thumbnail
			? make("img", { class: "face", src: pet.thumbnail, alt: "", width: 40, height: 40 })
			: make("span", { class: `face tone${pet.tone}`, "aria-hidden": "true" }, make("bdi", {}, pet.initial ?? ""));
		const option = make("li", { id: `match-${i}`, role: "option", "aria-selected": "false", "data-pet": pet.id },
			face, make("span", { class: "clamp" }, named(pet.name), " ", make("small", {}, [pet.category, pet.id].filter(Boolean).join(" · "))), " ",
			make("span", { class: `tag ${pet.status}` }, pet.status));
		option.addEventListener("click", () => visit(option));
		return option;
	};

	const show = (pets, text) => {
		close();
		list.replaceChildren(...pets.map(optionFor));
		const wanted = text.replace(/^#\s*/, "");
		const none = `No name has a word that begins with “${wanted}”${/^\d+$/.test(wanted) ? `, and no pet has the id ${wanted}` : ""}.`;
		said.textContent = pets.length === 0 ? none : `${pets.length === 1 ? "One pet" : `${pets.length} pets`}. Choose with the arrow keys.`;
		said.classList.toggle("hidden", pets.length > 0);
		said.classList.toggle("matches", pets.length === 0);
		if (pets.length > 0) {
			list.hidden = false;
			box.setAttribute("aria-expanded", "true");
		}
	};

	const suggest = async (text) => {
		request?.abort();
		if (!known.has(text)) {
			if (allowed-- <= 0) {
				return;
			}
			request = new AbortController();
			try {
				const response = await fetch(`/console/find?${new URLSearchParams({ find: text })}`, { signal: request.signal, redirect: "error" });
				if (!response.ok) { // over the limit, for example: the list says why
					allowed = 0;
					return;
				}
				known.set(text, await response.json());
			} catch {
				return; // the text has changed, or the session has ended
			}
		}
		if (box.value.trim() === text && document.activeElement === box) {
			show(known.get(text), text);
		}
	};

	const type = () => {
		clearTimeout(timer);
		close();
		said.textContent = "";
		const text = box.value.trim();
		if (text.length > 1 || /^#?[0-9]+$/.test(text)) {
			timer = setTimeout(() => suggest(text), pause);
		}
	};

	const press = (event) => {
		if (list.hidden || event.isComposing) {
			return;
		}
		const last = list.children.length - 1;
		switch (event.key) {
		case "ArrowDown":
			activate(active < last ? active + 1 : 0);
			break;
		case "ArrowUp":
			activate(active > 0 ? active - 1 : last);
			break;
		case "Escape":
			close();
			break;
		default:
			return;
		}
		event.preventDefault();
	};

	const submit = (event) => { // with Enter
		if (active >= 0) {
			event.preventDefault();
			visit(list.children[active]);
		}
	};

	if (box) {
		set(box, { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id });
		box.after(list, said);
		box.addEventListener("input", type);
		box.addEventListener("keydown", press);
		box.addEventListener("blur", close);
		box.form.addEventListener("submit", submit);
		list.addEventListener("mousedown", (event) => event.preventDefault()); // the box keeps the focus
	}
}
