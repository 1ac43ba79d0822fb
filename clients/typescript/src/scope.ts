import { AbortError, TimeoutError, type AnimalStoreError, type Origin } from "./errors.js";
import type { CallOptions } from "./options.js";

/** The time in milliseconds since 1970, by a clock that can't be set. */
export function clock(): number {
  return performance.timeOrigin + performance.now();
}

/** The longest delay of setTimeout. */
const longestDelay = 2 ** 31 - 1;

/** The time that a call or a list has, until its timeout or until its caller cancels it. */
export class Scope {
  /** Aborted when the time is over. */
  readonly signal: AbortSignal;
  /** When the timeout passes; Infinity without one. */
  readonly deadline: number;
  readonly #controller = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #remove: () => void;
  /** Whether the timeout passed. */
  timedOut = false;

  constructor({ timeout = Infinity, signal }: Pick<CallOptions, "timeout" | "signal">) {
    this.signal = this.#controller.signal;
    this.deadline = clock() + timeout;
    this.restart(timeout);
    const abort = () => this.#controller.abort(signal?.reason);
    signal?.addEventListener("abort", abort);
    this.#remove = () => signal?.removeEventListener("abort", abort);
    if (signal?.aborted) {
      abort();
    }
  }

  /** Ends the time after this many milliseconds from now, instead of when it would have ended. */
  restart(timeout: number): void {
    clearTimeout(this.#timer);
    if (timeout <= longestDelay) {
      this.#timer = setTimeout(() => {
        this.timedOut = true;
        this.#controller.abort();
      }, timeout);
    }
  }

  /** Must be called when the call ends. */
  close(): void {
    clearTimeout(this.#timer);
    this.#remove();
  }

  /** The error of a call whose time is over. */
  error(origin: Origin): AnimalStoreError {
    if (this.timedOut) {
      return new TimeoutError("the timeout of the call passed", origin);
    }
    return new AbortError("the call was aborted", origin, { cause: this.signal.reason });
  }

  /** Waits for this time, or less: until the time is over, or until `changed`. */
  async wait(ms: number, changed?: Promise<void>): Promise<void> {
    const timed = new Scope({ timeout: Math.min(ms, longestDelay), signal: this.signal });
    await new Promise<void>((resolve) => {
      timed.signal.addEventListener("abort", () => resolve());
      if (timed.signal.aborted) {
        resolve();
      }
      void changed?.then(resolve);
    });
    timed.close();
  }
}
