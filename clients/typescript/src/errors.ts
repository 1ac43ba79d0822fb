/** Where an error happened. */
export interface Origin {
  /** The method that was called, such as "createPet". */
  operation: string;
  /** Its HTTP method and full URL. */
  request?: string;
  /** The number of attempts before it. */
  attempts?: number;
}

// Every class sets its name explicitly, because minifiers rename classes.

/** The base class of all errors that this package throws. */
export class AnimalStoreError extends Error {
  static {
    this.prototype.name = "AnimalStoreError";
  }

  /** The method that was called, such as "createPet". */
  readonly operation: string;
  /** Its HTTP method and full URL; "" if there was no request. */
  readonly request: string;
  /** The number of attempts before this error. */
  attempts: number;
  /**
   * Whether a change was sent but its response was lost, so that it may or may not have
   * been made. A change that failed without this was not made.
   */
  outcomeUnknown = false;

  /** @internal */
  constructor(message: string, origin: Origin, options?: ErrorOptions) {
    super(message, options);
    this.operation = origin.operation;
    this.request = origin.request ?? "";
    this.attempts = origin.attempts ?? 0;
  }

  override toString(): string {
    const text = [this.name, this.operation, this.request, this.describe()].filter((part) => part !== "").join(": ");
    const attempts = this.attempts > 1 ? ` (after ${this.attempts} attempts)` : "";
    const outcome = this.outcomeUnknown ? "; it is unknown whether the change was made" : "";
    return text + attempts + outcome;
  }

  /** The message, with details that only some errors have. */
  protected describe(): string {
    return this.message;
  }
}

/** An argument or option that can't work. Nothing was sent. */
export class InvalidArgumentError extends AnimalStoreError {
  static {
    this.prototype.name = "InvalidArgumentError";
  }
}

/** The fields of an error response. */
export interface ServiceErrorFields {
  code: string;
  status: number;
  requestId: string;
}

/** An error response of the service. `message` is the service's message. */
export class ServiceError extends AnimalStoreError {
  static {
    this.prototype.name = "ServiceError";
  }

  /** The service's code. Codes never change, but new ones may be added. */
  readonly code: string;
  /** The HTTP status; 0 if the client knew the error without a request. */
  readonly status: number;
  /** Identifies the request in the server's log. */
  readonly requestId: string;

  /** @internal */
  constructor(message: string, origin: Origin, fields: ServiceErrorFields) {
    super(message, origin);
    this.code = fields.code;
    this.status = fields.status;
    this.requestId = fields.requestId;
  }

  protected override describe(): string {
    const status = this.status > 0 ? `${this.status}: ` : "";
    const id = this.status >= 500 && this.requestId ? ` (request ${this.requestId})` : "";
    return `${status}${this.code}: ${this.message}${id}`;
  }
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
  static {
    this.prototype.name = "RateLimitError";
  }

  readonly window: Window;
  /** The number of requests in the window; 0 if unknown. */
  readonly limit: number;
  /** When the window ends, by the server's clock; undefined if unknown. */
  readonly reset: Date | undefined;
  /** The time until `reset` when the error occurred, in milliseconds. */
  readonly retryAfter: number;

  /** @internal */
  constructor(message: string, origin: Origin, fields: ServiceErrorFields & Limit) {
    super(message, origin, fields);
    this.window = fields.window;
    this.limit = fields.limit;
    this.reset = fields.reset;
    this.retryAfter = fields.retryAfter;
  }
}

export function windowOf(code: string): Window {
  switch (code) {
    case "rate_limit_exceeded":
      return "minute";
    case "daily_quota_exceeded":
      return "day";
    case "key_banned":
      return "ban";
    default:
      return "";
  }
}

/** The error of a call that was not sent because of a known limit. */
export function notSent(known: Limit, retryAfter: number, origin: Origin): RateLimitError {
  const [code, reason] = describeLimit(known);
  const message = `${reason}, so nothing was sent: retry in ${Math.round(retryAfter / 1000)} s`;
  return new RateLimitError(message, origin, { ...known, code, status: 0, requestId: "", retryAfter });
}

/** The code that the service has for a limit, and the reason in words. */
function describeLimit({ window, limit }: Limit): [code: string, reason: string] {
  switch (window) {
    case "minute":
      return ["rate_limit_exceeded", `limit of ${limit} requests per minute reached`];
    case "day":
      return ["daily_quota_exceeded", `limit of ${limit} requests per day (UTC) reached`];
    case "ban":
      return ["key_banned", "this key is banned"];
    case "":
      return ["rate_limit_exceeded", "rate limit reached"];
  }
}

/**
 * Means that a response can't be from the service: a proxy's page, an incomplete body, or
 * another server's response.
 */
export class ResponseError extends AnimalStoreError {
  static {
    this.prototype.name = "ResponseError";
  }

  /** The HTTP status; 0 for a redirect in a browser, which doesn't show it. */
  readonly status: number;
  readonly contentType: string;
  /** The beginning of the body. */
  readonly excerpt: string;

  /** @internal */
  constructor(message: string, origin: Origin, fields: { status: number; contentType: string; excerpt: string }) {
    super(message, origin);
    this.status = fields.status;
    this.contentType = fields.contentType;
    this.excerpt = fields.excerpt;
  }

  protected override describe(): string {
    const status = this.status > 0 ? `${this.status}: ` : "";
    const excerpt = this.excerpt === "" ? "" : ": " + JSON.stringify(this.excerpt);
    return status + this.message + excerpt;
  }
}

/** There was no response. `cause` is the error of `fetch`. */
export class NetworkError extends AnimalStoreError {
  static {
    this.prototype.name = "NetworkError";
  }
}

/** The call's `timeout` passed. */
export class TimeoutError extends AnimalStoreError {
  static {
    this.prototype.name = "TimeoutError";
  }
}

/** The call's `signal` was aborted. `cause` is the signal's reason. */
export class AbortError extends AnimalStoreError {
  static {
    this.prototype.name = "AbortError";
  }
}

/** The resource still has the ETag in `ifNoneMatch`. */
export class NotModifiedError extends AnimalStoreError {
  static {
    this.prototype.name = "NotModifiedError";
  }
}

const excerptLength = 200;

/** The beginning of an untrusted text, on one line. */
export function excerpt(text: string): string {
  const line = text.slice(0, 4 * excerptLength).trim().replace(/\s+/g, " ");
  return line.length > excerptLength ? line.slice(0, excerptLength) + "…" : line;
}
