// Shows the API of the server that this page comes from.
"use strict";

(() => {
	const page = document.getElementById("docs");

	// The document does not know where it is served. Here that is known, and no
	// other server could be reached.
	const servers = [{ url: location.origin + "/v1", description: page.dataset.environment }];

	// Swagger UI sends the example of a parameter as its value. For one that may
	// be left out, that would make everybody's first list an empty one.
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
		validatorUrl: null, // by default it would ask a server on the internet
	});
})();
