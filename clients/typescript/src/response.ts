import type { Failure, Success, Prepared } from "./call.js";
import { excerpt, NotModifiedError, RateLimitError, ResponseError, ServiceError, windowOf } from "./errors.js";
import { findNext, nextLink, paramOf, readRateLimit, retryAfter } from "./headers.js";
import type { Meta } from "./options.js";

/**
 * The maximum size of a response in bytes: somewhat more than the largest image, and many
 * times the size of the largest page.
 */
export const maxResponse = 16 << 20;

export function readMeta(response: Response | undefined, attempts: number): Meta {
  const headers = response?.headers ?? new Headers();
  const header = (name: string) => headers.get(name) ?? "";
  return {
    status: response?.status ?? 0,
    etag: header("ETag"),
    requestId: header("X-Request-Id"),
    replayed: header("Idempotent-Replayed") === "true",
    banLifted: header("Ban-Lifted") === "true",
    attempts,
    age: Number(header("Age")) || 0,
    nextCursor: paramOf(findNext(headers), "cursor") ?? "",
    rateLimit: readRateLimit(headers),
  };
}

export function isEventStream({ status, headers }: Response): boolean {
  return status === 200 && /^text\/event-stream\b/i.test(headers.get("Content-Type") ?? "");
}

/** Reads the response to a call. problem says why its content is incomplete. */
export async function readResponse<T>(k: Prepared<T>, response: Response, content: Blob, problem: string, base: URL, conceal: (text: string) => string): Promise<Success<T> | Failure> {
  const { status, headers } = response;
  const text = await content.text();
  const header = (name: string) => excerpt(conceal(headers.get(name) ?? ""));
  const contentType = header("Content-Type");
  const requestId = header("X-Request-Id");
  const after = retryAfter(headers);
  const unexpected = (message: string, retryable: boolean, unchanged: boolean, body = text): Failure => {
    // It may contain a new secret.
    const shown = k.repeat === "harmful" && status < 400 ? "" : excerpt(conceal(body));
    return { error: new ResponseError(message, k, { status, contentType, excerpt: shown }), status, code: "", retryable, unchanged, after };
  };
  const mediaType = contentType.replace(/\s*;.*/, "").toLowerCase();
  const isJSON = mediaType === "application/json";

  const read = (): Success<T> | Failure => {
    if (problem || content.size > maxResponse) {
      return unexpected(problem || "the body is larger than 16 MiB", !!problem, status >= 400 && status < 500);
    }
    // A browser doesn't show the target of a redirect.
    if (response.type === "opaqueredirect" || (status >= 300 && status < 400 && headers.has("Location"))) {
      const message = `redirect to "${header("Location")}" not followed, to keep the key private: is the base URL right?`;
      return unexpected(message, false, true, "");
    }
    return status >= 400 ? readError() : readSuccess();
  };

  const readError = (): Failure => {
    const { code, message } = (isJSON && parse(text)) || {};
    if (typeof code !== "string" || typeof message !== "string" || !code || !message) {
      // A 5xx is a problem between here and the service.
      return unexpected("the body is not an error from the service", status >= 500, status < 500);
    }
    const error = new ServiceError(conceal(message), k, { code, status, requestId });
    return { ...unexpected("", status === 503, status < 500 || unchangedCodes.includes(code)), error, code };
  };

  // A retry may get a good response if the body is incomplete, but a different kind of
  // response isn't from the service.
  const readSuccess = (): Success<T> | Failure => {
    if (status === 204 && !k.check) {
      return { value: undefined as T, next: "", requestId };
    }
    if (!k.check || !(k.accepted ? [202] : [200, 201]).includes(status)) {
      return unexpected("unexpected status", false, false);
    }
    if (k.image ? !mediaType.startsWith("image/") : !isJSON) {
      return unexpected(`the type is "${contentType}", not ${k.image ? "an image" : "JSON"}: is the base URL right?`, false, false);
    }
    const value = k.image ? content.slice(0, content.size, mediaType) : parse(text);
    if (!value || !k.check(value)) {
      return unexpected("the body is incomplete or unexpected", true, false);
    }
    try {
      return { value, next: nextLink(headers, base), requestId };
    } catch (error) {
      return unexpected(`the link to the next page is invalid: ${(error as Error).message}`, false, false);
    }
  };

  if (status === 304 && k.options.ifNoneMatch) {
    return { ...unexpected("", false, false), error: new NotModifiedError("not modified", k) };
  }
  const result = read();
  if (status !== 429) {
    return result;
  }
  const { code, error } = result as Failure;
  const { limit = 0, reset } = readRateLimit(headers) ?? {};
  const fields = { code: code || "rate_limit_exceeded", status, requestId, window: windowOf(code), limit, reset, retryAfter: after };
  return { ...(result as Failure), error: new RateLimitError(error.message, k, fields), retryable: true, unchanged: true };
}

/**
 * The codes of 503 that guarantee that nothing was changed. New codes count only once
 * they're listed here. The code unavailable isn't listed: PostgreSQL also returns it for a
 * change whose outcome is unknown.
 */
const unchangedCodes = ["storage_full", "overloaded", "shutting_down"];

/** Parses an object or array, or returns undefined. */
function parse(text: string): any {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" ? value : undefined;
  } catch {
    return undefined;
  }
}
