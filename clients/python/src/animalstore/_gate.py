from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from ._errors import Limit, Window
from ._options import RateLimit

RECHECK_AFTER = 120.0
"""How long after the latest request a new call may check whether a limit still applies,
because a ban may have been lifted or a plan upgraded. That is far too rare to cause a ban."""

LONGEST_MINUTE = 62.0
"""The longest that a minute window can seem to last: it ends on a whole second, and our
estimate of the server's clock is off by at most a second."""

LONGEST_WINDOW = 25 * 60 * 60.0


@dataclass(frozen=True)
class Ticket:
    """The right to send one request. Its holder must return it."""

    number: int
    waits: bool
    """The service may delay the response, so no other call waits for it."""


@dataclass(frozen=True)
class Decision:
    """When a request may be sent, or when to decide again."""

    at: float
    limit: Limit | None = None
    """The limit to wait for, if it's known."""
    pace: bool = False
    """The wait is only for pacing: something is left."""


@dataclass(frozen=True)
class Refusal:
    """A 429 of the service, which applies to all calls."""

    limit: Limit
    until: float
    ticket: int


@dataclass(frozen=True)
class Admit:
    """A request may be sent."""

    ticket: Ticket


@dataclass(frozen=True)
class Hold:
    """A request has to wait, until the gate changes or the time has passed."""

    at: float
    wait: float
    limit: Limit | None
    version: int


