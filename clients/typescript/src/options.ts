import { InvalidArgumentError, type AnimalStoreError, type Origin } from "./errors.js";

/** Options of a client. All durations are in milliseconds. */
export interface ClientOptions {
  /** Used instead of the global `fetch`, for example for a proxy or in tests. */
  fetch?: typeof globalThis.fetch;
  /** The User-Agent header. Browsers send their own. */
  userAgent?: string;
  /** The maximum number of attempts of a call, by default 5. 1 means no retries. */
  maxAttempts?: number;
  /**
   * How long to wait between attempts. Before the n-th retry the client waits a random
   * time up to base·2ⁿ⁻¹, at most max, in addition to the time in Retry-After if there is
   * one. The defaults are 500 and 30,000.
   */
  backoff?: { base: number; max: number };
  /**
   * Makes a call fail immediately, usually with a RateLimitError, if Retry-After or the
   * reset of a limit would make it wait longer than this. With 0 a call never waits for a
   * limit. By default it waits as long as necessary, until midnight UTC if the day is used
   * up.
   */
  maxWait?: number;
  /**
   * Limits each attempt, from connecting to the last byte of the response. The default is
   * 30,000. In `events`, the time that the service may wait is added, and a stream has no
   * limit as long as the service sends something.
   */
  attemptTimeout?: number;
  /**
   * Spreads requests over the minute, for bulk jobs: half of the minute's requests are
   * sent immediately, the others are spread evenly over the rest of it. A job never gets a
   * 429 as long as nobody else uses the key.
   */
  pacing?: boolean;
  /**
   * Called before every wait for a limit or a retry, for a countdown or a log. It isn't
   * called for the short pauses of pacing.
   */
  onWait?: (wait: Wait) => void;
  /** Called after every attempt of a call, for a log. */
  onAttempt?: (attempt: CallAttempt) => void;
}

/** A request that was sent, and its response. It contains neither the key nor bodies. */
export interface CallAttempt {
  /** The method that was called, such as "createPet". */
  operation: string;
  /** The HTTP method. */
  method: string;
  /** With the query. */
  path: string;
  /** 1 for the first attempt of a call. */
  number: number;
  /** The HTTP status; 0 without a response. */
  status: number;
  /** Identifies the request in the server's log. */
  requestId: string;
  /** The milliseconds until the end of the response, or until a stream of events began. */
  duration: number;
}

/** A pause that a call is about to make. */
export interface Wait {
  /** The method that was called, such as "createPet". */
  operation: string;
  /** The number of attempts so far. */
  attempt: number;
  /** The length of the pause in milliseconds. */
  for: number;
  /** A RateLimitError for a limit, otherwise the error of the attempt that will be retried. */
  reason: AnimalStoreError;
}

/** Options of one call. */
export interface CallOptions {
  /** Cancels the call, or leaves the loop over a list. */
  signal?: AbortSignal;
  /**
   * The time for the whole call, with all its attempts and waits, or for the whole list, in
   * milliseconds. If a wait would take longer, the call fails immediately instead.
   */
  timeout?: number;
  /**
   * Makes a change only if the resource still has this ETag; otherwise the error has code
   * precondition_failed. Get the ETag, including its quotes, with `readMeta`.
   */
  ifMatch?: string;
  /**
   * Makes a read throw NotModifiedError if the resource still has this ETag. For a list,
   * that is the ETag of the first page. "" has no effect. Of the changes, only
   * `putCategory` supports it, with "*".
   */
  ifNoneMatch?: string;
  /**
   * Identifies a request, so that it is executed only once, however often it is sent
   * within 24 hours, even by different processes. By default `createPet`, `createPetBatch`,
   * `placeOrder` and `addPhoto` use a random key for each call, which covers their own
   * retries. Supply one if you may have to repeat the call itself, for example after a
   * crash: 1 to 255 visible ASCII characters, the same for the same content.
   */
  idempotencyKey?: string;
  /** Makes a list begin at a `nextCursor` of the same query. "" has no effect. */
  cursor?: string;
  /**
   * Makes a list end after its first page. `nextCursor` in `readMeta` says where the next
   * one begins. A page can have fewer entries than its size, or none, although others
   * follow.
   */
  onePage?: boolean;
  /** Called after every attempt with what the response says outside its body. */
  readMeta?: (meta: Meta) => void;
}

