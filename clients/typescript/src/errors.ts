/** Where an error happened. */
export interface Origin {
  /** The method that was called, such as "createPet". */
  operation: string;
  /** Its HTTP method and full URL. */
  request?: string;
}

/**
 * The base class of all errors that this package throws. Names are set explicitly, because
 * minifiers rename classes.
 */
export class AnimalStoreError extends Error {
  static {
    this.prototype.name = "AnimalStoreError";
  }

  /** The method that was called, such as "createPet". */
  readonly operation: string;
  /** Its HTTP method and full URL; "" if there was no request. */
  readonly request: string;
  /** The number of attempts before this error. */
  attempts = 0;
  /**
   * Whether a change was sent but its response was lost, so that it may or may not have
   * been made. A change that failed without this was not made.
   */
  outcomeUnknown = false;

  constructor(message: string, origin: Origin, options?: ErrorOptions) {
    super(message, options);
    this.operation = origin.operation;
    this.request = origin.request ?? "";
  }

  override toString(): string {
    const where = [this.operation, this.request].filter((part) => part !== "").join(": ");
    const tries = this.attempts > 1 ? ` (after ${this.attempts} attempts)` : "";
    const unknown = this.outcomeUnknown ? "; it is unknown whether the change was made" : "";
    return `${this.name}: ${where}: ${this.describe()}${tries}${unknown}`;
  }

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

  constructor(code: string, message: string, status: number, requestId: string, origin: Origin, options?: ErrorOptions) {
    super(message, origin, options);
    this.code = code;
    this.status = status;
    this.requestId = requestId;
  }

  protected override describe(): string {
    const request = this.status >= 500 && this.requestId !== "" ? ` (request ${this.requestId})` : "";
    return `${this.code}: ${this.message}${request}`;
  }
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
  readonly limit: number;
  readonly reset: Date | undefined;
  /** The time until `reset` when the error occurred, in milliseconds. */
  readonly retryAfter: number;

  constructor(limit: Limit, code: string, message: string, status: number, requestId: string, origin: Origin, options?: ErrorOptions) {
    super(code, message, status, requestId, origin, options);
    this.window = limit.window;
    this.limit = limit.limit;
    this.reset = limit.reset;
    this.retryAfter = limit.retryAfter;
  }
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
export function notSent(limit: Limit, wait: number, origin: Origin): RateLimitError {
  const [code, message] = {
    minute: ["rate_limit_exceeded", `the ${limit.limit} requests of this minute are used up`],
    day: ["daily_quota_exceeded", `the ${limit.limit} requests of this day (UTC) are used up`],
    ban: ["key_banned", "this key is banned for a while"],
    "": ["rate_limit_exceeded", "a limit is reached"],
  }[limit.window] as [string, string];
  const text = `${message} according to an earlier response, so this request was not sent: wait ${Math.round(wait / 1000)} s`;
  return new RateLimitError({ ...limit, retryAfter: wait }, code, text, 0, "", origin);
}

/**
 * Means that a response can't be from the service: a proxy's page, an incomplete body, or
 * another server's response.
 */
export class ResponseError extends AnimalStoreError {
  static {
    this.prototype.name = "ResponseError";
  }

  readonly status: number;
  readonly contentType: string;
  /** The beginning of the body. */
  readonly excerpt: string;

  constructor(message: string, status: number, contentType: string, text: string, origin: Origin, options?: ErrorOptions) {
    super(message, origin, options);
    this.status = status;
    this.contentType = contentType;
    this.excerpt = text;
  }

  protected override describe(): string {
    const quoted = this.excerpt === "" ? "" : `: ${JSON.stringify(this.excerpt)}`;
    return `unexpected response with status ${this.status}: ${this.message}${quoted}`;
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
  const line = text.slice(0, 4 * excerptLength).split(/\s+/).filter((word) => word !== "").join(" ");
  return line.length > excerptLength ? line.slice(0, excerptLength) + "…" : line;
}
