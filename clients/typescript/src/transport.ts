import { prepare, type Call, type Failure, type Outcome, type Prepared, type Success } from "./call.js";
import { AnimalStoreError, NetworkError, RateLimitError, type Origin } from "./errors.js";
import { newGate, type Gate, type Ticket } from "./gate.js";
import { checkKey, checkSettings, parseBase, type CallOptions, type ClientOptions } from "./options.js";
import { isNotConnected, isPermanent } from "./network.js";
import { uploadTime } from "./pictures.js";
import { isEventStream, maxResponse, readMeta, readResponse } from "./response.js";
import { clock, Scope } from "./scope.js";
import { readAll } from "./streams.js";

/**
 * How long a change may be retried after an attempt that may have succeeded. The
 * service stores an Idempotency-Key for 24 hours; the difference is a margin for clocks and
 * networks.
 */
const retryWindow = 23 * 3_600_000;

/** A stream of events that has begun. Its reader must close its time. */
export interface EventStream {
  body: ReadableStream<Uint8Array<ArrayBuffer>>;
  time: Scope;
  /** The time for the first bytes, in milliseconds. */
  timeout: number;
}

/** Sends calls: waits for limits, retries, and knows what a failure means for a change. */
export interface Transport {
  base: URL;
  gate: Gate;
  /**
   * Makes a call: sends it until it succeeds or must not be retried. The result of one for a
   * stream is an EventStream, or undefined if a stream can't be used, but long polls can.
   */
  do<T>(call: Call<T>, options?: CallOptions, within?: Scope): Promise<Outcome<T>>;
  /**
   * Waits after a stream has ended, for the time that the service asked for and the usual
   * pause. It was opened after a number of attempts, and is one of several that ended.
   */
  pauseStream(call: Call<unknown>, scope: Scope, after: number, breaks: number, attempts: number): Promise<void>;
}

