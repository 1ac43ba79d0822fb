// Makes the reference interactive: the key, the search, the choice of a language,
// examples that show the reader's input, and sending requests.
"use strict";

(() => {
	const all = (selector, within = document) => [...within.querySelectorAll(selector)];
	const operations = all(".operation");

	// The key is kept only as long as the tab, so it isn't in localStorage.
	const key = document.getElementById("key");
	key.value = sessionStorage.getItem("key") ?? "";
	key.addEventListener("input", () => sessionStorage.setItem("key", key.value.trim()));
	document.getElementById("key-form").addEventListener("submit", (event) => event.preventDefault());

	// Snippets show the address of the server that this page comes from.
	const atThisServer = (text) => text.replaceAll("http://127.0.0.1:8080", location.origin);
	for (const code of all(".snippets code")) {
		code.textContent = atThisServer(code.textContent);
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
	const passages = document.getElementById("passages");
	const fillers = filter.dataset.fillers.split(" ");
	// As in search.go: entries about what is looked for or, if there are none, those that
	// mention it.
	const applyFilter = () => {
		const given = filter.value.toLowerCase().split(/\s+/).filter(Boolean).map((word) => word.length > 3 ? word.replace(/s$/, "") : word);
		const telling = given.filter((word) => !fillers.includes(word));
		const words = telling.length > 0 ? telling : given;
		const has = (text) => words.every((word) => text.includes(word));
		const matches = (entry) => has(entry.dataset.search);
		const found = operations.some(matches) ? matches : (operation) => has(operation.textContent.toLowerCase());
		for (const operation of operations) {
			operation.hidden = !found(operation);
		}
		for (const group of all(".group")) {
			group.hidden = all(".operation:not([hidden])", group).length === 0;
		}
		for (const passage of all("li", passages)) {
			passage.hidden = words.length === 0 || !matches(passage);
		}
		passages.hidden = all("li:not([hidden])", passages).length === 0;
		nothing.hidden = !passages.hidden || operations.some((operation) => !operation.hidden);
	};
	const clearFilter = () => {
		filter.value = "";
		applyFilter();
	};
	filter.addEventListener("input", applyFilter);
	filter.form.addEventListener("submit", (event) => event.preventDefault());
	filter.form.querySelector("button").hidden = true; // it searches while you type
	nothing.querySelector("button").addEventListener("click", () => {
		clearFilter();
		filter.focus();
	});
	// An address such as /docs#listPets opens the operation, and opening an operation
	// sets the address.
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

	// entered returns the content of the form, without empty fields.
	const entered = (form) => {
		let path = form.dataset.path;
		const query = new URLSearchParams();
		const headers = []; // not Headers, which refuses some values
		for (const field of all("[data-in]", form)) {
			const value = field.value.trim();
			if (value === "") {
				continue;
			}
			if (field.dataset.in === "path") {
				path = path.replace(`{${field.name}}`, () => encodeURIComponent(value));
			} else if (field.dataset.in === "query") {
				query.set(field.name, value);
			} else {
				headers.push([field.name, value]);
			}
		}
		return { path, query, headers, suffix: query.size > 0 ? `?${query}` : "" };
	};

	const requestOf = (form) => {
		const { path, headers: fields, suffix } = entered(form);
		const headers = new Headers(fields);
		if (key.value.trim() !== "") {
			headers.set("Authorization", `Bearer ${key.value.trim()}`);
		}
		const file = form.elements.body?.files?.[0];
		const body = file ?? (form.elements.body?.value.trim() || undefined);
		if (body !== undefined) {
			headers.set("Content-Type", file?.type ?? "application/json");
		}
		return new Request(`/v1${path}${suffix}`, { method: form.dataset.method, headers, body, cache: "no-store", credentials: "omit" });
	};

	// How each language writes a header, and a body in quotes.
	const languages = {
		curl: {
			header: (name, value) => `  -H '${`${name}: ${value}`.replaceAll("'", "'\\''")}' \\\n`,
			body: (body) => body.replaceAll("'", "'\\''"),
		},
		js: {
			header: (name, value) => `    ${JSON.stringify(name)}: ${JSON.stringify(value)},\n`,
			body: (body) => body,
		},
	};

	// Examples show the reader's input. An empty id is shown as in the document. The
	// examples with our clients are written by hand, so only their ids change.
	const followForm = (form) => {
		const snippets = form.closest(".operation").querySelector(".snippets");
		const sample = atThisServer(snippets.dataset.address);
		const samplePath = new URL(sample).pathname.split("/");
		const { path, headers, suffix } = entered(form);
		const changed = suffix !== "" || all("[data-in=query]", form).some((field) => field.dataset.touched);
		const filled = `/v1${path}`.split("/").map((part, i) => part.startsWith("{") ? samplePath[i] : part);
		const address = location.origin + filled.join("/") + (changed ? suffix : new URL(sample).search);
		const body = form.querySelector("textarea")?.value.trim().replace(/\s*\n\s*/g, " ");
		for (const figure of all("figure", snippets)) {
			const code = figure.querySelector("code");
			figure.sample ??= code.textContent;
			const language = languages[figure.classList[1]];
			let text = figure.sample;
			if (language === undefined) {
				filled.forEach((part, i) => {
					if (part !== samplePath[i]) {
						text = text.replaceAll(new RegExp(`\\b${samplePath[i]}\\b`, "g"), () => part);
					}
				});
				const rest = changed || headers.length > 0 || (body ?? "") !== (snippets.dataset.body ?? "");
				const comment = figure.classList.contains("python") ? "#" : "//";
				code.textContent = text + (rest ? `\n${comment} Only the ids in this example change with your input.` : "");
				continue;
			}
			text = text.replace(sample, () => address);
			if (body !== undefined) {
				text = text.replace(language.body(snippets.dataset.body), () => language.body(body));
			}
			const lines = headers.map(([name, value]) => language.header(name, value)).join("");
			code.textContent = text.replace(/^.*Authorization/m, (line) => lines + line);
		}
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

	const showResponse = async (form, result, request, response, started) => {
		const type = response.headers.get("Content-Type") ?? "";
		const content = await response.arrayBuffer();
		const text = type.startsWith("image/") ? `(${type}, ${content.byteLength} bytes)` : new TextDecoder().decode(content);
		const took = Math.round(performance.now() - started);
		const line = element("p", "outcome", "");
		line.append(element("span", `status s${String(response.status)[0]}`, response.status), ` ${request.method} ${new URL(request.url).pathname}, ${took} ms`);
		const headers = element("details", "headers", "");
		headers.append(element("summary", "", "Headers"), element("pre", "", [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n")));
		const body = element("pre", "body", type.startsWith("image/") ? text : indent(text) || "(no body)");
		body.tabIndex = 0;
		result.replaceChildren(element("h3", "", "Response"), line, body, headers);
		const next = /<([^>]*)>; rel="next"/.exec(response.headers.get("Link") ?? "");
		if (next !== null) {
			const button = element("button", "button", "Next page");
			button.type = "button";
			button.addEventListener("click", () => followLink(form, new URL(next[1], location)));
			body.after(button);
		}
	};

	// followLink sends the request that a link leads to.
	const followLink = (form, link) => {
		for (const field of all("[data-in=query]", form)) {
			field.value = link.searchParams.get(field.name) ?? "";
		}
		followForm(form);
		form.requestSubmit();
	};

	// agreed asks for confirmation before a request that removes or revokes something,
	// and names the deployment. It doesn't wait for the dialog's event "close": on a busy
	// machine that comes late, and the button that asked would stay disabled.
	const dialog = document.getElementById("confirm");
	let answer = () => {};
	for (const button of all("button", dialog)) {
		button.addEventListener("click", () => {
			dialog.close();
			answer(button.value === "send");
		});
	}
	dialog.addEventListener("cancel", () => answer(false)); // the Escape key
	const agreed = (form, request) => {
		if (form.dataset.asks === undefined) {
			return true;
		}
		const deployment = document.querySelector(".environment").textContent;
		dialog.querySelector("h2").textContent = `${form.dataset.asks} in ${deployment}?`;
		dialog.querySelector("p").textContent = `${request.method} ${request.url}. This can’t be undone.`;
		dialog.showModal();
		return new Promise((resolve) => {
			answer = resolve;
		});
	};

	for (const form of all("form.try")) {
		form.addEventListener("input", (event) => {
			event.target.dataset.touched = "yes";
			followForm(form);
		});
		form.addEventListener("submit", async (event) => {
			event.preventDefault();
			const result = form.closest(".operation").querySelector(".result");
			const button = form.querySelector("[type=submit]");
			button.disabled = true;
			try {
				const request = requestOf(form);
				if (!await agreed(form, request)) {
					button.disabled = false;
					return;
				}
				const started = performance.now();
				await showResponse(form, result, request, await fetch(request), started);
			} catch (error) {
				result.replaceChildren(element("p", "outcome failed", `The request failed: ${error.message}`));
			}
			button.disabled = false;
			result.hidden = false;
			result.scrollIntoView({ block: "nearest" });
		});
	}
})();
