"""Reads the headers of responses."""

from __future__ import annotations

import email.utils
import re
from datetime import datetime, timezone
from urllib.parse import parse_qs, urlsplit

import httpx

from ._options import RateLimit

LONGEST_RETRY_AFTER = 366 * 24 * 60 * 60


def first(headers: httpx.Headers, name: str) -> str:
    """Returns a header, or "". A header that was sent several times isn't joined."""
    values = headers.get_list(name)
    return values[0] if values else ""


def decimal(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,19}", text) else None


def read_rate_limit(headers: httpx.Headers) -> RateLimit | None:
    limit = decimal(first(headers, "X-RateLimit-Limit"))
    remaining = decimal(first(headers, "X-RateLimit-Remaining"))
    reset = decimal(first(headers, "X-RateLimit-Reset"))
    if limit is None or remaining is None or reset is None or limit < 0 or remaining < 0:
        return None
    try:
        return RateLimit(limit, remaining, datetime.fromtimestamp(reset, timezone.utc))
    except (ValueError, OverflowError, OSError):  # not a year that datetime knows
        return None


def http_date(text: str) -> float | None:
    """Returns an HTTP date in Unix seconds."""
    try:
        at = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return None
    return at.replace(tzinfo=at.tzinfo or timezone.utc).timestamp()


def retry_after(headers: httpx.Headers) -> float:
    """Returns the seconds in Retry-After, or 0."""
    seconds = decimal(first(headers, "Retry-After")) or 0
    return float(min(max(seconds, 0), LONGEST_RETRY_AFTER))


def is_json(headers: httpx.Headers) -> bool:
    return media_type(headers) == "application/json"


def media_type(headers: httpx.Headers) -> str:
    return first(headers, "Content-Type").partition(";")[0].strip().lower()


NEXT_RELATION = re.compile(r"""<([^>]*)>[^<]*;\s*rel\s*=\s*"?(?:[^";,<]*\s)?next(?:["\s,;]|$)""", re.IGNORECASE)


def find_next(headers: httpx.Headers) -> str:
    """Returns the link with the relation next in Link headers (RFC 8288), or ""."""
    found = NEXT_RELATION.search(", ".join(headers.get_list("Link")))
    return found[1] if found else ""


def next_cursor(headers: httpx.Headers) -> str:
    return query_value(find_next(headers), "cursor")


def query_value(url: str, name: str) -> str:
    try:
        return parse_qs(urlsplit(url).query).get(name, [""])[0]
    except ValueError:
        return ""
