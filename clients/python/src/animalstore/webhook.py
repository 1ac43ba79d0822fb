"""Verifies the webhooks that an Animal Store sends. They follow Standard Webhooks, so any
library for it can verify them too.

    from animalstore import webhook

    message = webhook.verify(secret, request.headers, request.body)
    if message.type == "pet.created":
        print(message.data.name)
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol, cast

from ._json import DecodeError
from ._models import Message, read_message

HEADER_ID = "webhook-id"
"""The same in every attempt to deliver an event."""
HEADER_TIMESTAMP = "webhook-timestamp"
"""When the attempt was made, in Unix seconds."""
HEADER_SIGNATURE = "webhook-signature"
"""One or more signatures, separated by spaces."""

TOLERANCE = 5 * 60
"""How many seconds a webhook's timestamp may be from the receiver's clock, so that a
recorded webhook can't be replayed later."""

Reason = Literal[
    "no_secret",
    "invalid_secret",
    "missing_header",
    "invalid_header",
    "too_old",
    "too_new",
    "no_match",
    "invalid_body",
]


class WebhookError(Exception):
    """A webhook isn't genuine, or can't be verified."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Headers(Protocol):
    """The headers of a request, as web frameworks and `http.server` have them, or a dict."""

    def get(self, name: str, /) -> str | None: ...


def verify(
    secret: str | Sequence[str],
    headers: Headers,
    body: bytes | str,
    *,
    tolerance: float = TOLERANCE,
    now: Callable[[], float] = time.time,
) -> Message:
    """Checks that a webhook was sent by someone who knows the secret, and within the
    tolerance of now, and returns its content. Otherwise it raises WebhookError.

    `body` is the request's body exactly as received, not decoded and encoded again.
    `secret` can be a list: for a receiver of several webhooks, or while an old secret is
    replaced by a new one. One of them must match."""
    keys = [decode_secret(one) for one in ([secret] if isinstance(secret, str) else secret)]
    if not keys:
        raise WebhookError("no_secret", "no secret to verify the webhook with")
    message_id, timestamp, signatures = (
        header_of(headers, name) for name in (HEADER_ID, HEADER_TIMESTAMP, HEADER_SIGNATURE)
    )
    check_time(timestamp, tolerance, now())
    content = body.encode() if isinstance(body, str) else body
    signed = f"{message_id}.{timestamp}.".encode() + content
    for key in keys:
        if has_signature(signatures, hmac.digest(key, signed, hashlib.sha256)):
            return message_in(content)
    raise WebhookError("no_match", "no signature of the webhook matches")


def header_of(headers: Headers, name: str) -> str:
    value = headers.get(name)
    if value is None and isinstance(headers, Mapping):  # a dict may have its name in another case
        given = cast("Mapping[str, str]", headers)
        value = next((given[other] for other in given if other.lower() == name), None)
    if not value:
        raise WebhookError("missing_header", f"the webhook has no header {name}")
    return value


def message_in(content: bytes) -> Message:
    try:
        return read_message(json.loads(content))
    except (DecodeError, ValueError, RecursionError) as e:
        raise WebhookError("invalid_body", f"the webhook is genuine, but isn't an event: {e}") from None


def decode_secret(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:  # anybody can sign with an empty key
        raise WebhookError("invalid_secret", "the secret isn't base64, with or without whsec_ before it")
    return key


def check_time(timestamp: str, tolerance: float, now: float) -> None:
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", timestamp):
        raise WebhookError("invalid_header", f"{HEADER_TIMESTAMP} isn't a number of seconds")
    seconds = int(timestamp)
    if seconds < int(now - tolerance):
        raise WebhookError("too_old", "the timestamp of the webhook is too old")
    if seconds > int(now + tolerance):
        raise WebhookError("too_new", "the timestamp of the webhook is in the future")


def has_signature(header: str, want: bytes) -> bool:
    """Reports whether one of the signatures in a header is the wanted one, in constant
    time. Signatures of other versions are skipped."""
    found = False
    for signature in header.split():
        version, _, encoded = signature.partition(",")
        try:
            got = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            continue
        if version == "v1" and hmac.compare_digest(got, want):
            found = True
    return found
