"""Decides what a client sends, whether and how long it waits, and what a response means.

The core does no input or output. A call is a generator: it yields what to do next, an
Exchange or a Pause, and gets the outcome. Client and AsyncClient each run it in their own
way, so both behave the same."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast
from urllib.parse import urlencode, urlsplit

from ._call import Call, Repeat
from ._errors import (
    AnimalStoreError,
    BaseURLError,
    CallTimeoutError,
    InvalidArgumentError,
    NetworkError,
    ServiceError,
    not_sent,
)
from ._gate import Admit, Gate, Ticket
from ._headers import first, http_date, read_rate_limit
from ._options import CallAttempt, CallOptions, CancelToken, Settings, Wait
from ._response import Failure, Reader, Received, read_meta

T = TypeVar("T")

VERSION_PATH = "/v1"

NOT_IN_TIME = "no response in time"

RETRY_WINDOW = 23 * 60 * 60.0
"""How long a change may be retried after an attempt that may have succeeded. The
service stores an Idempotency-Key for 24 hours; the difference is a margin for clocks and
networks."""


@dataclass(frozen=True)
class Exchange:
    """Send a request and receive the response."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None
    timeout: float
    cancel: CancelToken | None
    stream: bool = False
    """Leave a stream of events open, and don't read it."""


@dataclass
class Opened:
    """A stream of events that has begun."""

    received: Received
    stream: Any
    """What the runner reads it with."""


@dataclass(frozen=True)
class Read:
    """Wait for the next bytes of a stream. The outcome is b"" at its end, or None if nothing
    arrived in time."""

    stream: Any
    timeout: float
    cancel: CancelToken | None


@dataclass(frozen=True)
class Close:
    """Close a stream."""

    stream: Any


@dataclass(frozen=True)
class Pause:
    """Wait for a time, until cancelled, or until the gate has changed since a version."""

    seconds: float
    cancel: CancelToken | None
    gate: Gate | None = None
    version: int = 0


@dataclass
class Lost:
    """A request without a response."""

    error: Exception | None
    """None if the call was cancelled."""
    timed_out: bool = False
    unsent: bool = False
    """There was no connection, so nothing can have been sent."""
    permanent: bool = False
    """A retry would fail in the same way."""


Steps = Generator[Exchange | Pause | Read | Close, Received | Lost | Opened | bytes | None, T]
"""A running call."""


