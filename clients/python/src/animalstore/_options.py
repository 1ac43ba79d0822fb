from __future__ import annotations

import re
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TypedDict

from ._errors import AnimalStoreError, InvalidArgumentError

FOREVER = float("inf")


@dataclass(frozen=True)
class RateLimit:
    """The rate limit headers of a response. They describe the minute, unless the day has
    fewer requests left."""

    limit: int
    remaining: int
    reset: datetime
    """By the server's clock."""


@dataclass
class Meta:
    """The information in a response outside its body. Pass one as the option `meta`."""

    status: int = 0
    etag: str = ""
    """For `if_match` and `if_none_match`; "" if there is none."""
    request_id: str = ""
    """Identifies the request in the server's log."""
    replayed: bool = False
    """This is the response to an earlier request with the same Idempotency-Key."""
    ban_lifted: bool = False
    """`unban_key` lifted a ban."""
    attempts: int = 0
    next_cursor: str = ""
    """Where the next page of a list begins; "" after the last page. See `cursor`."""
    rate_limit: RateLimit | None = None
    age: int = 0
    """How many seconds old the counts of `get_inventory` are."""

    def clear(self) -> None:
        for one in fields(self):
            setattr(self, one.name, one.default)


@dataclass(frozen=True)
class Wait:
    """A pause that a call is about to make."""

    operation: str
    """The method that was called, such as create_pet."""
    attempt: int
    """The number of attempts so far."""
    seconds: float
    reason: AnimalStoreError
    """A RateLimitError for a limit, otherwise the error of the attempt that will be
    retried."""


@dataclass(frozen=True)
class CallAttempt:
    """A request that was sent, and its response. It contains neither the key nor bodies."""

    operation: str
    """The method that was called, such as create_pet."""
    method: str
    """Of HTTP."""
    path: str
    """With the query."""
    number: int
    """1 for the first attempt of a call."""
    status: int
    """Of HTTP; 0 without a response."""
    request_id: str
    """Identifies the request in the server's log."""
    seconds: float
    """Until the end of the response, or until a stream of events began."""


class CancelToken:
    """Cancels calls from another thread or task: pass it as the option `cancel` and call
    `cancel()`. A call that is waiting or running then raises CallCancelledError. Calls of
    an AsyncClient can also be cancelled by cancelling their task."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: set[Callable[[], None]] = set()
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    @contextmanager
    def listening(self, listener: Callable[[], None]) -> Generator[None, None, None]:
        """Calls the listener when the token is cancelled, immediately if it already is."""
        with self._lock:
            self._listeners.add(listener)
        try:
            if self._cancelled:
                listener()
            yield
        finally:
            with self._lock:
                self._listeners.discard(listener)


class CallOptions(TypedDict, total=False):
    """Options of every call."""

    timeout: float | None
    """Seconds for the whole call, including all attempts and waits. For a list or events:
    for the whole loop."""
    cancel: CancelToken | None
    """Cancels the call from elsewhere."""
    meta: Meta | None
    """Filled from the headers of the response. For a list, that is the latest page. After
    an error it is the latest response."""


class ReadOptions(CallOptions, total=False):
    """Options of a read."""

    if_none_match: str
    """Raises NotModifiedError if the resource still has this ETag. For a list, that is the
    ETag of the first page. "" has no effect."""


class ListOptions(ReadOptions, total=False):
    """Options of a list."""

    cursor: str
    """Begins at a cursor that `Meta.next_cursor` returned for the same query. "" has no
    effect."""
    one_page: bool
    """Ends after one page. `Meta.next_cursor` says where the next one begins. A page can
    have fewer entries than its size, or none, although others follow."""


class CreateOptions(CallOptions, total=False):
    """Options of create_pet, create_pet_batch, place_order and add_photo."""

    idempotency_key: str
    """Identifies the request, so that it is executed only once, however often it is
    sent within 24 hours, even by different processes. By default a random key for each
    call covers its retries. Pass one if you may have to repeat the call itself: 1 to 255
    visible ASCII characters, the same for the same content."""


class ChangeOptions(CallOptions, total=False):
    """Options of a change of a resource."""

    if_match: str
    """Makes the change only if the resource still has this ETag, otherwise the error has
    the code precondition_failed. Get the ETag, with its quotes, from `Meta.etag`."""


class PutOptions(ChangeOptions, total=False):
    """Options of put_category."""

    if_none_match: str
    """"*" only creates: if the resource exists, the error has the code
    precondition_failed."""


class AllOptions(ListOptions, CreateOptions, ChangeOptions, total=False):
    """All options, for the code that reads them."""


@dataclass
class Settings:
    """The options of a client."""

    user_agent: str
    max_attempts: int
    backoff_base: float
    backoff_max: float
    max_wait: float | None
    attempt_timeout: float
    pacing: bool
    on_wait: Callable[[Wait], None] | None
    on_attempt: Callable[[CallAttempt], None] | None
    longest_wait: float = field(init=False)

    def __post_init__(self) -> None:
        self.longest_wait = FOREVER if self.max_wait is None else self.max_wait
        if self.max_attempts < 1:
            raise InvalidArgumentError(f"max_attempts must be at least 1, not {self.max_attempts}")
        if not 0 < self.backoff_base <= self.backoff_max:
            raise InvalidArgumentError(
                "backoff_base must be positive and backoff_max not below it, "
                f"not {self.backoff_base} and {self.backoff_max}"
            )
        if not self.attempt_timeout > 0:
            raise InvalidArgumentError(f"attempt_timeout must be positive, not {self.attempt_timeout}")
        if not self.longest_wait >= 0:
            raise InvalidArgumentError(f"max_wait must not be negative, not {self.max_wait}")
        if not re.fullmatch(r"[ -~]*", self.user_agent):
            raise InvalidArgumentError("the user agent must be plain ASCII, without line breaks")
