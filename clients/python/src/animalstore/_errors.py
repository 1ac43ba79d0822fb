from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Window = Literal["minute", "day", "ban", ""]
"""The kind of limit: the plan's requests per minute or per calendar day in UTC, or a ban
for ignoring 429 responses. "" if the response was not from the service."""


class AnimalStoreError(Exception):
    """The base class of all errors of a client."""

    operation: str
    """The method that was called, such as create_pet."""
    request: str
    """Its HTTP method and full URL, or "" if there was no request."""
    attempts: int
    """The number of attempts before this error."""
    outcome_unknown: bool
    """Whether a change was sent but its response was lost, so that it may or may not have
    been made. A change that failed without this was not made."""
    hint: str
    """Why the call wasn't retried, or ""."""

    def __init__(self, message: str, *, operation: str = "", request: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.operation = operation
        self.request = request
        self.attempts = 0
        self.outcome_unknown = False
        self.hint = ""

    def __str__(self) -> str:
        text = f"{self.operation}: {self._describe()}" if self.operation else self._describe()
        if self.request:
            text += f" ({self.request})"
        if self.attempts > 1:
            text += f" (after {self.attempts} attempts)"
        text += self.hint
        if self.outcome_unknown:
            text += "; it is unknown whether the change was made"
        return text

    def _describe(self) -> str:
        return self.message


class InvalidArgumentError(AnimalStoreError, ValueError):
    """An argument or option can't work. Nothing was sent."""


class BaseURLError(InvalidArgumentError):
    """The base URL can't be used. The message doesn't quote it: it may have a password."""


class ServiceError(AnimalStoreError):
    """An error response of the service, or one that the client knows without a request."""

    def __init__(self, code: str, message: str, status: int, request_id: str, *, operation: str, request: str) -> None:
        super().__init__(message, operation=operation, request=request)
        self.code = code
        """Codes never change, but new ones may be added."""
        self.status = status
        """The HTTP status, or 0 if nothing was sent."""
        self.request_id = request_id
        """Identifies the request in the server's log."""

    def _describe(self) -> str:
        number = f" (request {self.request_id})" if self.status >= 500 and self.request_id else ""
        status = f"{self.status} " if self.status else ""
        return f"{status}{self.code}: {self.message}{number}"


class EventsExpiredError(ServiceError):
    """The events after this position are no longer kept, or the store was restored from a
    backup. Rebuild from the lists what you built from earlier events."""


@dataclass(frozen=True)
class Limit:
    """A limit that was reached."""

    window: Window
    limit: int
    """The number of requests in the window; 0 if unknown."""
    reset: datetime | None
    """When the window ends, by the server's clock; None if unknown."""
    retry_after: float
    """The seconds until then when the error occurred."""


class RateLimitError(ServiceError):
    """Says which limit was reached and how long to wait. If the client already knew about
    the limit and sent nothing, it has the code that the service would have used."""

    def __init__(
        self,
        limit: Limit,
        code: str,
        message: str,
        status: int,
        request_id: str,
        *,
        operation: str,
        request: str,
    ) -> None:
        super().__init__(code, message, status, request_id, operation=operation, request=request)
        self.window = limit.window
        self.limit = limit.limit
        self.reset = limit.reset
        self.retry_after = limit.retry_after

    def _describe(self) -> str:
        return super()._describe() if self.code else self.message


class ResponseError(AnimalStoreError):
    """A response can't be from the service: a proxy's page, an incomplete body, or another
    server's response."""

    def __init__(
        self, message: str, status: int, content_type: str, excerpt: str, *, operation: str, request: str
    ) -> None:
        super().__init__(message, operation=operation, request=request)
        self.status = status
        self.content_type = content_type
        self.excerpt = excerpt
        """The beginning of the body."""

    def _describe(self) -> str:
        return describe_response(self.status, self.message, self.excerpt)


class NetworkError(AnimalStoreError):
    """There was no response. `__cause__` is the error of httpx."""


class CallTimeoutError(AnimalStoreError, TimeoutError):
    """The `timeout` of the call passed."""


class CallCancelledError(AnimalStoreError):
    """The `cancel` token of the call was cancelled."""


class NotModifiedError(AnimalStoreError):
    """The resource still has the ETag in `if_none_match`."""


def describe_response(status: int, message: str, excerpt: str) -> str:
    quoted = f": {json.dumps(excerpt, ensure_ascii=False)}" if excerpt else ""
    return f"unexpected response with status {status}: {message}{quoted}"


def window_of(code: str) -> Window:
    match code:
        case "rate_limit_exceeded":
            return "minute"
        case "daily_quota_exceeded":
            return "day"
        case "key_banned":
            return "ban"
        case _:
            return ""


def not_sent(limit: Limit, operation: str, request: str) -> RateLimitError:
    """The error of a call that was not sent because of a known limit."""
    code, reason = {
        "minute": ("rate_limit_exceeded", f"limit of {limit.limit} requests per minute reached"),
        "day": ("daily_quota_exceeded", f"limit of {limit.limit} requests per day (UTC) reached"),
        "ban": ("key_banned", "this key is banned"),
        "": ("rate_limit_exceeded", "rate limit reached"),
    }[limit.window]
    message = f"{reason}, so nothing was sent: retry in {limit.retry_after:.0f} s"
    return RateLimitError(limit, code, message, 0, "", operation=operation, request=request)


EXCERPT_LENGTH = 200


def excerpt(untrusted: str) -> str:
    """Returns the beginning of a text, on one line."""
    line = " ".join(untrusted[: 4 * EXCERPT_LENGTH].split())
    return line[:EXCERPT_LENGTH] + "…" if len(line) > EXCERPT_LENGTH else line
