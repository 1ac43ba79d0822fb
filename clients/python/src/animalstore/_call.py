from __future__ import annotations

import enum
import functools
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, ParamSpec, TypeVar, cast

from ._errors import AnimalStoreError, CallCancelledError, CallTimeoutError, InvalidArgumentError
from ._json import json_bytes
from ._options import FOREVER, AllOptions, CallOptions

T = TypeVar("T")
R = TypeVar("R")
E = TypeVar("E", bound=AnimalStoreError)
P = ParamSpec("P")


class Repeat(enum.Enum):
    """The effect of sending a request again."""

    SAFE = 0  # it only reads, or leads to the same state again
    REPLAYED = 1  # the Idempotency-Key gets the first response again
    HARMFUL = 2  # the change is made again


@dataclass
class Call(Generic[T]):
    """One call of an operation, which may take several attempts."""

    operation: str
    method: str
    path: str
    """Below /v1, with the query."""
    decode: Callable[[object], T] | None
    """None if the response has no body or an image."""
    body: object = None
    repeat: Repeat = Repeat.SAFE
    conditional: bool = False
    """The operation supports If-Match."""
    creates: bool = False
    """It can create the resource at its path, and supports If-None-Match: *."""
    accepted: bool = False
    """Success is 202: the service does it later."""
    secret: bool = False
    """The response contains a secret, which no error may show."""
    is_list: bool = False
    endless: bool = False
    """The number of attempts isn't limited."""
    wait: float = 0.0
    """How long the service may deliberately wait."""
    extra_time: float = 0.0
    """Added to the timeout of each attempt."""
    decode_image: Callable[[str, bytes], T] | None = None
    """Gets the type and the bytes of an image."""
    stream: str | None = None
    """The response is a stream of events after the one with this id, or if that is "", from
    where the path says."""

    options: AllOptions = field(default_factory=AllOptions)
    request: str = ""
    """The HTTP method and the full URL, for errors."""
    content: bytes | None = None
    """The encoded body, the same bytes in every attempt."""
    content_type: str = ""
    """Of the content, unless it is JSON."""
    idempotency_key: str = ""
    deadline: float = FOREVER
    """By time.monotonic()."""
    attempt: int = 0
    """The number of the latest attempt."""
    resent: bool = False
    """An earlier attempt may have succeeded, but its response was lost."""
    request_id: str = ""
    """Of the latest response."""
    result: Any = None
    next: str = ""
    """For a list, the path of the next page."""

    @property
    def changes(self) -> bool:
        return self.method != "GET"

    def prepare(self, url: str, options: CallOptions, deadline: float | None = None) -> None:
        """Checks the options and encodes the body."""
        self.options = cast(AllOptions, options)
        self.request = f"{self.method} {url}"
        self._check_options()
        timeout = options.get("timeout")
        if deadline is not None:
            self.deadline = deadline
        elif timeout is not None:
            self.deadline = time.monotonic() + timeout
        if meta := options.get("meta"):
            meta.clear()
        if self.repeat is Repeat.REPLAYED:
            self.idempotency_key = self.options.get("idempotency_key", secrets.token_hex(16))
        if self.body is not None:
            self.content = json_bytes(self.body)

    def _check_options(self) -> None:
        """Refuses an option that would have no effect, because the caller relies on it."""
        o = self.options
        if not re.fullmatch(r"(/[a-z]+|/-?[0-9]+)+", self.path.partition("?")[0]):
            raise self._invalid("an id is missing, or isn't an integer")
        for name in o:
            if name not in AllOptions.__optional_keys__:
                raise TypeError(f"{self.operation} has no argument {name!r}")
        for name in ("if_match", "if_none_match", "idempotency_key"):
            if not re.fullmatch(r"[ -~]*", str(o.get(name, ""))):
                raise self._invalid(f"{name} must be plain ASCII, without line breaks")
        if o.get("if_match") == "":
            raise self._invalid("if_match needs an ETag: without one the change would be unconditional")
        if "idempotency_key" in o and self.repeat is not Repeat.REPLAYED:
            raise self._invalid("the service doesn't support Idempotency-Key for this")
        if o.get("if_match") and self.changes and not self.conditional:
            raise self._invalid("the service doesn't support If-Match for this")
        unmatched = o.get("if_none_match")
        if unmatched and self.changes and not (self.creates and unmatched == "*"):
            raise self._invalid("If-None-Match is only for reads, and * for put_category")
        if self.endless and unmatched:
            raise self._invalid("if_none_match can't be followed")
        if not self.is_list and ("cursor" in o or "one_page" in o):
            raise self._invalid("cursor and one_page are only for lists")
        if not (o.get("timeout") or 0) >= 0:
            raise self._invalid("the timeout must not be negative")

    def _invalid(self, message: str) -> InvalidArgumentError:
        return InvalidArgumentError(message, operation=self.operation)

    def left(self) -> float:
        """The seconds until the deadline."""
        return self.deadline - time.monotonic() if self.deadline != FOREVER else FOREVER

    def interruption(self, doing: str = "") -> AnimalStoreError | None:
        """Returns an error if the caller has cancelled the call, or its time is over."""
        cancel = self.options.get("cancel")
        if cancel and cancel.cancelled:
            cancelled = CallCancelledError("cancelled" + doing, operation=self.operation, request=self.request)
            return self.counted(cancelled)
        if self.left() <= 0:
            late = CallTimeoutError("the timeout passed" + doing, operation=self.operation, request=self.request)
            return self.counted(late)
        return None

    def counted(self, error: E) -> E:
        """Adds the number of attempts to an error of this call."""
        error.attempts = self.attempt
        return error

    def headers(self) -> dict[str, str]:
        """The headers of the request, without the credential."""
        o, headers = self.options, {"Accept": "application/json"}
        if self.stream is not None:
            headers["Accept"] = "text/event-stream"
        if self.stream:
            headers["Last-Event-ID"] = self.stream
        if self.decode_image:
            headers["Accept"] = "image/*, application/json"  # errors are JSON
        if self.content_type:
            headers["Content-Type"] = self.content_type
        elif self.content is not None:
            patch = self.method == "PATCH"
            headers["Content-Type"] = "application/merge-patch+json" if patch else "application/json"
        if if_match := o.get("if_match"):
            headers["If-Match"] = if_match
        if if_none_match := o.get("if_none_match"):
            headers["If-None-Match"] = if_none_match
        if self.repeat is Repeat.REPLAYED:
            headers["Idempotency-Key"] = self.idempotency_key
        return headers


