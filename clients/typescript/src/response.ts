import { noMeta, type Failure, type Outcome, type Prepared } from "./call.js";
import { excerpt, NotModifiedError, RateLimitError, ResponseError, ServiceError, windowOf, type AnimalStoreError } from "./errors.js";
import { findLink, isJSON, nextLink, readRateLimit, retryAfter } from "./headers.js";
import type { Meta } from "./options.js";

/** The maximum size of a response in bytes: several times the size of the largest page. */
const maxResponse = 8 << 20;

class TooLarge extends Error {}

/** Reads the body of a response. With an error, it's the part before it. */
export async function readBody(response: Response): Promise<{ text: string; error?: unknown }> {
  let text = "";
  const reader = response.body?.getReader();
  if (reader === undefined) {
    return { text };
  }
  const decoder = new TextDecoder();
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return { text: text + decoder.decode() };
      }
      size += value.length;
      if (size > maxResponse) {
        void reader.cancel().catch(() => {});
        return { text, error: new TooLarge(`the body is larger than ${maxResponse >> 20} MiB`) };
      }
      text += decoder.decode(value, { stream: true });
    }
  } catch (error) {
    return { text, error };
  }
}

/** What is wrong with a body, in words. */
export function bodyProblem(error: unknown): string {
  return error instanceof TooLarge ? error.message : "reading the body failed";
}

export function readMeta(response: Response, attempts: number): Meta {
  const h = response.headers;
  const [, query = ""] = findLink(h, "next").split("?", 2);
  return {
    ...noMeta,
    status: response.status,
    etag: h.get("ETag") ?? "",
    requestId: h.get("X-Request-Id") ?? "",
    replayed: h.get("Idempotent-Replayed") === "true",
    banLifted: h.get("Ban-Lifted") === "true",
    attempts,
    nextCursor: new URLSearchParams(query).get("cursor") ?? "",
    rateLimit: readRateLimit(h),
  };
}

type Conceal = (text: string) => string;

/** Reads the response to a call. problem is set if its body is incomplete. */
export function readResponse(k: Prepared, response: Response, text: string, problem: string | undefined, base: URL, conceal: Conceal): Outcome | Failure {
  const { status, headers } = response;
  const failure = { status, code: "", retryable: false, unchanged: false, after: retryAfter(headers) };
  const unexpected = (message: string, body = text): AnimalStoreError => {
    const hidden = k.secret && status < 400;
    return new ResponseError(message, status, excerpt(headers.get("Content-Type") ?? ""), hidden ? "" : excerpt(conceal(body)), k);
  };
  let result: Outcome | Failure;
  if (status === 304 && k.options.ifNoneMatch) {
    return { ...failure, error: new NotModifiedError("not modified", k) };
  } else if (problem !== undefined) {
    const retryable = !problem.startsWith("the body is larger");
    result = { ...failure, error: unexpected(problem), retryable, unchanged: status >= 400 && status < 500 };
  } else if (response.type === "opaqueredirect" || (status >= 300 && status < 400 && headers.has("Location"))) {
    // A browser doesn't show the target of a redirect.
    const target = JSON.stringify(excerpt(conceal(headers.get("Location") ?? "another address")));
    const message = `a redirect to ${target}, which is not followed, because the key must not go to another address: is the base URL right?`;
    result = { ...failure, error: unexpected(message, ""), unchanged: true };
  } else if (status >= 400) {
    result = { ...failure, ...readError(k, response, text, unexpected, conceal) };
  } else {
    const success = readSuccess(k, response, text, base);
    if (!("problem" in success)) {
      return success;
    }
    result = { ...failure, error: unexpected(success.problem), retryable: success.retryable };
  }
  if (status === 429) {
    result = { ...result, error: rateLimited(k, result, response), retryable: true, unchanged: true };
  }
  return result;
}

/**
 * Reads the response to a call that succeeded. A retry may get a good response if the body
 * is incomplete, but a different kind of response isn't from the service.
 */
function readSuccess(k: Prepared, response: Response, text: string, base: URL): Outcome | { problem: string; retryable: boolean } {
  const { status, headers } = response;
  if (status === 204 && k.check === undefined) {
    return { value: undefined, next: "" };
  }
  const expected = k.accepted ? status === 202 : status === 200 || status === 201;
  if (k.check === undefined || !expected) {
    return { problem: "the status is not the expected one", retryable: false };
  }
  if (!isJSON(headers)) {
    const type = JSON.stringify(excerpt(headers.get("Content-Type") ?? ""));
    return { problem: `its type is ${type}, not JSON: is the base URL right?`, retryable: false };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { problem: "the body is not the expected JSON", retryable: true };
  }
  if (value === null || typeof value !== "object" || !k.check(value)) {
    return { problem: "the body lacks required fields", retryable: true };
  }
  try {
    return { value, next: nextLink(headers, base) };
  } catch (error) {
    return { problem: (error as Error).message, retryable: false };
  }
}

/**
 * The codes of 503 that guarantee that nothing was changed. New codes count only once
 * they're listed here. The code unavailable isn't listed: PostgreSQL also returns it for a
 * change whose outcome is unknown.
 */
const unchangedCodes = ["storage_full", "overloaded", "shutting_down"];

/** Reads an error response. */
function readError(k: Prepared, response: Response, text: string, unexpected: (message: string) => AnimalStoreError, conceal: Conceal): Pick<Failure, "error" | "code" | "retryable" | "unchanged"> {
  const { status, headers } = response;
  let body: { code?: unknown; message?: unknown } | null = null;
  if (isJSON(headers)) {
    try {
      body = JSON.parse(text);
    } catch {
      // reported below
    }
  }
  const { code, message } = body ?? {};
  if (typeof code !== "string" || typeof message !== "string" || code === "" || message === "") {
    // A 5xx is a problem between here and the service.
    return { error: unexpected("its body is not an error of the service"), code: "", retryable: status >= 500, unchanged: status < 500 };
  }
  return {
    error: new ServiceError(code, conceal(message), status, excerpt(headers.get("X-Request-Id") ?? ""), k),
    code,
    retryable: status === 503,
    unchanged: status < 500 || unchangedCodes.includes(code),
  };
}

/** The error for a response with status 429. */
function rateLimited(k: Prepared, failure: Failure | Outcome, response: Response): AnimalStoreError {
  const { error, code, after } = failure as Failure;
  const seen = readRateLimit(response.headers);
  const limit = { window: windowOf(code), limit: seen?.limit ?? 0, reset: seen?.reset, retryAfter: after };
  const requestId = excerpt(response.headers.get("X-Request-Id") ?? "");
  return new RateLimitError(limit, code || "rate_limit_exceeded", error.message, 429, requestId, k, { cause: error });
}
