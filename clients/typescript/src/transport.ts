import { prepare, type Call, type Failure, type Outcome, type Prepared } from "./call.js";
import { NetworkError, RateLimitError, type AnimalStoreError } from "./errors.js";
import { Gate, type Ticket } from "./gate.js";
import { checkKey, checkSettings, parseBase, type CallOptions, type ClientOptions, type Settings } from "./options.js";
import { isNotConnected, isPermanent } from "./network.js";
import { bodyProblem, readBody, readMeta, readResponse } from "./response.js";
import { clock, Scope } from "./scope.js";

/**
 * How long a change may be retried after an attempt that may have been carried out. The
 * service stores an Idempotency-Key for 24 hours; the difference is a margin for clocks and
 * networks.
 */
const retryWindow = 23 * 3_600_000;

/** Sends calls: waits for limits, retries, and knows what a failure means for a change. */
export class Transport {
  readonly base: URL;
  readonly gate: Gate;
  readonly #settings: Settings;
  readonly #apiKey: string;

  constructor(baseURL: string, apiKey: string, options: ClientOptions) {
    this.#settings = checkSettings(options);
    this.base = parseBase(baseURL);
    checkKey(apiKey);
    this.#apiKey = apiKey;
    this.gate = new Gate(this.#settings.pacing);
  }

  urlOf(path: string): string {
    return this.base.href + path;
  }

  /** Removes the key from a text. */
  conceal = (text: string): string => text.replaceAll(this.#apiKey, "[API key]");

  /** Makes a call and returns the decoded body. */
  async send(call: Call, options: CallOptions = {}): Promise<any> {
    const scope = new Scope(options);
    try {
      return (await this.do(call, options, scope)).value;
    } finally {
      scope.close();
    }
  }

  /** Makes a call: sends it until it succeeds or must not be retried. */
  async do(call: Call, options: CallOptions, scope: Scope): Promise<Outcome> {
    const k = prepare(call, this.urlOf(call.path), options);
    let unresolved: number | undefined; // when the first possibly successful attempt was sent
    for (let attempt = 1; ; attempt++) {
      const ticket = await this.#enter(k, scope, attempt, unresolved);
      const sent = clock();
      k.meta.attempts = attempt;
      const result = await this.#attempt(k, scope, ticket);
      options.readMeta?.({ ...k.meta });
      if ("value" in result) {
        return result;
      }
      if (unresolved !== undefined && settles(k, result)) {
        if (isDone(k, result)) {
          return { value: undefined, next: "" };
        }
        unresolved = undefined;
      }
      if (unresolved === undefined && k.method !== "GET" && !result.unchanged) {
        unresolved = sent;
      }
      result.error.attempts = attempt;
      result.error.outcomeUnknown = unresolved !== undefined;
      await this.#pause(k, scope, result, attempt, unresolved);
    }
  }

  /** Waits until the limits allow an attempt. */
  async #enter(k: Prepared, scope: Scope, attempt: number, unresolved: number | undefined): Promise<Ticket> {
    let maxWait = this.#settings.maxWait;
    if (unresolved !== undefined) {
      maxWait = Math.min(maxWait, retryWindow - (clock() - unresolved));
    }
    try {
      return await this.gate.enter(scope, k, (k.wait ?? 0) > 0, maxWait, (ms, reason) => {
        this.#settings.onWait({ operation: k.operation, attempt: attempt - 1, for: ms, reason });
      });
    } catch (error) {
      (error as AnimalStoreError).attempts = attempt - 1;
      (error as AnimalStoreError).outcomeUnknown = unresolved !== undefined;
      throw error;
    }
  }

  /** Sends a call once. */
  async #attempt(k: Prepared, scope: Scope, ticket: Ticket): Promise<Outcome | Failure> {
    const controller = new AbortController();
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      controller.abort();
    }, this.#settings.attemptTimeout + (k.wait ?? 0));
    const abort = () => controller.abort();
    scope.signal.addEventListener("abort", abort);
    try {
      let response: Response;
      try {
        response = await this.#settings.fetch(this.urlOf(k.path), this.#request(k, controller.signal));
      } catch (error) {
        const failure = noResponse(k, scope, error, timedOut);
        failure.unchanged ? this.gate.returnUnsent(ticket) : this.gate.returnLost(ticket);
        return failure;
      }
      const body = await readBody(response);
      k.meta = readMeta(response, k.meta.attempts);
      const problem = body.error === undefined ? undefined : timedOut ? "no response in time" : bodyProblem(body.error);
      const result = readResponse(k, response, body.text, problem, this.base, this.conceal);
      if ("error" in result && problem !== undefined && scope.signal.aborted) {
        result.error = scope.error(k, body.error);
        result.retryable = false;
      }
      const refusal = "error" in result && result.error instanceof RateLimitError ? result.error : undefined;
      this.gate.returnAnswered(ticket, response.status, response.headers, refusal);
      return result;
    } finally {
      clearTimeout(timer);
      scope.signal.removeEventListener("abort", abort);
    }
  }

  /** The request of a call. It carries no cookies, and nothing of it is cached. */
  #request(k: Prepared, signal: AbortSignal): RequestInit {
    const headers: Record<string, string> = { ...k.headers, Authorization: "Bearer " + this.#apiKey };
    if (this.#settings.userAgent !== "") {
      headers["User-Agent"] = this.#settings.userAgent;
    }
    return {
      method: k.method,
      headers,
      body: k.content ?? null,
      signal,
      // The service never redirects, and another address must not get the key.
      redirect: "manual",
      cache: "no-store",
      credentials: "omit",
    };
  }

  /** Waits until a call may be retried, or throws the call's error if it may not. */
  async #pause(k: Prepared, scope: Scope, failure: Failure, attempt: number, unresolved: number | undefined): Promise<void> {
    const { maxAttempts, maxWait, onWait } = this.#settings;
    if (
      (!failure.retryable && !(k.endless && failure.status >= 500)) ||
      (k.repeat === "harmful" && !failure.unchanged) ||
      (attempt >= maxAttempts && !k.endless) ||
      failure.after > maxWait
    ) {
      throw failure.error;
    }
    const wait = failure.after + this.#jitter(attempt);
    const resume = clock() + wait;
    if (resume > scope.deadline || (unresolved !== undefined && resume - unresolved > retryWindow)) {
      throw failure.error;
    }
    if (!scope.signal.aborted) {
      onWait({ operation: k.operation, attempt, for: wait, reason: failure.error });
    }
    for (let left = wait; left > 0 && !scope.signal.aborted; left = resume - clock()) {
      await scope.wait(left);
    }
    if (scope.signal.aborted) {
      const error = scope.error(k);
      error.attempts = attempt;
      error.outcomeUnknown = unresolved !== undefined;
      throw error;
    }
  }

  /**
   * How long to back off after this number of attempts, in addition to Retry-After. It's a
   * random part of the whole span, so that clients that failed together don't retry
   * together.
   */
  #jitter(attempts: number): number {
    const { backoffBase, backoffMax } = this.#settings;
    return Math.random() * Math.min(backoffMax, backoffBase * 2 ** (attempts - 1));
  }
}

