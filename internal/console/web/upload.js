// Photos are sent one by one, each with its progress, and again if that failed. Without this
// script, a form sends all of them at once.
"use strict";

{
	const form = document.querySelector("form[data-photos]");
	const input = form.querySelector("[type=file]");
	// Where photos are sent, and the page to open afterwards; neither is known for a new pet.
	let [photosAt, page] = form.dataset.wait === undefined ? [form.action, location.pathname] : [];

	const enable = () => form.querySelectorAll("button").forEach((button) => { button.disabled = false; });

	const say = (text) => {
		const status = form.querySelector("[role=status]");
		status.textContent = text;
		status.hidden = !text;
	};

	// send sends one photo. It returns why that failed, or "".
	const send = (photo) => new Promise((resolve) => {
		const body = new FormData();
		body.append("once", photo.once);
		body.append("photo", photo.file);
		const request = new XMLHttpRequest(); // fetch tells no progress
		request.upload.addEventListener("progress", ({ loaded, total }) => { [photo.bar.max, photo.bar.value] = [total, loaded]; });
		request.addEventListener("load", () => {
			let result = { problem: "It couldn’t be added." };
			try {
				result = JSON.parse(request.response);
			} catch {
				// it is a page, such as one for signing in
			}
			resolve(result.problem ?? "");
		});
		request.addEventListener("error", () => resolve("The connection was lost."));
		request.open("POST", photosAt);
		request.setRequestHeader("Accept", "application/json");
		request.send(body);
	});

	const show = (photos) => {
		const list = form.querySelector(".uploads");
		list.replaceChildren(...photos.map((photo) => {
			const row = document.createElement("li");
			photo.bar = Object.assign(document.createElement("progress"), { value: 0, max: photo.file.size, ariaLabel: photo.file.name });
			photo.problem = Object.assign(element("span", ""), { className: "wrong" });
			photo.again = Object.assign(element("button", "Retry"), { type: "button", className: "button small", hidden: true });
			photo.again.addEventListener("click", () => sendAll([photo], photos));
			row.append(element("bdi", photo.file.name), photo.bar, photo.problem, photo.again);
			return row;
		}));
		list.hidden = false;
	};

	const sendAll = async (some, photos) => {
		for (const photo of some) {
			say(`Sending photo ${photos.indexOf(photo) + 1} of ${photos.length}…`);
			photo.again.hidden = true;
			photo.problem.textContent = "";
			const problem = await send(photo);
			photo.done = !problem;
			photo.problem.textContent = problem;
			photo.again.hidden = photo.done;
			photo.again.ariaLabel = `Retry ${photo.file.name}`;
		}
		const added = photos.filter((photo) => photo.done).length;
		if (added === photos.length) {
			location.assign(page);
			return;
		}
		say("");
		const status = form.querySelector("[role=status]");
		status.append(`${added} of ${photos.length} photos added. `, link(page, "Show the pet"));
		status.hidden = false;
	};

	// add adds the pet of the form, without its photos. It reports whether that worked, and
	// else shows what is wrong.
	const add = async () => {
		const body = new FormData(form);
		body.delete("photo");
		const response = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json" } });
		if (response.headers.get("Content-Type") === "application/json") {
			({ photos: photosAt, page } = await response.json());
			return true;
		}
		const received = new DOMParser().parseFromString(await response.text(), "text/html");
		const fresh = received.querySelector("form[data-photos]");
		if (!fresh) {
			document.querySelector("main").replaceChildren(...received.querySelector("main").childNodes);
			return false;
		}
		fresh.querySelector("[type=file]").replaceWith(input); // it has the photos
		form.replaceChildren(...fresh.childNodes);
		form.parentElement.querySelectorAll(".notice").forEach((notice) => notice.remove());
		const notice = received.querySelector("main > .notice");
		if (notice) {
			form.before(notice);
		}
		(notice ?? form.querySelector("[aria-invalid]"))?.focus();
		return false;
	};

	form.addEventListener("submit", async (event) => {
		if (input.files.length === 0 && !photosAt) {
			return; // a form like any other
		}
		event.preventDefault();
		const once = form.querySelector("[name=once]").value;
		try {
			if (photosAt || await add()) {
				input.disabled = true;
				const photos = [...input.files].map((file, i) => ({ file, once: `${once}-${i}` }));
				show(photos);
				await sendAll(photos, photos);
				return;
			}
		} catch {
			say("The connection was lost. Send the form again: it takes effect once.");
		}
		enable();
	});
}
