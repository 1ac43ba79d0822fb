/** Builds a path from a template with ids. One that isn't an integer is left out: see hasIds. */
export function path(template: TemplateStringsArray, ...ids: number[]): string {
  return String.raw(template, ...ids.map((id) => (Number.isSafeInteger(id) ? id : "")));
}

/** Whether a path has all its ids. */
export function hasIds(path: string): boolean {
  return !/[/=]([/?&]|$)/.test(path);
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
