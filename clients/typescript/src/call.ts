import { InvalidArgumentError, ServiceError, type AnimalStoreError, type Origin } from "./errors.js";
import type { CallOptions, Meta } from "./options.js";

/** One call of an operation, which may take several attempts. */
export interface Call {
  /** The method that was called: the operationId in the OpenAPI document, or such as "findPet". */
  operation: string;
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Below /v1, with the query. */
  path: string;
  body?: object | undefined;
  /**
   * The effect of sending a request again, unless it only reads or leads to the same state
   * again: the Idempotency-Key gets the first response again, or the change is made again.
   */
  repeat?: "replayed" | "harmful";
  /** The operation supports If-Match. */
  conditional?: boolean;
  /** Success is 202: the service does it later. */
  accepted?: boolean;
  /** It can create the resource at its path, and supports If-None-Match: *. */
  creates?: boolean;
  /** The response contains a secret, which no error may show. */
  secret?: boolean;
  /** No limit on the number of attempts. */
  endless?: boolean;
  /** How long the service may deliberately wait, in milliseconds. */
  wait?: number;
  /** Whether a decoded body is plausible. Without it, the response has no body. */
  check?: (value: any) => boolean;
}

/** A call with everything that its attempts share. */
export interface Prepared extends Call, Origin {
  request: string;
  headers: Record<string, string>;
  content: string | undefined;
  options: CallOptions;
  meta: Meta;
}

/** The result of a call. */
export interface Outcome {
  value: any;
  /** For a list, the path of the next page; "" after the last. */
  next: string;
}

/** Why an attempt failed, and what that means for a retry. */
export interface Failure {
  error: AnimalStoreError;
  /** 0 without a response. */
  status: number;
  /** "" unless the service sent one. */
  code: string;
  /** Another attempt may succeed. */
  retryable: boolean;
  /** This attempt certainly changed nothing. */
  unchanged: boolean;
  /** From Retry-After, in milliseconds. */
  after: number;
}

export const noMeta: Meta = {
  status: 0,
  etag: "",
  requestId: "",
  replayed: false,
  banLifted: false,
  attempts: 0,
  nextCursor: "",
  rateLimit: undefined,
};

/** Checks the options of a call and encodes its body. */
export function prepare(call: Call, url: string, options: CallOptions): Prepared {
  const origin = { operation: call.operation, request: `${call.method} ${url}` };
  checkOptions(call, options, origin);
  const headers: Record<string, string> = { Accept: "application/json" };
  let content: string | undefined;
  if (call.body !== undefined) {
    content = encode(call.body, origin);
    headers["Content-Type"] = call.method === "PATCH" ? "application/merge-patch+json" : "application/json";
  }
  if (options.ifMatch !== undefined) {
    headers["If-Match"] = options.ifMatch;
  }
  if (options.ifNoneMatch) {
    headers["If-None-Match"] = options.ifNoneMatch;
  }
  if (call.repeat === "replayed") {
    headers["Idempotency-Key"] = options.idempotencyKey ?? randomKey();
  }
  return { ...call, ...origin, headers, content, options, meta: { ...noMeta } };
}

/** Throws for an option that would have no effect, because the caller relies on it. */
function checkOptions(call: Call, options: CallOptions, origin: Origin): void {
  const changes = call.method !== "GET";
  let problem = "";
  if (options.ifMatch === "") {
    problem = "ifMatch needs an ETag: without one the change would be unconditional";
  } else if (options.idempotencyKey !== undefined && call.repeat !== "replayed") {
    problem = "the service doesn't support Idempotency-Key for this";
  } else if (options.ifMatch !== undefined && changes && !call.conditional) {
    problem = "the service doesn't support If-Match for this";
  } else if (options.ifNoneMatch && changes && !(call.creates && options.ifNoneMatch === "*")) {
    problem = "If-None-Match is only for reads, and * for putCategory";
  } else if (/[^\t -~]/.test((options.ifMatch ?? "") + (options.ifNoneMatch ?? "") + (options.idempotencyKey ?? ""))) {
    problem = "ETags and the idempotencyKey must be plain ASCII";
  } else if (options.timeout !== undefined && !(options.timeout >= 0)) {
    problem = `the timeout must not be negative, not ${options.timeout}`;
  }
  if (problem !== "") {
    throw new InvalidArgumentError(problem, origin);
  }
}

/** Encodes a body. Values that would arrive as something else are refused. */
function encode(body: object, origin: Origin): string {
  return JSON.stringify(body, (name, value: unknown) => {
    if (typeof value === "number" && !Number.isSafeInteger(value)) {
      throw new InvalidArgumentError(`${name} must be an integer of at most 2⁵³−1, because JavaScript rounds larger numbers, not ${value}`, origin);
    }
    if (typeof value === "string" && !isWellFormed(value)) {
      throw new ServiceError("validation_failed", `${name} must be valid Unicode, without half of a surrogate pair`, 0, "", origin);
    }
    return value;
  });
}

function isWellFormed(text: string): boolean {
  try {
    encodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** A random Idempotency-Key. crypto.randomUUID isn't available on pages without https. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
