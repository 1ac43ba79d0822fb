import type { RateLimit } from "./options.js";

/** Reads the three rate limit headers. */
export function readRateLimit(headers: Headers): RateLimit | undefined {
  const [limit, remaining, reset] = ["Limit", "Remaining", "Reset"].map((name) => {
    const value = headers.get("X-RateLimit-" + name) ?? "";
    return /^\d{1,15}$/.test(value) ? Number(value) : NaN;
  }) as [number, number, number];
  return limit + remaining + reset >= 0 ? { limit, remaining, reset: new Date(reset * 1000) } : undefined;
}

const longestRetryAfter = 366 * 86_400_000;

/** Reads the seconds in the Retry-After header, into milliseconds. 0 if there are none. */
export function retryAfter(headers: Headers): number {
  const value = headers.get("Retry-After") ?? "";
  return /^\d+$/.test(value) ? Math.min(Number(value) * 1000, longestRetryAfter) : 0;
}

/** The link with the relation next in Link headers (RFC 8288), "" if there is none. */
export function findNext(headers: Headers): string {
  return /<([^>]*)>[^<]*;\s*rel\s*=\s*"?(?:[^";,<]*\s)?next(?:["\s,;]|$)/i.exec(headers.get("Link") ?? "")?.[1] ?? "";
}

/** A parameter in the query of a link. */
export function paramOf(link: string, name: string): string | null {
  return new URLSearchParams(link.split("?")[1]).get(name);
}

/** The path of the next page, below /v1, or "" if there is none. Throws an Error that says what is wrong with it. */
export function nextLink(headers: Headers, base: URL): string {
  const target = findNext(headers);
  if (target === "") {
    return "";
  }
  const url = new URL(target, base);
  decodeURIComponent(url.pathname);
  // A proxy may have rewritten the link, or may serve the API under a different path that
  // the service doesn't know about.
  for (const prefix of [base.pathname + "/", "/v1/"]) {
    if (url.origin === base.origin && url.pathname.startsWith(prefix)) {
      return url.pathname.slice(prefix.length - 1) + url.search;
    }
  }
  throw new Error("it leads outside the API, where the key must not be sent");
}
