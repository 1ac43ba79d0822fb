/** Builds a path from a template with ids, which are escaped. */
export function path(template: TemplateStringsArray, ...ids: number[]): string {
  let path = template[0]!;
  ids.forEach((id, i) => {
    path += encodeURIComponent(id) + template[i + 1];
  });
  return path;
}

export type QueryValues = Record<string, string | number | number[] | undefined>;

/** Adds a query to a path. Values that are undefined or empty are left out. */
export function withQuery(path: string, values: QueryValues): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    const text = String(value ?? "");
    if (text !== "") {
      query.set(name, text);
    }
  }
  const text = query.toString();
  return text === "" ? path : path + "?" + text;
}
