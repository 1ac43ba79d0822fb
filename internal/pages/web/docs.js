// Shows the API of the server that serves this page.
"use strict";

(() => {
	const page = document.getElementById("docs");

	// The document doesn't contain the server's address. The page knows it, and its
	// content security policy allows no other server.
	const servers = [{ url: location.origin + "/v1", description: page.dataset.environment }];

	// Swagger UI sends a parameter's example as its value. With optional parameters,
	// the first list that people try would be empty.
	const leaveOut = (parameter) => {
		if (parameter.required || parameter.example === undefined) {
			return parameter;
		}
		const { example, ...rest } = parameter;
		const description = (rest.description || "").trim();
		return { ...rest, description: `${description} For example: \`${example}\`` };
	};

	const mapValues = (object, f) =>
		Object.fromEntries(Object.entries(object).map(([key, value]) => [key, f(value, key)]));

	const adapt = (spec) => ({
		...spec,
		servers,
		paths: mapValues(spec.paths, (path) =>
			mapValues(path, (operation) =>
				operation.parameters ? { ...operation, parameters: operation.parameters.map(leaveOut) } : operation)),
		components: { ...spec.components, parameters: mapValues(spec.components.parameters, leaveOut) },
	});

	SwaggerUIBundle({
		domNode: page,
		url: "/openapi.json",
		presets: [SwaggerUIBundle.presets.apis],
		plugins: [() => ({
			statePlugins: {
				spec: { wrapActions: { updateJsonSpec: (update) => (spec) => update(adapt(spec)) } },
			},
		})],
		layout: "BaseLayout",
		deepLinking: true,
		defaultModelsExpandDepth: 0,
		displayRequestDuration: true,
		tryItOutEnabled: true,
		validatorUrl: null, // the default is a server on the internet
	});
})();