/** The information in a response outside its body. Without a response, only `attempts` is set. */
export interface Meta {
  /** The HTTP status. */
  status: number;
  /** For `ifMatch` and `ifNoneMatch`; "" if there is none. */
  etag: string;
  /** Identifies the request in the server's log. */
  requestId: string;
  /** This is the response to an earlier request with the same `idempotencyKey`. */
  replayed: boolean;
  /** `unbanKey` lifted a ban. */
  banLifted: boolean;
  /** The number of attempts. */
  attempts: number;
  /** How old the counts of `getInventory` are, in seconds. */
  age: number;
  /** Where the next page of a list begins; "" after the last page. */
  nextCursor: string;
  rateLimit: RateLimit | undefined;
}

/**
 * The rate limit headers of a response. They describe the minute, unless the day has fewer
 * requests left.
 */
export interface RateLimit {
  limit: number;
  remaining: number;
  /** By the server's clock. */
  reset: Date;
}

const origin = { operation: "new Client" };

/** Checks the options of a client and returns them with their defaults. */
export function checkSettings(options: ClientOptions): Required<ClientOptions> {
  const {
    fetch = (input, init) => globalThis.fetch(input, init),
    userAgent = defaultUserAgent(),
    maxAttempts = 5,
    backoff = { base: 500, max: 30_000 },
    maxWait = Infinity,
    attemptTimeout = 30_000,
    pacing = false,
    onWait = () => {},
    onAttempt = () => {},
    ...unknown
  } = options;
  checkUnknown(unknown, origin);
  // The comparisons are written so that NaN is refused too.
  const rules: [boolean, string][] = [
    [maxAttempts >= 1, "maxAttempts must be at least 1"],
    [backoff.base > 0 && backoff.max >= backoff.base, "backoff must be positive, and its max not below its base"],
    [attemptTimeout > 0, "attemptTimeout must be positive"],
    [maxWait >= 0, "maxWait must not be negative"],
    [!/[^ -~]/.test(userAgent), "userAgent must be plain ASCII, without line breaks"],
  ];
  checkRules(rules, origin);
  return { fetch, userAgent, maxAttempts, backoff, maxWait, attemptTimeout, pacing, onWait, onAttempt };
}

/** Throws for the first option or filter that doesn't exist: the caller relies on it. */
export function checkUnknown(unknown: object, origin: Origin): void {
  for (const name in unknown) {
    throw new InvalidArgumentError(`there is no option ${name}`, origin);
  }
}

/** Throws for the first rule that is broken. */
export function checkRules(rules: [kept: unknown, text: string][], origin: Origin): void {
  for (const [kept, text] of rules) {
    if (!kept) {
      throw new InvalidArgumentError(text, origin);
    }
  }
}

/** Pages can't send a User-Agent to other origins, so it's "" in browsers. */
function defaultUserAgent(): string {
  return "document" in globalThis || "importScripts" in globalThis ? "" : "animalstore-typescript/1";
}

/**
 * Parses the URL of a deployment and returns it with /v1 at its end. Its errors don't quote
 * the URL, which may contain a password.
 */
export function parseBase(baseURL: string): URL {
  let url: URL | undefined;
  try {
    url = new URL(baseURL);
  } catch {
    // reported below
  }
  const rules: [unknown, string][] = [
    // new URL reads http:///v1 as http://v1.
    [url && /^https?:\/\/[^/]/i.test(baseURL), "be like https://pets.example or http://127.0.0.1:8080/v1"],
    [!url?.username && !url?.password, "not have a user or password in it: pass the API key separately"],
    [!/[?#]/.test(baseURL), "not have a query or a fragment"],
  ];
  checkRules(rules.map(([kept, text]) => [kept, "the base URL must " + text]), origin);
  const path = url!.pathname.replace(/\/+$/, "");
  url!.pathname = path.endsWith(version) ? path : path + version;
  return url!;
}

/** The path prefix of all operations. */
export const version = "/v1";

/** Checks that a key can be sent as a bearer token. Its errors don't quote the key. */
export function checkKey(apiKey = ""): asserts apiKey is string {
  const rules: [unknown, string][] = [
    [apiKey, "the API key is missing: is its environment variable set?"],
    [!/[^!-~]/.test(apiKey), "the API key contains an invalid character, such as a line break"],
  ];
  checkRules(rules, origin);
}
