"""Reads responses: decides whether an attempt succeeded, and what a failure means."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import httpx

from ._call import Call
from ._errors import (
    AnimalStoreError,
    EventsExpiredError,
    Limit,
    NotModifiedError,
    RateLimitError,
    ResponseError,
    ServiceError,
    describe_response,
    excerpt,
    window_of,
)
from ._headers import decimal, find_next, first, is_json, media_type, next_cursor, read_rate_limit, retry_after
from ._json import DecodeError

MAX_RESPONSE = 16 << 20
"""The maximum size of a response, in bytes: somewhat more than the largest image, and many
times the size of the largest page."""

UNCHANGED_CODES = {"storage_full", "overloaded", "shutting_down"}
"""The codes of 503 that guarantee that nothing was changed. New codes count only once
they're listed here. The code unavailable isn't listed: PostgreSQL also returns it for a
change whose outcome is unknown."""


@dataclass
class Received:
    """A response."""

    status: int
    headers: httpx.Headers
    body: bytes
    broken: str = ""
    """Why the body is incomplete."""
    too_large: bool = False
    timed_out: bool = False
    """The body took too long."""


@dataclass
class Failure:
    """Why an attempt failed, and what that means for a retry."""

    error: AnimalStoreError
    status: int = 0
    code: str = ""
    retryable: bool = False
    """Another attempt may succeed."""
    unchanged: bool = False
    """This attempt certainly changed nothing."""
    after: float = 0.0
    """From Retry-After."""
    limit: Limit | None = None
    """The limit that a 429 reported."""
    no_stream: bool = False
    """A stream can't be used, but long polls can."""


class Reader:
    """Reads the responses of one deployment."""

    def __init__(self, base: str, api_key: str) -> None:
        self._base = urlsplit(base)

        def conceal(text: str) -> str:
            return text.replace(api_key, "[API key]")

        self._conceal = conceal

    def read(self, call: Call[Any], got: Received) -> Failure | None:
        """Reads the response to a call into the call. Returns None if it succeeded."""
        read_meta(call, got)
        status = got.status
        location = first(got.headers, "Location")
        if status == 304 and call.options.get("if_none_match"):
            return Failure(NotModifiedError("not modified", operation=call.operation, request=call.request), status)
        if got.broken:
            failure = Failure(self._unexpected(call, got, f"reading the body: {got.broken}"))
            failure.retryable = not got.too_large
            failure.unchanged = 400 <= status < 500
        elif 300 <= status < 400 and location:
            target = excerpt(self._conceal(location))
            message = f'redirect to "{target}" not followed, to keep the key private: is the base URL right?'
            failure = Failure(self._unexpected(call, got, message, quote=False), unchanged=True)
        elif status >= 400:
            failure = self._read_error(call, got)
        else:
            succeeded = self._read_success(call, got)
            if succeeded is None:
                return None
            failure = succeeded
        failure.status, failure.after = status, retry_after(got.headers)
        if status == 429:
            rate_limited(failure, got)
        if call.stream is not None and (status < 300 or failure.code == "too_many_streams"):
            failure.no_stream, failure.limit = True, None  # other requests are still allowed
        return failure

    def _read_success(self, call: Call[Any], got: Received) -> Failure | None:
        """Only an incomplete body is worth a retry: a different kind of response isn't from
        the service."""
        if got.status == 204 and call.decode is None and call.decode_image is None:
            return None
        expected = got.status == 202 if call.accepted else got.status in (200, 201)
        if not expected or (call.decode is None and call.decode_image is None):
            return Failure(self._unexpected(call, got, "unexpected status"))
        if call.decode is None:
            return self._read_image(call, got)
        if not is_json(got.headers):
            kind = excerpt(first(got.headers, "Content-Type"))
            return Failure(self._unexpected(call, got, f'the type is "{kind}", not JSON: is the base URL right?'))
        try:
            call.result = call.decode(json.loads(got.body))
        except DecodeError as e:
            return Failure(self._unexpected(call, got, f"the body is incomplete: {e}"), retryable=True)
        except (ValueError, RecursionError) as e:
            return Failure(self._unexpected(call, got, f"the body is not the expected JSON: {e}"), retryable=True)
        try:
            call.next = self._next_link(got.headers)
        except ValueError as e:
            return Failure(self._unexpected(call, got, str(e), quote=False))
        return None

    def _read_image(self, call: Call[Any], got: Received) -> Failure | None:
        kind = media_type(got.headers)
        if not kind.startswith("image/"):
            return Failure(
                self._unexpected(call, got, f'the type is "{excerpt(kind)}", not an image: is the base URL right?')
            )
        if not got.body:
            return Failure(self._unexpected(call, got, "the image is empty"), retryable=True)
        assert call.decode_image
        call.result = call.decode_image(kind, got.body)
        return None

    def _read_error(self, call: Call[Any], got: Received) -> Failure:
        code, message = service_error(got)
        if not code:
            error = self._unexpected(call, got, "the body is not an error from the service")
            between = got.status >= 500  # a problem between here and the service
            return Failure(error, retryable=between, unchanged=not between)
        kind = EventsExpiredError if code == "events_expired" else ServiceError
        return Failure(
            kind(
                code,
                self._conceal(message),
                got.status,
                call.request_id,
                operation=call.operation,
                request=call.request,
            ),
            code=code,
            retryable=got.status == 503,
            unchanged=got.status < 500 or code in UNCHANGED_CODES,
        )

    def _next_link(self, headers: httpx.Headers) -> str:
        """Returns the path of the next page, below /v1, or "" if there is none."""
        target = find_next(headers)
        if not target:
            return ""
        try:
            link = urlsplit(target)
        except ValueError:
            link = None
        if link is None or re.search(r"%(?![0-9A-Fa-f]{2})|[^!-~]", target):
            raise ValueError("the link to the next page is not a valid URL")
        # A proxy may have rewritten the link, or may serve the API under a different path
        # that the service doesn't know about.
        if link.netloc and (link.scheme, link.netloc) != (self._base.scheme, self._base.netloc):
            raise ValueError("the link to the next page leads to another host, which must not get the key")
        for prefix in (self._base.path + "/", "/v1/"):
            if link.path.startswith(prefix):
                return f"/{link.path[len(prefix) :]}?{link.query}"
        raise ValueError("the link to the next page leads outside the API")

    def _unexpected(self, call: Call[Any], got: Received, message: str, quote: bool = True) -> ResponseError:
        if call.secret and got.status < 400:
            quote = False
        body = got.body.decode(errors="replace") if quote else ""
        return ResponseError(
            message,
            got.status,
            excerpt(first(got.headers, "Content-Type")),
            excerpt(self._conceal(body)),
            operation=call.operation,
            request=call.request,
        )