/**
 * Whether a failure shows that an earlier attempt succeeded: if an earlier attempt may have
 * removed a pet and the pet doesn't exist, it was removed.
 */
function isDone(k: Call, failure: Failure): boolean {
  return k.method === "DELETE" && failure.code === "pet_not_found";
}

/** Whether a failure shows the outcome of the earlier attempts that got no response. */
function settles(k: Call, failure: Failure): boolean {
  if (failure.code === "" || failure.status >= 500 || failure.status === 429) {
    return false;
  }
  if (failure.status === 401 || failure.status === 403) {
    return false; // the service checked nothing else
  }
  if (k.repeat === "replayed") {
    return true; // otherwise it would have repeated the earlier response
  }
  // Ids are never reused, so a pet that can't be removed now wasn't removed before. A
  // revoked key remains, with another ETag.
  return k.method === "DELETE" && !(k.operation === "revokeKey" && failure.code === "precondition_failed");
}

/** The failure of a request without a response. */
function noResponse(k: Prepared, scope: Scope, error: unknown, timedOut: boolean): Failure {
  const failure = { status: 0, code: "", unchanged: isNotConnected(error), after: 0 };
  if (scope.signal.aborted) {
    return { ...failure, error: scope.error(k, error), retryable: false };
  }
  const message = timedOut ? "no response in time" : `no response: ${describe(error)}`;
  return { ...failure, error: new NetworkError(message, k, { cause: error }), retryable: timedOut || !isPermanent(error) };
}

/** fetch hides the reason in the cause of its error. */
function describe(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: { code?: string; message?: string } };
  return [message, cause?.message || cause?.code].filter(Boolean).join(": ") || String(error);
}
