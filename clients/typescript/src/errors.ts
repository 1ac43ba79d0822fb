/** Where an error happened. */
export interface Origin {
  /** The method that was called, such as "createPet". */
  operation: string;
  /** Its HTTP method and full URL. */
  request?: string;
}

/** The base class of all errors that this package throws. */
export class AnimalStoreError extends Error {
  /** The method that was called, such as "createPet". */
  declare readonly operation: string;
  /** Its HTTP method and full URL; "" if there was no request. */
  declare readonly request: string;
  /** The number of attempts before this error. */
  attempts = 0;
  /**
   * Whether a change was sent but its response was lost, so that it may or may not have
   * been made. A change that failed without this was not made.
   */
  outcomeUnknown = false;

  /** @internal */
  constructor(message: string, { operation, request = "" }: Origin, fields: object = {}) {
    super(message);
    Object.assign(this, { operation, request }, fields);
  }

  override toString(): string {
    const { name, operation, request, status, code, message, excerpt, attempts, requestId } = this as Record<string, unknown> & this;
    const text = [name, operation, request, status, code, message, excerpt && JSON.stringify(excerpt)].filter(Boolean).join(": ");
    const id = Number(status) >= 500 && requestId ? ` (request ${requestId})` : "";
    const tries = attempts > 1 ? ` (after ${attempts} attempts)` : "";
    return text + id + tries + (this.outcomeUnknown ? "; it is unknown whether the change was made" : "");
  }
}

/** An argument or option that can't work. Nothing was sent. */
export class InvalidArgumentError extends AnimalStoreError {}

/** An error response of the service. `message` is the service's message. */
export class ServiceError extends AnimalStoreError {
  /** The service's code. Codes never change, but new ones may be added. */
  declare readonly code: string;
  /** The HTTP status; 0 if the client knew the error without a request. */
  declare readonly status: number;
  /** Identifies the request in the server's log. */
  declare readonly requestId: string;
}

/** An error of the service that the client knows without a request. */
export function knownError(code: string, message: string, origin: Origin): ServiceError {
  return new ServiceError(message, origin, { code, status: 0, requestId: "" });
}

/**
 * The kind of limit that was reached: the plan's requests per minute or per calendar day
 * in UTC, or a ban for ignoring 429 responses. "" if the response was not from the service.
 */
export type Window = "minute" | "day" | "ban" | "";

/** What is known about a limit. */
export interface Limit {
  window: Window;
  /** The number of requests in the window; 0 if unknown. */
  limit: number;
  /** When the window ends, by the server's clock; undefined if unknown. */
  reset: Date | undefined;
  /** The time until then when the error occurred, in milliseconds. */
  retryAfter: number;
}

/**
 * Says which limit was reached and how long to wait. If the client already knew about the
 * limit and sent nothing, it has the code that the service would have used.
 */
export class RateLimitError extends ServiceError implements Limit {
  declare readonly window: Window;
  declare readonly limit: number;
  declare readonly reset: Date | undefined;
  /** The time until `reset` when the error occurred, in milliseconds. */
  declare readonly retryAfter: number;
}

const windows: Record<string, Window> = {
  rate_limit_exceeded: "minute",
  daily_quota_exceeded: "day",
  key_banned: "ban",
};

export function windowOf(code: string): Window {
  return windows[code] ?? "";
}

/** The error of a call that was not sent because of a known limit. */
export function notSent({ window, limit, reset }: Limit, retryAfter: number, origin: Origin): RateLimitError {
  const code = Object.keys(windows).find((code) => windows[code] === window) ?? "rate_limit_exceeded";
  const what = window === "ban" ? "this key is banned" : `the ${limit} requests of this ${window} are used up`;
  const message = `${what} according to an earlier response, so nothing was sent: wait ${Math.round(retryAfter / 1000)} s`;
  return new RateLimitError(message, origin, { code, status: 0, requestId: "", window, limit, reset, retryAfter });
}

/**
 * Means that a response can't be from the service: a proxy's page, an incomplete body, or
 * another server's response.
 */
export class ResponseError extends AnimalStoreError {
  declare readonly status: number;
  declare readonly contentType: string;
  /** The beginning of the body. */
  declare readonly excerpt: string;
}

/** There was no response. `cause` is the error of `fetch`. */
export class NetworkError extends AnimalStoreError {}

/** The call's `timeout` passed. */
export class TimeoutError extends AnimalStoreError {}

/** The call's `signal` was aborted. `cause` is the signal's reason. */
export class AbortError extends AnimalStoreError {}

/** The resource still has the ETag in `ifNoneMatch`. */
export class NotModifiedError extends AnimalStoreError {}

/** Set explicitly, because minifiers rename classes. */
const names = { AnimalStoreError, InvalidArgumentError, ServiceError, RateLimitError, ResponseError, NetworkError, TimeoutError, AbortError, NotModifiedError };
for (const [name, type] of Object.entries(names)) {
  type.prototype.name = name;
}

const excerptLength = 200;

/** The beginning of an untrusted text, on one line. */
export function excerpt(text: string): string {
  const line = text.slice(0, 4 * excerptLength).trim().replace(/\s+/g, " ");
  return line.length > excerptLength ? line.slice(0, excerptLength) + "…" : line;
}
