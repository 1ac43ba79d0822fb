"""Reads and writes the JSON forms of models."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any, Final, Literal, TypeVar, cast

T = TypeVar("T")


class Unset(enum.Enum):
    """The type of `UNSET`."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final[Literal[Unset.UNSET]] = Unset.UNSET
"""A field that isn't sent. `None` is sent as `null`."""


class DecodeError(ValueError):
    """A value isn't the expected JSON."""


def json_object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DecodeError("expected an object")
    return cast("dict[str, Any]", value)


def text(value: object) -> str:
    if not isinstance(value, str):
        raise DecodeError("expected a string")
    return value


def integer(value: object) -> int:
    # True is an int in Python.
    if not isinstance(value, int) or isinstance(value, bool):
        raise DecodeError("expected an integer")
    return value


def boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise DecodeError("expected true or false")
    return value


def instant(value: object) -> datetime:
    """Reads an RFC 3339 time."""
    try:
        # Python 3.10 doesn't know Z.
        at = datetime.fromisoformat(text(value).replace("Z", "+00:00"))
    except ValueError:
        raise DecodeError("expected a time") from None
    if at.tzinfo is None:
        raise DecodeError("expected a time with an offset")
    return at


def nullable(read: Callable[[object], T]) -> Callable[[object], T | None]:
    return lambda value: None if value is None else read(value)


def list_of(read: Callable[[object], T]) -> Callable[[object], list[T]]:
    def read_list(value: object) -> list[T]:
        if not isinstance(value, list):
            raise DecodeError("expected a list")
        return [read(entry) for entry in cast("list[object]", value)]

    return read_list


def field(fields: Mapping[str, Any], name: str, read: Callable[[object], T]) -> T:
    """Reads a field that every response has."""
    if name not in fields:
        raise DecodeError(f"the body has no field {name}")
    try:
        return read(fields[name])
    except DecodeError as e:
        raise DecodeError(f"{name}: {e}") from None


def optional(fields: Mapping[str, Any], name: str, read: Callable[[object], T]) -> T | Unset:
    """Reads a field that may be absent."""
    return field(fields, name, read) if name in fields else UNSET


def json_bytes(value: object) -> bytes:
    """Returns JSON text."""
    return json.dumps(encode(value), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def encode(value: object) -> Any:
    """Returns the JSON form of a value: models and times become objects and strings."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a time needs a time zone, such as datetime.now(timezone.utc)")
        return value.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        return {name: encode(one) for name, one in fields.items() if one is not UNSET}
    if isinstance(value, (list, tuple)):
        return [encode(one) for one in cast("list[object]", value)]
    to_json = getattr(value, "to_json", None)
    return to_json() if to_json else value