class Core:
    """What the calls of a client share."""

    def __init__(self, base_url: str, api_key: str, settings: Settings) -> None:
        check_key(api_key)
        self.base_url = parse_base(base_url)
        self.settings = settings
        self.gate = Gate(settings.pacing)
        self._reader = Reader(self.base_url, api_key)

        def credential() -> dict[str, str]:  # a function, so that no dump of this object shows the key
            return {"Authorization": f"Bearer {api_key}", "User-Agent": settings.user_agent}

        self._credential = credential

    def call(self, call: Call[T], options: CallOptions, deadline: float | None = None) -> Steps[T]:
        """Makes a call: sends it until it succeeds or must not be retried. The result of one
        for a stream is the stream, or None if a stream can't be used, but long polls can."""
        call.prepare(self.base_url + call.path, options, deadline)
        unresolved: float | None = None  # when the first possibly successful attempt was sent
        attempt = 0
        while True:
            attempt += 1
            try:
                ticket = yield from self._enter(call, attempt, unresolved)
            except AnimalStoreError as e:
                e.attempts, e.outcome_unknown = attempt - 1, unresolved is not None
                raise
            sent = time.monotonic()
            call.attempt = attempt
            if meta := options.get("meta"):
                meta.attempts = attempt
            failure = yield from self._attempt(call, ticket)
            if failure is None:
                return cast(T, call.result)
            if failure.no_stream:
                return cast(T, None)
            if unresolved is not None and settles(call, failure):
                if call.method == "DELETE" and failure.code in ("pet_not_found", "photo_not_found"):
                    return cast(T, None)  # the earlier attempt removed it
                unresolved = None
            if unresolved is None and call.changes and not failure.unchanged:
                unresolved, call.resent = sent, True
            failure.error.attempts = attempt
            error = yield from self._pause(call, failure, attempt, unresolved)
            if error:
                error.outcome_unknown = unresolved is not None
                raise error

    def _enter(self, call: Call[T], attempt: int, unresolved: float | None) -> Steps[Ticket]:
        """Waits until the limits allow a request."""
        longest = self.settings.longest_wait
        if unresolved is not None:
            longest = min(longest, RETRY_WINDOW - (time.monotonic() - unresolved))
        reported = 0.0  # the end of the wait that on_wait was last called for
        while True:
            if interruption := call.interruption():
                raise interruption
            admission = self.gate.admit(call.wait > 0 or call.stream is not None, call.left())
            if isinstance(admission, Admit):
                return admission.ticket
            if admission.limit:
                error = not_sent(admission.limit, call.operation, call.request)
                if admission.wait > min(longest, call.left()):
                    raise error
                if admission.at != reported:
                    error.attempts = attempt - 1
                    self._report(Wait(call.operation, attempt - 1, admission.wait, error))
                    reported = admission.at
            wait = min(admission.wait, call.left())
            yield Pause(wait, call.options.get("cancel"), self.gate, admission.version)

    def _attempt(self, call: Call[T], ticket: Ticket) -> Steps[Failure | None]:
        """Sends a call once. Returns None if it succeeded."""
        timeout = self.settings.attempt_timeout + call.wait + call.extra_time
        headers = {**self._credential(), **call.headers()}
        url = self.base_url + call.path
        limit = min(timeout, call.left())
        cancel, streams = call.options.get("cancel"), call.stream is not None
        began = time.monotonic()
        try:
            got = yield Exchange(call.method, url, headers, call.content, limit, cancel, streams)
        except BaseException:  # the caller has left
            self.gate.return_lost(ticket)
            raise
        if isinstance(got, Opened):
            read_meta(call, got.received)
            call.result = got.stream
            self._return_received(ticket, got.received, None)
            self._report_attempt(call, got.received.status, began)
            return None
        if isinstance(got, Received):
            failure = self._reader.read(call, got)
            interruption = interrupted(call, got.timed_out and limit < timeout)
            if failure and got.broken and interruption:
                failure.error, failure.retryable = interruption, False
            self._return_received(ticket, got, failure)
            self._report_attempt(call, got.status, began)
            return failure
        assert isinstance(got, Lost)
        if got.unsent:
            self.gate.return_unsent(ticket)
        else:
            self.gate.return_lost(ticket)
        self._report_attempt(call, 0, began)
        return no_response(call, got, interrupted(call, got.timed_out and limit < timeout))

    def _return_received(self, ticket: Ticket, got: Received, failure: Failure | None) -> None:
        self.gate.return_received(
            ticket,
            got.status,
            read_rate_limit(got.headers),
            http_date(first(got.headers, "Date")),
            failure.limit if failure else None,
        )

    def _report_attempt(self, call: Call[T], status: int, began: float) -> None:
        if self.settings.on_attempt:
            path, request_id = urlsplit(self.base_url).path + call.path, call.request_id if status else ""
            seconds = time.monotonic() - began
            self.settings.on_attempt(
                CallAttempt(call.operation, call.method, path, call.attempt, status, request_id, seconds)
            )

    def pause_stream(self, call: Call[T], after: float, breaks: int) -> Steps[None]:
        """Waits after a stream has ended, for the time that the service asked for and the
        usual pause."""
        ended = NetworkError("the stream ended", operation=call.operation, request=call.request)
        ended.attempts = breaks
        error = yield from self._pause(call, Failure(ended, retryable=True, after=after), breaks, None)
        if error:
            raise call.counted(error)

    def _pause(
        self, call: Call[T], failure: Failure, attempt: int, unresolved: float | None
    ) -> Steps[AnimalStoreError | None]:
        """Waits until a call may be retried, or returns its error if it may not."""
        error, settings = failure.error, self.settings
        if not failure.retryable and not (call.endless and failure.status >= 500):
            return error
        if call.repeat is Repeat.HARMFUL and not failure.unchanged:
            return error
        if attempt >= settings.max_attempts and not call.endless:
            return error
        if failure.status and failure.after > settings.longest_wait:  # otherwise a stream has ended
            return error
        wait = failure.after + self._jitter(attempt)
        if wait > call.left():
            error.hint = f" (the timeout leaves no time for a retry in {wait:.3f} s)"
            return error
        if unresolved is not None and time.monotonic() + wait - unresolved > RETRY_WINDOW:
            return error
        if not call.interruption():
            self._report(Wait(call.operation, attempt, wait, error))
            yield Pause(wait, call.options.get("cancel"))
        interruption = call.interruption(f" while waiting to retry after: {error}")
        if interruption:
            interruption.__cause__ = error
        return interruption

    def _jitter(self, attempts: int) -> float:
        """How long to back off, in addition to Retry-After: a random part of the whole
        span, so that clients that failed together don't retry together."""
        span = self.settings.backoff_base * 2.0 ** min(attempts - 1, 64)
        return random.random() * min(self.settings.backoff_max, span)

    def _report(self, wait: Wait) -> None:
        if self.settings.on_wait:
            self.settings.on_wait(wait)


