from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar, cast

from ._call import Call
from ._core import Core, Steps, path_with
from ._errors import AnimalStoreError, InvalidArgumentError, ResponseError
from ._headers import decimal, query_value
from ._json import encode, list_of
from ._models import Event, read_event
from ._options import CallOptions, ListOptions

T = TypeVar("T")

PAGE_SIZE = 100
"""The largest page, because every page is a request that counts."""

EVENTS_WAIT = 30
"""How many seconds the service waits for an event: the maximum it allows."""

Query = Mapping[str, str | int | Sequence[int] | None]


class Pages(Generic[T]):
    """The pages of a list, one request after the other."""

    def __init__(
        self, core: Core, operation: str, path: str, query: Query, read: Callable[[object], T], options: ListOptions
    ) -> None:
        self._core = core
        self._operation = operation
        self._read = list_of(read)
        self._options: CallOptions = options
        self._deadline: float | None = None
        self._started = False
        self._one_page = options.get("one_page", False)
        self._at = path_with(path, {**query, "cursor": options.get("cursor") or None})
        self.more = True

    def fetch(self) -> Steps[list[T]]:
        """Requests the next page."""
        page, call = yield from self._request(self._at)
        if call.next == self._at:
            raise no_link(call, "the list's link to the next page leads to the same page")
        self._at = call.next
        self.more = self._at != "" and not self._one_page
        return page

    def close(self) -> Steps[None]:
        """Releases what is kept between two pages."""
        yield from ()

    def _request(self, path: str, endless: bool = False, wait: float = 0.0) -> Steps[tuple[list[T], Call[list[T]]]]:
        """Requests a page. Conditions are only for the first one, and the timeout is for
        all of them together."""
        self._start()
        options = self._options
        if self._started:
            options = cast(CallOptions, {name: one for name, one in options.items() if name != "if_none_match"})
        call = Call(self._operation, "GET", path, self._read, is_list=True, endless=endless, wait=wait)
        page = yield from self._core.call(call, options, self._deadline)
        self._started = True
        return page, call

    def _start(self) -> None:
        """Starts the time for the whole list."""
        timeout = self._options.get("timeout")
        if timeout is not None and self._deadline is None:
            self._deadline = time.monotonic() + timeout


@dataclass(frozen=True)
class EventsQuery:
    """Selects events."""

    after: int | None
    latest: bool
    before: int | None
    newest: bool
    types: Sequence[str] | str | None
    subject: str | None
    pet_id: int | None = None
    since: datetime | None = None

    def values(self, operation: str, limit: int) -> dict[str, str | int | Sequence[int] | None]:
        positions = (self.after or None, self.latest or None, self.before or None, self.newest or None)
        if sum(position is not None for position in positions) > 1:
            message = "only one of after, latest, before and newest can be set"
            raise InvalidArgumentError(message, operation=operation)
        if self.since is not None and (self.after is not None or self.latest):
            message = "since can't be used with after or latest"
            raise InvalidArgumentError(message, operation=operation)
        types = self.types if isinstance(self.types, str) else ",".join(self.types or ())
        return {
            "limit": limit,
            "type": types or None,
            "subject": self.subject or None,
            "petId": self.pet_id,
            "after": "latest" if self.latest else self.after or None,
            "before": "latest" if self.newest else self.before or None,
            "since": encode(self.since),
        }

    @property
    def backwards(self) -> bool:
        return bool(self.before) or self.newest


class EventPages(Pages[Event]):
    """The events so far."""

    _endless = False

    def __init__(self, core: Core, operation: str, query: EventsQuery, options: CallOptions) -> None:
        super().__init__(core, operation, "/events", {}, read_event, cast(ListOptions, options))
        self._query = query.values(operation, PAGE_SIZE)
        self._find_latest = query.latest
        self._backwards = query.backwards
        self._failure: AnimalStoreError | None = None
        self._at = path_with("/events", self._query)

    def fetch(self) -> Steps[list[Event]]:
        if self._failure:
            raise self._failure
        if self._find_latest:
            # If the first page itself were requested with after=latest and the response
            # were lost, the retry would miss the events in between.
            self._query["after"] = yield from self.latest_id()
            self._at = path_with("/events", self._query)
            self._find_latest = False
        page, call = yield from self._request(self._at)
        if not call.next and not self._backwards:
            # The loop gets the events of this page before the error.
            self._failure = no_link(call, "the response has no link to the next events")
            return page
        self.more = call.next != "" and (self._backwards or call.next != self._at)
        self._at = call.next
        return page

    def latest_id(self) -> Steps[int]:
        """Requests the id of the newest event."""
        _, call = yield from self._request("/events?after=latest&limit=1", self._endless)
        newest = decimal(query_value(call.next, "after"))
        if newest is None:
            raise no_link(call, "the response has no link to the next events")
        return newest

    def one_page(self, query: EventsQuery, limit: int) -> Steps[tuple[list[Event], int]]:
        """Requests at most `limit` events. Returns them and the id to continue with."""
        page, call = yield from self._request(path_with("/events", query.values(self._operation, limit)))
        if query.backwards and not call.next:
            return page, 0
        position = decimal(query_value(call.next, "before" if query.backwards else "after"))
        if position is None:
            raise no_link(call, "the response has no link to the next events")
        return page, position


def no_link(call: Call[Any], message: str) -> AnimalStoreError:
    error = ResponseError(message, 200, "application/json", "", operation=call.operation, request=call.request)
    return call.counted(error)