export function newTransport(baseURL: string, apiKey: string | undefined, options: ClientOptions): Transport {
  const { fetch, userAgent, maxAttempts, backoff, maxWait, attemptTimeout, pacing, onWait, onAttempt } = checkSettings(options);
  const base = parseBase(baseURL);
  checkKey(apiKey);
  const gate = newGate(pacing);
  const urlOf = (path: string) => base.href + path;
  const conceal = (text: string) => text.replaceAll(apiKey, "[API key]");

  /** Sends a call once. */
  async function send<T>(k: Prepared<T>, scope: Scope, ticket: Ticket, attempts: number): Promise<Success<T> | Failure> {
    const timed = new Scope({ signal: scope.signal, timeout: attemptTimeout + (k.wait ?? 0) + (k.picture ? uploadTime : 0) });
    const began = clock();
    let response: Response | undefined;
    let stream: EventStream | undefined;
    try {
      response = await fetch(urlOf(k.path), {
        method: k.method,
        headers: { ...k.headers, Authorization: "Bearer " + apiKey, ...(userAgent && { "User-Agent": userAgent }) },
        body: k.content ?? null,
        signal: timed.signal,
        // The service never redirects, and another address must not get the key.
        redirect: "manual",
        cache: "no-store",
        credentials: "omit",
      });
      if (k.stream !== undefined && response.body && isEventStream(response)) {
        gate.received(ticket, response, undefined);
        // Deno forgets the signal of a fetch once its response is garbage.
        const body = response.body.pipeThrough(new TransformStream(), { signal: timed.signal });
        stream = { body, time: timed, timeout: attemptTimeout };
        return { value: stream as T, next: "", requestId: "" };
      }
      const [content, error] = await readAll(() => response!.body, maxResponse);
      const problem = timed.timedOut ? late : error ? "reading the body failed" : "";
      const result = await readResponse(k, response, content, problem, base, conceal);
      if (error && scope.signal.aborted) {
        Object.assign(result, { error: scope.error(k), retryable: false });
      }
      if ("error" in result && k.stream !== undefined) {
        result.noStream = result.status < 300 || result.code === "too_many_streams";
      }
      const refusal = "error" in result && !result.noStream && result.error instanceof RateLimitError ? result.error : undefined;
      gate.received(ticket, response, refusal);
      return result;
    } catch (error) {
      const failure = noResponse(k, scope, error, timed.timedOut);
      failure.noStream = k.stream !== undefined && timed.timedOut;
      gate.lost(ticket, !failure.unchanged);
      return failure;
    } finally {
      if (!stream) {
        timed.close();
      }
      const meta = readMeta(response, attempts);
      k.options.readMeta?.(meta);
      const { operation, method } = k;
      const { status, requestId } = meta;
      onAttempt({ operation, method, path: base.pathname + k.path, number: attempts, status, requestId, duration: clock() - began });
    }
  }

  /** Waits until a call may be retried, or throws the call's error if it may not. */
  async function pause(k: Call<unknown> & Origin, scope: Scope, failure: Failure, attempt: number, unresolved: number): Promise<void> {
    // In addition to Retry-After, a random part of the whole span, so that clients that
    // failed together don't retry together.
    const wait = failure.after + Math.random() * Math.min(backoff.max, backoff.base * 2 ** (attempt - 1));
    const resume = clock() + wait;
    failure.error.attempts = attempt;
    if (
      (!failure.retryable && !(k.endless && failure.status >= 500)) ||
      (k.repeat === "harmful" && !failure.unchanged) ||
      (attempt >= maxAttempts && !k.endless) ||
      (failure.status > 0 && failure.after > maxWait) ||
      resume > scope.deadline ||
      resume - unresolved > retryWindow
    ) {
      throw failure.error;
    }
    if (!scope.signal.aborted) {
      onWait({ operation: k.operation, attempt, for: wait, reason: failure.error });
    }
    for (let left = wait; left > 0 && !scope.signal.aborted; left = resume - clock()) {
      await scope.wait(left);
    }
    if (scope.signal.aborted) {
      throw scope.error(k);
    }
  }

  return {
    base,
    gate,

    async pauseStream(call, scope, after, breaks, attempts) {
      const k = { ...call, request: "GET " + urlOf(call.path) };
      const ended = new NetworkError("the stream ended", k);
      try {
        await pause(k, scope, { error: ended, status: 0, code: "", retryable: true, unchanged: true, after }, breaks, Infinity);
      } catch (error) {
        throw Object.assign(error as AnimalStoreError, { attempts });
      }
    },

    async do<T>(call: Call<T>, options: CallOptions = {}, within?: Scope): Promise<Outcome<T>> {
      const scope = within ?? new Scope(options);
      let unresolved = Infinity; // when the first possibly successful attempt was sent
      let attempt = 0;
      let resent = false;
      try {
        const k = await prepare(call, urlOf(call.path), options, scope);
        for (;;) {
          const most = Math.min(maxWait, retryWindow - clock() + unresolved);
          const ticket = await gate.enter(scope, k, !!k.wait || k.stream !== undefined, most, (ms, reason) => {
            reason.attempts = attempt;
            onWait({ operation: k.operation, attempt, for: ms, reason });
          });
          const sent = clock();
          attempt++;
          const result = await send(k, scope, ticket, attempt);
          if ("value" in result) {
            return { ...result, attempts: attempt, resent };
          }
          if (result.noStream) {
            return { value: undefined as T, next: "", requestId: "", attempts: attempt, resent };
          }
          if (unresolved < Infinity && settles(k, result)) {
            if (isDone(k, result)) {
              return { value: undefined as T, next: "", requestId: "", attempts: attempt, resent };
            }
            unresolved = Infinity;
          }
          if (k.method !== "GET" && !result.unchanged) {
            unresolved = Math.min(unresolved, sent);
            resent = true;
          }
          await pause(k, scope, result, attempt, unresolved);
        }
      } catch (error) {
        if (error instanceof AnimalStoreError) {
          error.attempts = attempt;
          error.outcomeUnknown = unresolved < Infinity;
        }
        throw error;
      } finally {
        if (!within) {
          scope.close();
        }
      }
    },
  };
}

const late = "no response in time";

/**
 * Whether a failure shows that an earlier attempt succeeded: if an earlier attempt may have
 * removed a pet and the pet doesn't exist, it was removed.
 */
function isDone(k: Call<unknown>, failure: Failure): boolean {
  return k.method === "DELETE" && /^(pet|photo)_not_found$/.test(failure.code);
}

/** Whether a failure shows the outcome of the earlier attempts that got no response. */
function settles(k: Call<unknown>, { code, status }: Failure): boolean {
  // After 401 and 403 the service checked nothing else.
  if (code === "" || status >= 500 || [401, 403, 429].includes(status)) {
    return false;
  }
  // Otherwise the service would have repeated the earlier response.
  if (k.repeat === "replayed") {
    return true;
  }
  // Ids are never reused, so a pet that can't be removed now wasn't removed before. A
  // revoked key remains, with another ETag.
  return k.method === "DELETE" && !(k.operation === "revokeKey" && code === "precondition_failed");
}

/** The failure of a request without a response. */
function noResponse(k: Prepared<unknown>, scope: Scope, error: any, timedOut: boolean): Failure {
  const aborted = scope.signal.aborted;
  // fetch hides the reason in the cause of its error.
  const reason = error?.cause?.message || error?.cause?.code || error?.message || error;
  return {
    error: aborted ? scope.error(k) : new NetworkError(timedOut ? late : `no response: ${reason}`, k, { cause: error }),
    status: 0,
    code: "",
    retryable: !aborted && (timedOut || !isPermanent(error)),
    unchanged: isNotConnected(error),
    after: 0,
  };
}
