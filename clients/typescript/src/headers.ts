import type { RateLimit } from "./options.js";

/** Reads the three rate limit headers. */
export function readRateLimit(headers: Headers): RateLimit | undefined {
  const [limit, remaining, reset] = ["Limit", "Remaining", "Reset"].map((name) => headers.get("X-RateLimit-" + name) ?? "");
  if (!/^\d{1,15}$/.test(limit!) || !/^\d{1,15}$/.test(remaining!) || !/^-?\d{1,12}$/.test(reset!)) {
    return undefined;
  }
  return { limit: Number(limit), remaining: Number(remaining), reset: new Date(Number(reset) * 1000) };
}

const longestRetryAfter = 366 * 86_400_000;

/** Reads the Retry-After header, in seconds or as a date, into milliseconds. 0 if there is none. */
export function retryAfter(headers: Headers): number {
  const value = headers.get("Retry-After") ?? "";
  let wait = NaN;
  if (/^[+-]?\d+$/.test(value)) {
    wait = Number(value) * 1000;
  } else if (/GMT$/.test(value)) {
    // Both dates are from the same clock.
    const sent = Date.parse(headers.get("Date") ?? "");
    wait = Date.parse(value) - (Number.isNaN(sent) ? Date.now() : sent);
  }
  return Number.isNaN(wait) ? 0 : Math.min(Math.max(wait, 0), longestRetryAfter);
}

export function isJSON(headers: Headers): boolean {
  return /^application\/json\s*(;|$)/i.test(headers.get("Content-Type") ?? "");
}

/** Finds a link by its relation in Link headers (RFC 8288). "" if there is none. */
export function findLink(headers: Headers, relation: string): string {
  for (const [, target, params] of (headers.get("Link") ?? "").matchAll(/<([^>]*)>([^<]*)/g)) {
    for (const param of params!.split(";")) {
      const [name, value = ""] = param.split("=", 2);
      if (name!.trim().toLowerCase() !== "rel") {
        continue;
      }
      const relations = value.replace(/^[", ]+|[", ]+$/g, "").toLowerCase().split(/\s+/);
      if (relations.includes(relation)) {
        return target!;
      }
    }
  }
  return "";
}

/** The path of the next page, below /v1, or "" if there is none. Throws an Error that says what is wrong. */
export function nextLink(headers: Headers, base: URL): string {
  const target = findLink(headers, "next");
  if (target === "") {
    return "";
  }
  let url: URL;
  try {
    url = new URL(target, base);
    decodeURIComponent(url.pathname);
  } catch {
    throw new Error("its link to the next page is not a URL");
  }
  // A proxy may have rewritten the link, or may serve the API under a different path that
  // the service doesn't know about.
  if (url.origin !== base.origin) {
    throw new Error("its link to the next page leads to another host, which must not get the key");
  }
  for (const prefix of [base.pathname + "/", "/v1/"]) {
    if (url.pathname.startsWith(prefix)) {
      return url.pathname.slice(prefix.length - 1) + url.search;
    }
  }
  throw new Error("its link to the next page leads out of the API");
}