def read_meta(call: Call[Any], got: Received) -> None:
    call.request_id = excerpt(first(got.headers, "X-Request-Id"))
    if meta := call.options.get("meta"):
        meta.status = got.status
        meta.etag = first(got.headers, "ETag")
        meta.request_id = first(got.headers, "X-Request-Id")
        meta.replayed = first(got.headers, "Idempotent-Replayed") == "true"
        meta.ban_lifted = first(got.headers, "Ban-Lifted") == "true"
        meta.next_cursor = next_cursor(got.headers)
        meta.rate_limit = read_rate_limit(got.headers)
        meta.age = max(decimal(first(got.headers, "Age")) or 0, 0)


def service_error(got: Received) -> tuple[str, str]:
    """Returns the code and the message of an error response, or "" if it isn't one of the
    service."""
    if not is_json(got.headers):
        return "", ""
    try:
        body = json.loads(got.body)
    except (ValueError, RecursionError):
        return "", ""
    if not isinstance(body, dict):
        return "", ""
    fields = cast("dict[str, object]", body)
    code, message = fields.get("code"), fields.get("message")
    if not isinstance(code, str) or not isinstance(message, str) or not message:
        return "", ""
    return code, message


def rate_limited(failure: Failure, got: Received) -> None:
    """Makes a failure with status 429 that of a limit."""
    seen = read_rate_limit(got.headers)
    limit = Limit(window_of(failure.code), seen.limit if seen else 0, seen.reset if seen else None, failure.after)
    e = failure.error
    message, request_id = e.message, ""
    if isinstance(e, ServiceError):
        request_id = e.request_id
    elif isinstance(e, ResponseError):
        message = describe_response(e.status, e.message, e.excerpt)
    failure.error = RateLimitError(
        limit, failure.code, message, got.status, request_id, operation=e.operation, request=e.request
    )
    failure.limit, failure.retryable, failure.unchanged = limit, True, True
