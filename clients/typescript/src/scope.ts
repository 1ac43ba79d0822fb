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
  #timer: ReturnType<typeof setTimeout> | undefined;
  #remove = () => {};
  #timedOut = false;

  constructor(options: CallOptions) {
    const controller = new AbortController();
    this.signal = controller.signal;
    this.deadline = options.timeout === undefined ? Infinity : clock() + options.timeout;
    if (options.timeout !== undefined && options.timeout <= longestDelay) {
      this.#timer = setTimeout(() => {
        this.#timedOut = true;
        controller.abort();
      }, options.timeout);
    }
    const outer = options.signal;
    if (outer === undefined) {
      return;
    }
    const abort = () => controller.abort(outer.reason);
    if (outer.aborted) {
      abort();
    } else {
      outer.addEventListener("abort", abort);
      this.#remove = () => outer.removeEventListener("abort", abort);
    }
  }

  /** Must be called when the call ends. */
  close(): void {
    clearTimeout(this.#timer);
    this.#remove();
  }

  /** The error of a call whose time is over. */
  error(origin: Origin, reason?: unknown): AnimalStoreError {
    if (this.#timedOut) {
      return new TimeoutError("the timeout of the call passed", origin, { cause: reason });
    }
    return new AbortError("the call was aborted", origin, { cause: reason ?? this.signal.reason });
  }

  /** Waits for this time, or less: until the time is over, or until `changed`. */
  async wait(ms: number, changed?: Promise<void>): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let stop = () => {};
    await new Promise<void>((resolve) => {
      timer = setTimeout(resolve, Math.min(Math.max(ms, 0), longestDelay));
      stop = resolve;
      this.signal.addEventListener("abort", stop);
      if (this.signal.aborted) {
        resolve();
      }
      void changed?.then(resolve);
    });
    clearTimeout(timer);
    this.signal.removeEventListener("abort", stop);
  }
}
