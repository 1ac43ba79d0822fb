"""Calls the Animal Store API.

    from animalstore import Client, NewPet

    with Client("http://127.0.0.1:8080", api_key) as client:
        pet = client.create_pet(NewPet(name="Rex", category_id=7))

There is one method for every operation of the API, with the operation's name, and one
model for every schema. Client blocks; AsyncClient has the same methods for async and
await. Both wait when the service tells them to, retry temporary failures, and never make
a change twice that you requested once.
"""

from . import _models, webhook
from ._async_client import DEFAULT_GRACE, AsyncClient
from ._batches import PetImport
from ._client import Client
from ._errors import (
    AnimalStoreError,
    BaseURLError,
    CallCancelledError,
    CallTimeoutError,
    EventsExpiredError,
    InvalidArgumentError,
    NetworkError,
    NotModifiedError,
    RateLimitError,
    ResponseError,
    ServiceError,
    Window,
)
from ._json import UNSET, Unset
from ._models import *  # noqa: F403
from ._options import (
    CallAttempt,
    CallOptions,
    CancelToken,
    ChangeOptions,
    CreateOptions,
    ListOptions,
    Meta,
    PutOptions,
    RateLimit,
    ReadOptions,
    Wait,
)
from ._photos import Image
from ._version import __version__

__all__ = [
    "DEFAULT_GRACE",
    "UNSET",
    "AnimalStoreError",
    "AsyncClient",
    "BaseURLError",
    "CallAttempt",
    "CallCancelledError",
    "CallOptions",
    "CallTimeoutError",
    "CancelToken",
    "ChangeOptions",
    "Client",
    "CreateOptions",
    "EventsExpiredError",
    "Image",
    "InvalidArgumentError",
    "ListOptions",
    "Meta",
    "NetworkError",
    "NotModifiedError",
    "PetImport",
    "PutOptions",
    "RateLimit",
    "RateLimitError",
    "ReadOptions",
    "ResponseError",
    "ServiceError",
    "Unset",
    "Wait",
    "Window",
    "__version__",
    "webhook",
]
__all__ += _models.__all__
