// Makes the reference interactive: the key, the filter, the choice of a language,
// and sending requests.
"use strict";

(() => {
	const all = (selector, within = document) => [...within.querySelectorAll(selector)];
	const operations = all(".operation");

	// The key lives as long as the tab, and no longer: not in localStorage.
	const key = document.getElementById("key");
	key.value = sessionStorage.getItem("key") ?? "";
	key.addEventListener("input", () => sessionStorage.setItem("key", key.value.trim()));
	document.getElementById("key-form").addEventListener("submit", (event) => event.preventDefault());

	// Snippets show the address of the server that this page comes from.
	for (const code of all(".snippets code")) {
		code.textContent = code.textContent.replaceAll("http://127.0.0.1:8080", location.origin);
	}

	const chooseLanguage = (language) => {
		for (const radio of all(`.snippets input[value="${CSS.escape(language)}"]`)) {
			radio.checked = true;
		}
	};
	chooseLanguage(sessionStorage.getItem("language") ?? "curl");
	document.addEventListener("change", (event) => {
		if (event.target.matches(".snippets input")) {
			sessionStorage.setItem("language", event.target.value);
			chooseLanguage(event.target.value);
		}
	});

	const filter = document.getElementById("filter");
	const nothing = document.getElementById("nothing");
	const applyFilter = () => {
		const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
		for (const operation of operations) {
			operation.hidden = !words.every((word) => operation.dataset.search.includes(word));
		}
		for (const group of all(".group")) {
			group.hidden = all(".operation:not([hidden])", group).length === 0;
		}
		nothing.hidden = operations.some((operation) => !operation.hidden);
	};
	const clearFilter = () => {
		filter.value = "";
		applyFilter();
	};
	filter.addEventListener("input", applyFilter);
	nothing.querySelector("button").addEventListener("click", () => {
		clearFilter();
		filter.focus();
	});
	document.addEventListener("keydown", (event) => {
		if (event.key === "/" && !event.target.matches("input, textarea, select")) {
			event.preventDefault();
			filter.focus();
		}
	});

	// An address such as /docs#listPets opens the operation, and an opened one gets
	// such an address.
	const openFromAddress = () => {
		const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
		if (target?.matches(".operation, .group")) {
			clearFilter();
			target.open = true;
			target.scrollIntoView();
		}
	};
	addEventListener("hashchange", openFromAddress);
	openFromAddress();
	for (const operation of operations) {
		operation.addEventListener("toggle", () => {
			if (operation.open) {
				history.replaceState(null, "", "#" + operation.id);
			}
		});
	}

	// What is sent is what the form says. Fields that are empty are left out.
	const requestOf = (form) => {
		let path = form.dataset.path;
		const query = new URLSearchParams();
		const headers = new Headers();
		for (const field of all("[data-in]", form)) {
			if (field.value === "") {
				continue;
			}
			if (field.dataset.in === "path") {
				path = path.replace(`{${field.name}}`, encodeURIComponent(field.value));
			} else if (field.dataset.in === "query") {
				query.set(field.name, field.value);
			} else {
				headers.set(field.name, field.value);
			}
		}
		if (key.value.trim() !== "") {
			headers.set("Authorization", `Bearer ${key.value.trim()}`);
		}
		const body = form.elements.body?.value.trim() || undefined;
		if (body !== undefined) {
			headers.set("Content-Type", "application/json");
		}
		const suffix = query.size > 0 ? `?${query}` : "";
		return new Request(`/v1${path}${suffix}`, { method: form.dataset.method, headers, body, cache: "no-store", credentials: "omit" });
	};

	const element = (name, className, text) => {
		const made = document.createElement(name);
		made.className = className;
		made.textContent = text;
		return made;
	};

	// indent formats JSON without parsing it, which would round large integers.
	const indent = (json) => {
		let depth = 0;
		const newline = () => "\n" + "  ".repeat(depth);
		return json.replace(/"(?:[^"\\]|\\.)*"|[{[]\s*[}\]]|[{}[\],:]|\s+/g, (token) => {
			switch (token[0]) {
			case "{":
			case "[":
				return token.length > 1 ? token : (depth++, token + newline());
			case "}":
			case "]":
				depth--;
				return newline() + token;
			case ",":
				return token + newline();
			case ":":
				return ": ";
			case '"':
				return token;
			default:
				return ""; // white space
			}
		});
	};

	const showResponse = async (result, request, response, started) => {
		const text = await response.text();
		const took = Math.round(performance.now() - started);
		const line = element("p", "outcome", "");
		line.append(element("span", `status s${String(response.status)[0]}`, response.status), ` ${request.method} ${new URL(request.url).pathname}, ${took} ms`);
		const headers = element("details", "headers", "");
		headers.append(element("summary", "", "Headers"), element("pre", "", [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n")));
		const body = element("pre", "body", indent(text) || "(no body)");
		body.tabIndex = 0;
		result.replaceChildren(element("h3", "", "Response"), line, body, headers);
	};

	for (const form of all("form.try")) {
		form.addEventListener("submit", async (event) => {
			event.preventDefault();
			const result = form.closest(".operation").querySelector(".result");
			const button = form.querySelector("[type=submit]");
			button.disabled = true;
			const started = performance.now();
			try {
				const request = requestOf(form);
				await showResponse(result, request, await fetch(request), started);
			} catch (error) {
				result.replaceChildren(element("p", "outcome failed", `The request failed: ${error.message}`));
			}
			button.disabled = false;
			result.hidden = false;
			result.scrollIntoView({ block: "nearest" });
		});
	}
})();