class Gate:
    """Admits requests as the key's limits allow, according to the headers of the responses
    so far. All calls of a client share it, so that not every call has to hit a limit to
    learn about it.

    It relies on one observation. Take the lowest Remaining of all responses in a window:
    every request that the service charged after that one has no response yet, because its
    response would have had a lower Remaining. So this number, minus the requests in flight
    and those whose response was lost, never exceeds what is left, as long as nobody else
    uses the key."""

    def __init__(self, pacing: bool) -> None:
        self._pacing = pacing
        self._lock = threading.Lock()
        self._listeners: set[Callable[[], None]] = set()
        self._version = 0
        self._offset = time.time() - time.monotonic()
        self._in_flight = 0
        self._waiting = 0  # those in flight that the service may delay
        self._sent = 0  # numbers the tickets
        self._last = 0.0  # when the latest request was sent
        self._seen: RateLimit | None = None

        self._window: tuple[int, int] | None = None  # the latest responses' window: limit and reset
        self._as_of = 0  # the latest ticket with a response about it
        self._low = 0  # its lowest Remaining
        self._uncertain = 0  # requests in it that may have been charged, not confirmed by a response
        self._reset_at = 0.0  # when it ends, by our clock
        self._refusal: Refusal | None = None
        self._closed_by = 0  # the ticket of the latest refusal
        self._ahead: float | None = None  # the server's clock is at least this far ahead

    def now(self) -> float:
        """Unix seconds of a clock that can't be set."""
        return time.monotonic() + self._offset

    @property
    def seen(self) -> RateLimit | None:
        return self._seen

    def admit(self, waits: bool, left: float) -> Admit | Hold:
        """Admits a request, or says how long to wait. `left` is the time that the call
        has: pacing doesn't make it fail."""
        with self._lock:
            now = self.now()
            decision = self._decide(now)
            wait = decision.at - now
            if wait > 0 and not (decision.pace and wait > left):
                return Hold(decision.at, wait, decision.limit, self._version)
            self._sent += 1
            self._in_flight += 1
            self._waiting += waits
            self._last = now
            return Admit(Ticket(self._sent, waits))

    def _decide(self, now: float) -> Decision:
        recheck = not self._pacing and now - self._last >= RECHECK_AFTER
        if self._refusal and now < self._refusal.until and not recheck:
            until = self._refusal.until
            return Decision(until, replace(self._refusal.limit, retry_after=until - now))
        if now >= self._reset_at:  # nothing is known about the current window
            if self._in_flight - self._waiting < self._max_unknown():
                return Decision(now)
            return Decision(now + RECHECK_AFTER)  # a response comes sooner
        if self._spare() <= 0 and not recheck:
            if self._in_flight > self._waiting:
                return Decision(self._reset_at)  # a response may show more
            return Decision(self._reset_at, self._used_up(now))
        return Decision(self._slot(), pace=True)

    def _max_unknown(self) -> float:
        """How many requests may be in flight in a window that no response has described
        yet. With pacing, a single request finds out."""
        if self._pacing:
            return 1
        return self._window[0] if self._window and self._window[0] > 0 else float("inf")

    def _spare(self) -> int:
        """How many requests may be sent now."""
        return self._low - self._in_flight - self._uncertain

    def _slot(self) -> float:
        """When the next request may be sent. Without pacing that is immediately. With
        pacing, half of a minute's requests are sent immediately, and the others are spread
        evenly over the rest of the minute. A day is not spread: a job that can't finish
        today should still do as much as it can today."""
        left, rest = self._spare(), self._reset_at - self._last
        if not self._pacing or not self._window or 2 * left > self._window[0] or rest > LONGEST_MINUTE:
            return self._last
        return self._last + rest / (left + 1)

    def return_unsent(self, ticket: Ticket) -> None:
        """Returns the ticket of a request that was never sent."""
        with self._returning(ticket):
            pass

    def return_lost(self, ticket: Ticket) -> None:
        """Returns the ticket of a request without a response, which may have been charged."""
        with self._returning(ticket):
            self._uncertain += 1

    def return_received(
        self, ticket: Ticket, status: int, seen: RateLimit | None, date: float | None, refused: Limit | None
    ) -> None:
        """Returns the ticket of a request with a response. `refused` is for a 429."""
        with self._returning(ticket):
            now = self.now()
            if refused:
                self._ahead = None  # the reason may be a wrong estimate of the clock
            if date is not None:
                # A date is truncated to seconds and already a little old, so it gives a
                # lower bound. The largest value is the most accurate.
                ahead = date - now
                self._ahead = ahead if self._ahead is None else max(self._ahead, ahead)
            if refused:
                self._close(ticket, refused, now)
            elif seen is None or status in (401, 503):
                # Until the key is checked, the headers are about the caller's address.
                self._uncertain += 1
                return
            elif ticket.number > self._closed_by:
                self._refusal = None
            if seen:
                self._seen = seen
                self._observe(ticket, seen, now)
            if refused and self._refusal and now < self._refusal.until < self._reset_at:
                self._reset_at = self._refusal.until  # the same instant, more accurate

    @contextmanager
    def _returning(self, ticket: Ticket) -> Generator[None, None, None]:
        with self._lock:
            self._in_flight -= 1
            self._waiting -= ticket.waits
            try:
                yield
            finally:
                self._version += 1
                listeners = list(self._listeners)
        for listener in listeners:
            listener()

    @contextmanager
    def listening(self, listener: Callable[[], None], version: int) -> Generator[None, None, None]:
        """Calls the listener immediately if the gate has changed since `version`, and whenever
        it changes."""
        with self._lock:
            self._listeners.add(listener)
            changed = self._version != version
        try:
            if changed:
                listener()
            yield
        finally:
            with self._lock:
                self._listeners.discard(listener)

    def _close(self, ticket: Ticket, refused: Limit, now: float) -> None:
        """Stops all requests for as long as the service told one of them to wait."""
        if refused.retry_after > 0 and ticket.number >= self._closed_by:
            self._refusal = Refusal(refused, now + refused.retry_after, ticket.number)
            self._closed_by = ticket.number

    def _observe(self, ticket: Ticket, seen: RateLimit, now: float) -> None:
        """Updates the window from the headers of a response."""
        reset = seen.reset.timestamp()
        observed = (seen.limit, int(reset))
        reset_at = reset - (self._ahead or 0.0)
        if reset_at - now > LONGEST_WINDOW:
            return  # no window is that long, so the clocks can't be compared
        if observed == self._window:
            self._low = min(self._low, seen.remaining)
        elif ticket.number < self._as_of:
            return  # an earlier window
        else:
            self._window, self._low, self._uncertain = observed, seen.remaining, 0
        self._as_of, self._reset_at = max(self._as_of, ticket.number), reset_at

    def _used_up(self, now: float) -> Limit:
        limit, reset = self._window or (0, 0)
        left = self._reset_at - now
        window: Window = "day" if left > LONGEST_MINUTE else "minute"
        return Limit(window, limit, datetime.fromtimestamp(reset, timezone.utc), left)
