from __future__ import annotations

from dataclasses import dataclass, field
from typing import BinaryIO

from ._call import Call, Repeat
from ._errors import ServiceError
from ._models import Photo

MAX_UPLOAD = 10 << 20
"""The maximum size of a picture, in bytes."""

UPLOAD_TIME = 60.0
"""How many seconds the service allows an upload to take."""


@dataclass(frozen=True)
class Image:
    """An image of a photo."""

    content_type: str
    """image/jpeg or image/png."""
    data: bytes = field(repr=False)


def upload(pet_id: int, picture: bytes | BinaryIO) -> Call[Photo]:
    """The call that adds a photo."""
    content = picture if isinstance(picture, bytes) else picture.read(MAX_UPLOAD + 1)
    if len(content) > MAX_UPLOAD:
        message = f"the picture must have at most {MAX_UPLOAD} bytes: make it smaller"
        raise ServiceError("payload_too_large", message, 0, "", operation="add_photo", request="")
    call = Call("add_photo", "POST", f"/pets/{pet_id}/photos", Photo.from_json, repeat=Repeat.REPLAYED)
    call.content, call.content_type, call.extra_time = content, detect(content), UPLOAD_TIME
    return call


def download(operation: str, path: str) -> Call[Image]:
    """The call that returns an image."""
    return Call(operation, "GET", path, None, decode_image=Image)


def detect(content: bytes) -> str:
    """Returns the media type of a picture."""
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return "application/octet-stream"  # the service refuses it and says what it takes
