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
  limit?: Limit | undefined;
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
export interface Gate {
  /** The rate limit of the latest response that had one. */
  seen(): RateLimit | undefined;
  /**
   * Waits until a request may be sent. Before it waits for a limit it calls onWait. If that
   * wait would be longer than maxWait or than the scope allows, it throws a RateLimitError
   * instead. waits says that the service may delay the response: then no other call waits
   * for it.
   */
  enter(scope: Scope, origin: Origin, waits: boolean, maxWait: number, onWait: (ms: number, why: RateLimitError) => void): Promise<Ticket>;
  /** Returns the ticket of a request without a response. charged says that it may have been charged. */
  lost(ticket: Ticket, charged: boolean): void;
  /** Returns the ticket of a request with a response. refusal is set if that was a 429. */
  received(ticket: Ticket, response: Response, refusal: Limit | undefined): void;
}

export function newGate(pacing: boolean): Gate {
  let seen: RateLimit | undefined;
  let [changed, wake] = signal();
  let inFlight = 0;
  let waiting = 0; // those in flight that the service may delay
  let sent = 0; // requests so far; numbers the tickets
  let last = -Infinity; // when the latest one was sent

  let windowLimit = 0; // of the latest responses' window
  let windowReset = 0;
  let asOf = 0; // the latest ticket with a response about it
  let low = 0; // its lowest Remaining
  let uncertain = 0; // requests in it that may have been charged, not confirmed by a response
  let resetAt = -Infinity; // when it ends, by our clock

  // The latest refusal by the service, which applies to all calls.
  let refused: Limit | undefined;
  let closed = -Infinity; // its end, by our clock
  let closedBy = 0; // the ticket that was refused

  let ahead: number | undefined; // the server's clock is at least this far ahead of ours

  function decide(now: number): Decision {
    const recheck = !pacing && now - last >= recheckAfter;
    if (now < closed && !recheck && refused !== undefined) {
      return { at: closed, limit: refused };
    }
    if (now >= resetAt) {
      // Nothing is known about the current window. With pacing, a single request finds out.
      const most = pacing ? 1 : windowLimit || Infinity;
      return { at: inFlight - waiting < most ? now : now + recheckAfter }; // a response comes sooner
    }
    const left = low - inFlight - uncertain;
    if (left <= 0 && !recheck) {
      // A response may show more.
      return { at: resetAt, limit: inFlight > waiting ? undefined : usedUp(now) };
    }
    return { at: slot(left), pace: true };
  }

  /**
   * When the next request may be sent. Without pacing that is immediately. With pacing,
   * half of a minute's requests are sent immediately, and the others are spread evenly over
   * the rest of the minute. A day is not spread.
   */
  function slot(left: number): number {
    const rest = resetAt - last;
    return !pacing || 2 * left > windowLimit || rest > longestMinute ? last : last + rest / (left + 1);
  }

  /** The limit of the current window, which has nothing left. */
  function usedUp(now: number): Limit {
    const retryAfter = resetAt - now;
    return { window: retryAfter > longestMinute ? "day" : "minute", limit: windowLimit, reset: new Date(windowReset), retryAfter };
  }

  /** Counts a request that is no longer in flight. */
  function returned(ticket: Ticket): void {
    inFlight--;
    waiting -= +ticket.waits;
  }

  /** Makes all waiting calls decide again. */
  function notify(): void {
    wake();
    [changed, wake] = signal();
  }

  /** Updates the window from the headers of a response. */
  function observe({ number }: Ticket, { limit, remaining, reset }: RateLimit, now: number): void {
    const end = reset.getTime();
    const endHere = end - (ahead ?? 0);
    if (endHere - now > 25 * 3_600_000) {
      return; // no window is that long, so the clocks can't be compared
    }
    if (limit === windowLimit && end === windowReset) {
      low = Math.min(low, remaining);
    } else if (number < asOf) {
      return; // an earlier window
    } else {
      windowLimit = limit;
      windowReset = end;
      low = remaining;
      uncertain = 0;
    }
    asOf = Math.max(asOf, number);
    resetAt = endHere;
  }

  return {
    seen: () => seen,

    async enter(scope, origin, waits, maxWait, onWait) {
      let reported = -Infinity; // the end of the wait that onWait was last called for
      for (;;) {
        if (scope.signal.aborted) {
          throw scope.error(origin);
        }
        const now = clock();
        const { at, limit, pace } = decide(now);
        const wait = at - now;
        const left = scope.deadline - now;
        if (wait <= 0 || (pace && wait > left)) {
          inFlight++;
          waiting += +waits;
          last = now;
          return { number: ++sent, waits };
        }
        if (limit !== undefined) {
          const error = notSent(limit, wait, origin);
          if (wait > Math.min(maxWait, left)) {
            throw error;
          }
          if (at !== reported) {
            onWait(wait, error);
            reported = at;
          }
        }
        await scope.wait(wait, changed);
      }
    },

    lost(ticket, charged) {
      returned(ticket);
      uncertain += +charged;
      notify();
    },

    received(ticket, { status, headers }, refusal) {
      returned(ticket);
      const now = clock();
      if (refusal !== undefined) {
        ahead = undefined; // the reason may be a wrong estimate of the clock
      }
      // A date is truncated to seconds and already a little old, so it gives a lower bound
      // for how far the server is ahead; the largest value is the most accurate.
      // Without it, both clocks are assumed to agree.
      const date = Date.parse(headers.get("Date") ?? "");
      if (date) {
        ahead = Math.max(ahead ?? -Infinity, date - now);
      }
      const limit = readRateLimit(headers);
      if (refusal !== undefined) {
        // Stops all requests for as long as the service told one of them to wait.
        if (refusal.retryAfter > 0 && ticket.number >= closedBy) {
          refused = refusal;
          closed = now + refusal.retryAfter;
          closedBy = ticket.number;
        }
      } else if (limit === undefined || status === 401 || status === 503) {
        // Until the key is checked, the headers are about the caller's address.
        uncertain++;
        notify();
        return;
      } else if (ticket.number > closedBy) {
        closed = -Infinity;
      }
      if (limit !== undefined) {
        seen = limit;
        observe(ticket, limit, now);
      }
      if (refusal !== undefined && now < closed && closed < resetAt) {
        resetAt = closed; // the same instant, more accurate
      }
      notify();
    },
  };
}

/** A promise and the function that fulfils it. */
function signal(): [Promise<void>, () => void] {
  let fulfil = () => {};
  const promise = new Promise<void>((resolve) => (fulfil = resolve));
  return [promise, fulfil];
}
