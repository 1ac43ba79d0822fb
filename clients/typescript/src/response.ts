import type { Failure, Outcome, Prepared } from "./call.js";
import { excerpt, NotModifiedError, RateLimitError, ResponseError, ServiceError, windowOf } from "./errors.js";
import { findLink, nextLink, readRateLimit, retryAfter } from "./headers.js";
import type { Meta } from "./options.js";

/** The maximum size of a response in bytes: several times the size of the largest page. */
const maxResponse = 8 << 20;

const tooLarge = "the body is larger than 8 MiB";

/** Reads the body of a response. It returns what is wrong with it, and the part before that. */
export async function readBody(response: Response): Promise<[text: string, problem?: string]> {
  let text = "";
  let size = 0;
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  try {
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true };
      if (done) {
        return [text + decoder.decode()];
      }
      size += value!.length;
      if (size > maxResponse) {
        void reader!.cancel().catch(() => {});
        return [text, tooLarge];
      }
      text += decoder.decode(value, { stream: true });
    }
  } catch {
    return [text, "reading the body failed"];
  }
}

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
    nextCursor: new URLSearchParams(findLink(headers, "next").split("?")[1]).get("cursor") ?? "",
    rateLimit: readRateLimit(headers),
  };
}

/** Reads the response to a call. problem says what is wrong with its body. */
export function readResponse(k: Prepared, response: Response, text: string, problem: string | undefined, base: URL, conceal: (text: string) => string): Outcome | Failure {
  const { status, headers } = response;
  const header = (name: string) => excerpt(conceal(headers.get(name) ?? ""));
  const contentType = header("Content-Type");
  const requestId = header("X-Request-Id");
  const after = retryAfter(headers);
  const unexpected = (message: string, retryable: boolean, unchanged: boolean, body = text): Failure => {
    // It may contain a new secret.
    const shown = k.repeat === "harmful" && status < 400 ? "" : excerpt(conceal(body));
    return { error: new ResponseError(message, k, { status, contentType, excerpt: shown }), status, code: "", retryable, unchanged, after };
  };
  const isJSON = /^application\/json\s*(;|$)/i.test(contentType);

  const read = (): Outcome | Failure => {
    if (problem) {
      return unexpected(problem, problem !== tooLarge, status >= 400 && status < 500);
    }
    // A browser doesn't show the target of a redirect.
    if (response.type === "opaqueredirect" || (status >= 300 && status < 400 && headers.has("Location"))) {
      const message = `a redirect to "${header("Location")}", where the key must not go: is the base URL right?`;
      return unexpected(message, false, true, "");
    }
    return status >= 400 ? readError() : readSuccess();
  };

  const readError = (): Failure => {
    const { code, message } = (isJSON && parse(text)) || {};
    if (typeof code !== "string" || typeof message !== "string" || !code || !message) {
      // A 5xx is a problem between here and the service.
      return unexpected("its body is not an error of the service", status >= 500, status < 500);
    }
    const error = new ServiceError(conceal(message), k, { code, status, requestId });
    return { error, status, code, retryable: status === 503, unchanged: status < 500 || unchangedCodes.includes(code), after };
  };

  // A retry may get a good response if the body is incomplete, but a different kind of
  // response isn't from the service.
  const readSuccess = (): Outcome | Failure => {
    if (status === 204 && !k.check) {
      return { value: undefined, next: "" };
    }
    if (!k.check || !(k.accepted ? [202] : [200, 201]).includes(status)) {
      return unexpected("the status is not the expected one", false, false);
    }
    if (!isJSON) {
      return unexpected(`its type is "${contentType}", not JSON: is the base URL right?`, false, false);
    }
    const value = parse(text);
    if (!value || !k.check(value)) {
      return unexpected("the body is incomplete or not the expected JSON", true, false);
    }
    try {
      return { value, next: nextLink(headers, base) };
    } catch (error) {
      return unexpected(`its link to the next page is wrong: ${(error as Error).message}`, false, false);
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
