import { InvalidArgumentError, type AnimalStoreError, type Origin } from "./errors.js";
import { checkRules, checkUnknown, type CallOptions } from "./options.js";
import { hasIds } from "./paths.js";
import { readPicture, type Picture } from "./pictures.js";
import type { Scope } from "./scope.js";

/** One call of an operation, which may take several attempts. Its result is a T. */
export interface Call<T> {
  /** The method that was called: the operationId in the OpenAPI document, or a method such as "findPet". */
  operation: string;
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Below /v1, with the query. */
  path: string;
  body?: object | undefined;
  /** Sent instead of a body. */
  picture?: Picture;
  /**
   * The effect of sending a request again, unless it only reads or leads to the same state
   * again: the Idempotency-Key gets the first response again, or the change is made again.
   */
  repeat?: "replayed" | "harmful";
  /** A POST that supports If-Match. All other changes do. */
  conditional?: boolean;
  /** Success is 202: the service does it later. */
  accepted?: boolean;
  /** It can create the resource at its path, and supports If-None-Match: *. */
  creates?: boolean;
  /** No limit on the number of attempts. */
  endless?: boolean;
  /** How long the service may deliberately wait, in milliseconds. */
  wait?: number;
  /** The response is an image. */
  image?: boolean;
  /** The response is a page of a list, which can begin at a cursor. */
  page?: boolean;
  /** The response is a stream of events after the one with this id; "" if the path says where it begins. */
  stream?: string;
  /** Whether a decoded body is plausible. Without it, the response has no body. */
  check?: (value: any) => value is T;
}

/** A call with everything that its attempts share. */
export interface Prepared<T> extends Call<T>, Origin {
  request: string;
  headers: Record<string, string>;
  /** The encoded body, the same in every attempt. */
  content: string | Blob | undefined;
  options: CallOptions;
}

/** The result of an attempt that succeeded. */
export interface Success<T> {
  value: T;
  /** For a list, the path of the next page; "" after the last. */
  next: string;
  requestId: string;
}

/** The result of a call. */
export interface Outcome<T> extends Success<T> {
  /** The number of attempts. */
  attempts: number;
  /** An earlier attempt may have succeeded, but its response was lost. */
  resent: boolean;
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
  /** A stream can't be used, but long polls can. */
  noStream?: boolean;
}

/** Checks the options of a call and encodes its body. */
export async function prepare<T>(call: Call<T>, url: string, options: CallOptions, scope: Scope): Promise<Prepared<T>> {
  const origin = { operation: call.operation, request: `${call.method} ${url}` };
  checkOptions(call, options, origin);
  const json = "application/json";
  // Errors are JSON.
  const headers: Record<string, string> = { Accept: call.image ? "image/*, " + json : json };
  if (call.stream !== undefined) {
    headers["Accept"] = "text/event-stream";
  }
  if (call.stream) {
    headers["Last-Event-ID"] = call.stream;
  }
  let content: Prepared<T>["content"];
  if (call.picture) {
    content = await readPicture(call.picture, scope, origin);
    headers["Content-Type"] = content.type;
  } else if (call.body) {
    content = encode(call.body, origin);
    headers["Content-Type"] = call.method === "PATCH" ? "application/merge-patch+json" : json;
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
  return { ...call, ...origin, headers, content, options };
}

/** Throws for an id that is missing, or an option that would have no effect. */
function checkOptions(call: Call<unknown>, options: CallOptions, origin: Origin): void {
  const { signal, timeout = 0, ifMatch, ifNoneMatch, idempotencyKey, cursor, onePage, readMeta, ...unknown } = options;
  checkUnknown(unknown, origin);
  checkRules(
    [
      [hasIds(call.path), "an id is missing, or isn't an integer"],
      [call.page || (cursor === undefined && onePage === undefined), "cursor and onePage are only for lists"],
      [!ifNoneMatch || !call.endless, "ifNoneMatch can't be followed"],
      [ifMatch !== "", "ifMatch needs an ETag: without one the change would be unconditional"],
      [idempotencyKey === undefined || call.repeat === "replayed", "idempotencyKey isn't supported here"],
      [!ifMatch || call.method !== "POST" || call.conditional, "ifMatch isn't supported here"],
      [!ifNoneMatch || call.method === "GET" || (call.creates && ifNoneMatch === "*"), "ifNoneMatch is only for reads, and * for putCategory"],
      [!/[^\t -~]/.test([ifMatch, ifNoneMatch, idempotencyKey].join("")), "ETags and the idempotencyKey must be plain ASCII"],
      [timeout >= 0, "timeout must not be negative"],
    ],
    origin,
  );
}

/** Encodes a body. Numbers that would arrive as others are refused. */
export function encode(body: object, origin: Origin): string {
  return JSON.stringify(body, (name, value: unknown) => {
    if ((typeof value === "number" || name === "petId") && !Number.isSafeInteger(value)) {
      throw new InvalidArgumentError(`${name} must be an integer below 2⁵³, because JavaScript rounds larger ones, not ${value}`, origin);
    }
    return value;
  });
}

/** A random Idempotency-Key. crypto.randomUUID isn't available on pages without https. */
function randomKey(): string {
  return crypto.getRandomValues(new BigUint64Array(2)).join("-");
}