def settles(call: Call[Any], failure: Failure) -> bool:
    """Whether a failure shows the outcome of the earlier attempts without a response."""
    if not failure.code or failure.status >= 500 or failure.status == 429:
        return False
    if failure.status in (401, 403):
        return False  # the service checked nothing else
    if call.repeat is Repeat.REPLAYED:
        return True  # otherwise it would have repeated the earlier response
    # Ids are never reused, so a pet that can't be removed now wasn't removed before. A
    # revoked key remains, with another ETag.
    return call.method == "DELETE" and (call.operation, failure.code) != ("revoke_key", "precondition_failed")


def interrupted(call: Call[Any], by_deadline: bool) -> AnimalStoreError | None:
    """Returns an error if an attempt ended because its caller cancelled the call, or at the
    deadline: that may be a little earlier than the call's own clock says."""
    if by_deadline:
        return CallTimeoutError("the timeout passed", operation=call.operation, request=call.request)
    return call.interruption()


def no_response(call: Call[Any], lost: Lost, interruption: AnimalStoreError | None) -> Failure:
    """Returns the failure of a request without a response."""
    if interruption:
        return Failure(interruption, unchanged=lost.unsent)
    reason = NOT_IN_TIME if lost.timed_out else str(lost.error) or type(lost.error).__name__
    error = NetworkError(reason, operation=call.operation, request=call.request)
    error.__cause__ = lost.error
    no_stream = call.stream is not None and lost.timed_out
    return Failure(error, retryable=not lost.permanent, unchanged=lost.unsent, no_stream=no_stream)


def check_key(api_key: str) -> None:
    """Checks that a key can be sent as a bearer token. The errors don't quote it."""
    if not api_key:
        raise InvalidArgumentError("the API key is empty")
    if not re.fullmatch(r"[!-~]+", api_key):
        raise InvalidArgumentError(
            "the API key contains an invalid character: is there a space or a line break at the end?"
        )


def parse_base(base_url: str) -> str:
    """Returns the URL of a deployment with /v1 at its end."""
    example = "the base URL must be like https://pets.example or http://127.0.0.1:8080/v1"
    try:
        url = urlsplit(base_url)
        valid = url.scheme in ("http", "https") and bool(url.hostname) and (url.port is None or url.port >= 0)
    except ValueError:
        raise BaseURLError(example) from None
    if "@" in url.netloc:
        raise BaseURLError("the base URL must not have a user or password in it: pass the API key separately")
    if not valid or re.search(r"[\x00-\x20\x7f]", base_url):
        raise BaseURLError(example)
    if "?" in base_url or "#" in base_url:
        raise BaseURLError("the base URL must not have a query or a fragment")
    path = url.path.rstrip("/")
    if not path.endswith(VERSION_PATH):
        path += VERSION_PATH
    return f"{url.scheme}://{url.netloc}{path}"


def path_with(path: str, query: Mapping[str, str | int | Sequence[int] | None]) -> str:
    """Adds the parameters that are set to a path."""
    values = {
        name: ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        for name, value in query.items()
        if value is not None
    }
    return f"{path}?{urlencode(values)}" if values else path


def pet_not_found(call: Call[Any], pet_id: int) -> ServiceError:
    message = f"there is no pet with id {pet_id}"
    error = ServiceError("pet_not_found", message, 404, call.request_id, operation=call.operation, request=call.request)
    return call.counted(error)
