import { notSent, type Limit, type Origin, type RateLimitError } from "./errors.js";
import type { RateLimit } from "./options.js";
import { readRateLimit } from "./headers.js";
import { clock, type Scope } from "./scope.js";

/** The right to send one request. */
export interface Ticket {
  number: number;
  /** The service may delay its response. */
  waits: boolean;
}

/** When a request may be sent, or when to decide again. */
interface Decision {
  at: number;
  /** The limit to wait for, if it's known. */
  limit?: Limit;
  /** The wait is only for pacing: something is left. */
  pace?: boolean;
}

/**
 * How long after the latest request a new call may check whether a limit still applies,
 * because a ban may have been lifted or a plan upgraded.
 */
const recheckAfter = 120_000;

/**
 * The longest that a minute window can seem to last: it ends on a whole second, and the
 * estimate of the server's clock is off by at most a second.
 */
const longestMinute = 62_000;

/**
 * Admits requests as the key's limits allow, according to the headers of the responses so
 * far. All calls of a client share it, so that not every call has to hit a limit to learn
 * about it.
 *
 * It relies on one observation. Take the lowest Remaining of all responses in a window:
 * every request that the service charged after that one has no response yet, because its
 * response would have had a lower Remaining. So this number, minus the requests in flight
 * and those whose response was lost, never exceeds what is left, as long as nobody else
 * uses the key.
 */
export class Gate {
  /** The rate limit of the latest response that had one. */
  seen: RateLimit | undefined;

  readonly #pacing: boolean;
  #changed: Promise<void>;
  #wake: () => void;
  #inFlight = 0;
  #waiting = 0; // those in flight that the service may delay
  #sent = 0; // requests so far; numbers the tickets
  #last = -Infinity; // when the latest one was sent

  #window = { limit: 0, reset: 0 }; // of the latest responses
  #asOf = 0; // the latest ticket with a response about it
  #low = 0; // its lowest Remaining
  #uncertain = 0; // requests in it that may have been charged, not confirmed by a response
  #resetAt = -Infinity; // when it ends, by our clock

  // An estimate of how much others use the key in the window.
  #first = 0; // Remaining when the window was first seen
  #ours = 0; // our requests that may have been charged since
  #used = 0; // requests of others since, at least
  #leap = 0; // the most of them between two responses
  #earlierLeap = 0; // the same in the previous window

  // The latest refusal by the service, which applies to all calls.
  #refusal: Limit | undefined;
  #closed = -Infinity; // its end, by our clock
  #closedBy = 0; // the ticket that was refused

  #ahead: number | undefined; // the server's clock is at least this far ahead of ours

