"""Follows events by a stream of server-sent events."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ._call import Call
from ._core import Close, Core, Read, Steps, path_with
from ._errors import InvalidArgumentError
from ._headers import decimal, query_value
from ._json import DecodeError
from ._lists import PAGE_SIZE, EventPages, EventsQuery, no_link
from ._models import Event, read_event
from ._options import CallOptions
from ._response import MAX_RESPONSE

COMMENT_INTERVAL = 15.0
"""How many seconds the service lets a stream be silent."""

POLL_WAIT = 30
"""How many seconds the service waits for an event: the maximum it allows."""

POLL_PERIOD = 600.0
"""How many seconds a follower polls before it tries a stream again."""


class Follower(EventPages):
    """The events so far and those to come, by a stream, or by long polls while a stream can't
    be used."""

    _endless = True

    def __init__(self, core: Core, query: EventsQuery, options: CallOptions) -> None:
        super().__init__(core, "events", query, options)
        if query.backwards:
            message = "before and newest read backwards, so they can't be followed"
            raise InvalidArgumentError(message, operation="events")
        del self._query["limit"]  # a stream has no pages
        self._position = ""  # the id to continue after; "" if that is in the query
        self._retry = 0.0  # the pause between streams that the service asks for
        self._breaks = 0  # streams in a row that ended before an event or a comment
        self._poll_until = 0.0
        self._call: Call[Any]
        """What opened the latest stream."""
        self._stream: Any = None
        self._ended = False
        self._blocks = Blocks()
        self._limit = 0.0
        """How long the stream may be silent."""

    def fetch(self) -> Steps[list[Event]]:
        """Waits for the next events. There may be none yet."""
        if self._failure:
            raise self._failure
        if self._find_latest:
            self._query["after"] = yield from self.latest_id()
            self._find_latest = False
        if time.monotonic() < self._poll_until:
            return (yield from self._poll())
        if self._ended:
            yield from self.close()
            self._ended = False
            self._breaks += 1
            yield from self._core.pause_stream(self._call, self._retry, self._breaks)
        if not self._stream:
            yield from self._open()
        if not self._stream:
            self._poll_until = time.monotonic() + POLL_PERIOD
            return []
        return (yield from self._receive())

    def _open(self) -> Steps[None]:
        self._start()
        self._call = Call("events", "GET", path_with("/events", self._query), None, endless=True, stream=self._position)
        self._blocks = Blocks()
        self._limit = self._core.settings.attempt_timeout
        self._stream = yield from self._core.call(self._call, self._options, self._deadline)

    def _poll(self) -> Steps[list[Event]]:
        """Requests the next events once."""
        query = {**self._query, "limit": PAGE_SIZE, "wait": POLL_WAIT}
        if self._position:
            query["after"] = self._position
            query["since"] = None
        page, call = yield from self._request(path_with("/events", query), endless=True, wait=POLL_WAIT)
        self._position = query_value(call.next, "after")
        if decimal(self._position) is None:
            # The loop gets the events of this page before the error.
            self._failure = no_link(call, "the response has no link to the next events")
        return page

    def _receive(self) -> Steps[list[Event]]:
        """Waits until something arrives in the stream."""
        call = self._call
        chunk = yield Read(self._stream, min(self._limit, max(call.left(), 0.0)), call.options.get("cancel"))
        if chunk is None:
            if interruption := call.interruption():
                raise interruption
            self._poll_until = time.monotonic() + POLL_PERIOD
            yield from self.close()
            return []
        assert isinstance(chunk, bytes)
        self._ended = chunk == b""
        self._limit = self._core.settings.attempt_timeout + COMMENT_INTERVAL
        events: list[Event] = []
        try:
            for block in self._blocks.feed(chunk):
                if block.data:
                    events.append(read_event(json.loads(block.data)))
                if block.data or block.comment:
                    self._breaks = 0
                if block.retry is not None:
                    self._retry = block.retry / 1000
                self._position = block.id or self._position
        except (DecodeError, ValueError, RecursionError):
            self._ended = True  # what can't be an event is read again
        return events

    def close(self) -> Steps[None]:
        if self._stream:
            stream, self._stream = self._stream, None
            yield Close(stream)


@dataclass
class Block:
    """What a stream sends up to an empty line."""

    id: str = ""
    data: str = ""
    retry: int | None = None
    comment: bool = False


class Blocks:
    """Splits a stream into blocks."""

    def __init__(self) -> None:
        self._rest = b""
        self._block = Block()

    def feed(self, chunk: bytes) -> Iterator[Block]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            text = line.removesuffix(b"\r").decode(errors="replace")
            name, _, value = text.partition(":")
            value = value.removeprefix(" ")
            if not text:
                yield self._block
                self._block = Block()
            elif name == "id":
                self._block.id = value
            elif name == "data":
                self._block.data += value + "\n"
            elif name == "retry":
                self._block.retry = decimal(value)
            elif not name:
                self._block.comment = True
        if len(self._rest) > MAX_RESPONSE:
            raise ValueError("the event is larger than 16 MiB")