def check_id(operation: str, value: object) -> None:
    """Refuses an id that is missing where it isn't part of the path."""
    if not isinstance(value, int):
        raise InvalidArgumentError(f"the id must be an integer, not {value!r}", operation=operation)


def check_model(operation: str, model: type[object], value: object) -> None:
    """Refuses a dict where a model is needed, and says what to write."""
    if isinstance(value, model):
        return
    given = as_arguments(cast("Mapping[str, object]", value)) if isinstance(value, Mapping) else "…"
    message = f"this needs a model: write {model.__name__}({given})"
    raise InvalidArgumentError(message, operation=operation)


def as_arguments(fields: Mapping[str, object]) -> str:
    """Returns fields as they are written in a call."""
    names = [re.sub("([A-Z])", r"_\1", name).lower() for name in fields]
    return ", ".join(f"{name}={value!r}" for name, value in zip(names, fields.values(), strict=True))


def by_name(method: Callable[P, R]) -> Callable[P, R]:
    """Makes a method that takes its arguments by name say so when it gets a dict."""

    @functools.wraps(method)
    def checked(*args: P.args, **named: P.kwargs) -> R:
        for value in args[1:]:
            if isinstance(value, Mapping):
                fields = as_arguments(cast("Mapping[str, object]", value))
                message = f"pass the fields by name: write {fields}"
                raise InvalidArgumentError(message, operation=method.__name__)
        return method(*args, **named)

    return checked