  constructor(pacing: boolean) {
    this.#pacing = pacing;
    [this.#changed, this.#wake] = signal();
  }

  /**
   * Waits until a request may be sent. Before it waits for a limit it calls onWait. If that
   * wait would be longer than maxWait or than the scope allows, it throws a RateLimitError
   * instead. waits says that the service may delay the response: then no other call waits
   * for it.
   */
  async enter(scope: Scope, origin: Origin, waits: boolean, maxWait: number, onWait: (ms: number, why: RateLimitError) => void): Promise<Ticket> {
    let reported = -Infinity; // the end of the wait that onWait was last called for
    for (;;) {
      if (scope.signal.aborted) {
        throw scope.error(origin);
      }
      const now = clock();
      const decision = this.#decide(now);
      const wait = decision.at - now;
      const left = scope.deadline - now;
      if (wait <= 0 || (decision.pace && wait > left)) {
        return this.#admit(now, waits);
      }
      if (decision.limit !== undefined) {
        const error = notSent(decision.limit, wait, origin);
        if (wait > Math.min(maxWait, left)) {
          throw error;
        }
        if (decision.at !== reported) {
          onWait(wait, error);
          reported = decision.at;
        }
      }
      await scope.wait(wait, this.#changed);
    }
  }

  #admit(now: number, waits: boolean): Ticket {
    this.#sent++;
    this.#inFlight++;
    if (waits) {
      this.#waiting++;
    }
    this.#ours++;
    this.#last = now;
    return { number: this.#sent, waits };
  }

  #decide(now: number): Decision {
    const recheck = !this.#pacing && now - this.#last >= recheckAfter;
    if (now < this.#closed && !recheck && this.#refusal !== undefined) {
      return { at: this.#closed, limit: this.#refusal };
    }
    if (now >= this.#resetAt) {
      // Nothing is known about the current window.
      if (this.#inFlight - this.#waiting < this.#maxUnknown()) {
        return { at: now };
      }
      return { at: now + recheckAfter }; // a response comes sooner
    }
    if (this.#spare() <= 0 && !recheck) {
      if (this.#inFlight > this.#waiting) {
        return { at: this.#resetAt }; // a response may show more
      }
      return { at: this.#resetAt, limit: this.#usedUp(now) };
    }
    return { at: this.#slot(), pace: true };
  }

  /**
   * How many requests may be in flight in a window that no response has described yet.
   * With pacing, a single request finds out.
   */
  #maxUnknown(): number {
    return this.#pacing ? 1 : this.#window.limit || Infinity;
  }

  /**
   * How many requests may be sent now. With pacing it leaves room for twice as many
   * requests by others as there were between two responses: once for those since the latest
   * response, once for those before the next.
   */
  #spare(): number {
    const spare = this.#low - this.#inFlight - this.#uncertain;
    if (!this.#pacing) {
      return spare;
    }
    return spare - Math.min(2 * Math.max(this.#leap, this.#earlierLeap), Math.floor(this.#window.limit / 2));
  }

  /**
   * When the next request may be sent. Without pacing that is immediately. With pacing,
   * half of a minute's requests are sent immediately, and the others are spread evenly over
   * the rest of the minute. A day is not spread.
   */
  #slot(): number {
    const left = this.#spare();
    const rest = this.#resetAt - this.#last;
    if (!this.#pacing || 2 * left > this.#window.limit || rest > longestMinute) {
      return this.#last;
    }
    return this.#last + rest / (left + 1);
  }

  /** Returns the ticket of a request that was never sent. */
  returnUnsent(ticket: Ticket): void {
    this.#returned(ticket);
    this.#notify();
  }

  /** Returns the ticket of a request without a response, which may have been charged. */
  returnLost(ticket: Ticket): void {
    this.#returned(ticket);
    this.#uncertain++;
    this.#notify();
  }

  /** Returns the ticket of a request with a response. refusal is set if that was a 429. */
  returnAnswered(ticket: Ticket, status: number, headers: Headers, refusal: Limit | undefined): void {
    this.#returned(ticket);
    const now = clock();
    if (refusal !== undefined) {
      this.#ahead = undefined; // the reason may be a wrong estimate of the clock
    }
    this.#readDate(headers, now);
    const limit = readRateLimit(headers);
    if (refusal !== undefined) {
      this.#close(ticket, refusal, now);
    } else if (limit === undefined || status === 401 || status === 503) {
      // Until the key is checked, the headers are about the caller's address.
      this.#uncertain++;
      this.#notify();
      return;
    } else if (ticket.number > this.#closedBy) {
      this.#closed = -Infinity;
    }
    if (limit !== undefined) {
      this.seen = limit;
      this.#observe(ticket, limit, now);
    }
    if (refusal !== undefined && now < this.#closed && this.#closed < this.#resetAt) {
      this.#resetAt = this.#closed; // the same instant, more accurate
    }
    this.#notify();
  }

  #returned(ticket: Ticket): void {
    this.#inFlight--;
    if (ticket.waits) {
      this.#waiting--;
    }
  }

  /** Makes all waiting calls decide again. */
  #notify(): void {
    const wake = this.#wake;
    [this.#changed, this.#wake] = signal();
    wake();
  }

  /** Stops all requests for as long as the service told one of them to wait. */
  #close(ticket: Ticket, refusal: Limit, now: number): void {
    if (refusal.retryAfter === 0 || ticket.number < this.#closedBy) {
      return;
    }
    this.#refusal = refusal;
    this.#closed = now + refusal.retryAfter;
    this.#closedBy = ticket.number;
  }

  /**
   * Compares the server's clock with ours. A date is truncated to seconds and already a
   * little old, so it gives a lower bound for how far the server is ahead; the largest
   * value is the most accurate. Pages of another origin can't read it: there both clocks
   * are assumed to agree.
   */
  #readDate(headers: Headers, now: number): void {
    const date = Date.parse(headers.get("Date") ?? "");
    if (!Number.isNaN(date)) {
      this.#ahead = Math.max(this.#ahead ?? -Infinity, date - now);
    }
  }

  /** Updates the window from the headers of a response. */
  #observe(ticket: Ticket, limit: RateLimit, now: number): void {
    const reset = limit.reset.getTime();
    const resetAt = reset - (this.#ahead ?? 0);
    if (resetAt - now > 25 * 3_600_000) {
      return; // no window is that long, so the clocks can't be compared
    }
    if (limit.limit === this.#window.limit && reset === this.#window.reset) {
      this.#low = Math.min(this.#low, limit.remaining);
    } else if (ticket.number < this.#asOf) {
      return; // an earlier window
    } else {
      this.#window = { limit: limit.limit, reset };
      this.#low = this.#first = limit.remaining;
      this.#uncertain = 0;
      this.#ours = this.#inFlight;
      this.#used = 0;
      this.#earlierLeap = this.#leap;
      this.#leap = 0;
    }
    this.#asOf = Math.max(this.#asOf, ticket.number);
    this.#resetAt = resetAt;
    const used = this.#first - this.#low - this.#ours;
    if (used > this.#used) {
      this.#leap = Math.max(this.#leap, used - this.#used);
      this.#used = used;
    }
  }

  /** The limit of the current window, which has nothing left. */
  #usedUp(now: number): Limit {
    const wait = this.#resetAt - now;
    return {
      window: wait > longestMinute ? "day" : "minute",
      limit: this.#window.limit,
      reset: new Date(this.#window.reset),
      retryAfter: wait,
    };
  }
}

/** A promise and the function that fulfils it. */
function signal(): [Promise<void>, () => void] {
  let fulfil = () => {};
  const promise = new Promise<void>((resolve) => (fulfil = resolve));
  return [promise, fulfil];
}
