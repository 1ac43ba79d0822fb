from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import httpx

from ._batches import PetImport, batch_call, import_pets
from ._call import Call, Repeat, by_name, check_id, check_model
from ._core import Core, path_with, pet_not_found
from ._json import UNSET, DecodeError, encode, integer, json_object, list_of
from ._lists import PAGE_SIZE, EventPages, EventsQuery, Pages
from ._models import (
    Category,
    Delivery,
    DeliveryRetry,
    DeliveryState,
    DeliveryWithBody,
    Event,
    Failure,
    Inventory,
    Key,
    KeyPatch,
    KeyWithSecret,
    Limits,
    NewKey,
    NewOrder,
    NewPet,
    NewWebhook,
    Order,
    OrderPatch,
    OrderStatus,
    Pet,
    PetPatch,
    PetStatus,
    Photo,
    Status,
    UsageHour,
    Webhook,
    WebhookPatch,
    WebhookWithSecret,
)
from ._options import (
    CallAttempt,
    CallOptions,
    ChangeOptions,
    CreateOptions,
    ListOptions,
    PutOptions,
    RateLimit,
    ReadOptions,
    Settings,
    Wait,
)
from ._photos import Image, download, upload
from ._stream import Follower
from ._transport import AsyncRunner
from ._version import __version__

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

T = TypeVar("T")

DEFAULT_GRACE = 24 * 60 * 60
"""The service's default for how many seconds the previous secrets of a rotated key or
webhook keep working."""


class AsyncClient:
    """Calls one deployment with one API key, with async and await. Create one client per
    key and share it between tasks: only then does it know about all requests that count
    against the key. It belongs to one event loop.

    `base_url` is the address of the service, such as https://pets.example or
    http://127.0.0.1:8080/v1: the version at the end is optional. Nothing is sent yet, so a
    wrong key is noticed only in the first call. All durations are in seconds.

    - `http_client`: used instead of a new one, for example for a proxy or your own
      certificate. It is not closed with this client. Its redirects, headers, cookies and
      timeouts are not used.
    - `max_attempts`: how often a call is sent at most. 1 means no retries.
    - `backoff_base`, `backoff_max`: before the n-th retry the client waits a random time up
      to base·2ⁿ⁻¹, at most max, in addition to the time in Retry-After if there is one.
    - `max_wait`: makes a call fail immediately, usually with a RateLimitError, if
      Retry-After or the reset of a limit would make it wait longer. With 0 a call never
      waits for a limit. By default it waits as long as necessary, until midnight UTC if the
      day is used up.
    - `attempt_timeout`: limits each attempt, from connecting to the last byte of the
      response. In `events`, the time that the service may wait is added, and a stream has no
      limit as long as the service sends something.
    - `pacing`: for bulk jobs. Half of the minute's requests are sent immediately, the others
      are spread evenly over the rest of the minute. A job never gets a 429 as long as nobody
      else uses the key.
    - `on_wait`: called before every wait for a limit or a retry, for a countdown or a log.
      It isn't called for the short pauses of pacing.
    - `on_attempt`: called after every attempt of a call, for a log.

    Every method also takes the options of its kind by name: see CallOptions."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        http_client: httpx.AsyncClient | None = None,
        user_agent: str = f"animalstore-python/{__version__}",
        max_attempts: int = 5,
        backoff_base: float = 0.5,
        backoff_max: float = 30.0,
        max_wait: float | None = None,
        attempt_timeout: float = 30.0,
        pacing: bool = False,
        on_wait: Callable[[Wait], None] | None = None,
        on_attempt: Callable[[CallAttempt], None] | None = None,
    ) -> None:
        settings = Settings(
            user_agent, max_attempts, backoff_base, backoff_max, max_wait, attempt_timeout, pacing, on_wait, on_attempt
        )
        self._core = Core(base_url, api_key, settings)
        self._runner = AsyncRunner(http_client)

    @property
    def base_url(self) -> str:
        """The URL of the API, including /v1."""
        return self._core.base_url

    @property
    def rate_limit(self) -> RateLimit | None:
        """The rate limit headers of the latest response that had them. This doesn't send a
        request."""
        return self._core.gate.seen

    async def aclose(self) -> None:
        """Closes the connections that are kept open for later calls."""
        await self._runner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"AsyncClient({self.base_url!r})"

    async def _send(self, call: Call[T], options: CallOptions) -> T:
        return await self._runner.run(self._core.call(call, options))

    async def _each(self, pages: Pages[T]) -> AsyncIterator[T]:
        try:
            while pages.more:
                page = await self._runner.run(pages.fetch())
                for entry in page:
                    yield entry
        finally:
            await self._runner.run(pages.close())

    # Pets

    @by_name
    def list_pets(
        self,
        *,
        status: PetStatus | None = None,
        category_id: int | None = None,
        name: str | None = None,
        ids: Sequence[int] | None = None,
        page_size: int = PAGE_SIZE,
        **options: Unpack[ListOptions],
    ) -> AsyncIterator[Pet]:
        """Lists pets, newest first. A page is requested when the loop gets there. Pets that
        exist during the whole listing are listed exactly once, regardless of other changes;
        pets added during the listing are not included.

        `name` selects pets by the beginning of any of the first four words of their name,
        ignoring case, and sorts them by what they were found by. Any white space and the
        characters -_/.,() between words are the same. It can't be used with `ids`, which are
        at most 100."""
        query = {
            "status": status,
            "categoryId": category_id,
            "name": name or None,
            "id": list(ids) if ids is not None else None,
        }
        return self._each(self._pages("list_pets", "/pets", query, page_size, Pet.from_json, options))

    async def find_pet(self, pet_id: int, **options: Unpack[ReadOptions]) -> Pet:
        """Returns one pet by its id. The error has the code pet_not_found and the status 404 if
        it doesn't exist. This reads the list, which replaces `get_pet`, so its ETag can't be used for
        `if_match`."""
        check_id("find_pet", pet_id)
        path = path_with("/pets", {"id": pet_id, "limit": PAGE_SIZE})
        call = Call("find_pet", "GET", path, list_of(Pet.from_json))
        if pet_id > 0:  # the list refuses other ids, which no pet has
            for pet in await self._send(call, options):
                return pet
        raise pet_not_found(call, pet_id)

    async def create_pet(self, pet: NewPet, **options: Unpack[CreateOptions]) -> Pet:
        """Adds a pet. It is added only once, even if the call is retried."""
        check_model("create_pet", NewPet, pet)
        call = Call("create_pet", "POST", "/pets", Pet.from_json, pet, Repeat.REPLAYED)
        return await self._send(call, options)

    async def create_pet_batch(self, pets: Sequence[NewPet], **options: Unpack[CreateOptions]) -> list[Pet]:
        """Adds 1 to 100 pets: all of them or none. They are added only once, even if the call
        is retried."""
        return await self._send(batch_call("create_pet_batch", pets), options)

    async def import_pets(
        self,
        pets: Sequence[NewPet],
        *,
        salt: str = "",
        on_batch: Callable[[PetImport], None] | None = None,
        **options: Unpack[CallOptions],
    ) -> PetImport:
        """Adds any number of pets in their order, as batches of 100, each of which is one
        request, and returns them with their ids. If a pet isn't valid, none is added.
        `on_batch` is called after every batch with what has been added so far.

        After an error or a crash, call it again with the same pets, API key and salt, at
        most 24 hours after the first call: pets that were added are returned, but not added
        again. If any pet or their order changes, that is a new import, which adds all of
        them. Another `salt` makes it another import of the same pets."""
        return await self._runner.run(import_pets(self._core, pets, salt, on_batch, options))

    async def get_pet(self, pet_id: int, **options: Unpack[ReadOptions]) -> Pet:
        """Deprecated: the service removes this operation on 5 December 2030. Then the error
        has the code endpoint_removed. Use `find_pet`."""
        return await self._send(Call("get_pet", "GET", f"/pets/{pet_id}", Pet.from_json), options)

    async def update_pet(self, pet_id: int, patch: PetPatch, **options: Unpack[ChangeOptions]) -> Pet:
        """Changes a pet and returns the changed pet. Use `if_match` to change it only if it
        is still in the state you read."""
        check_model("update_pet", PetPatch, patch)
        call = Call("update_pet", "PATCH", f"/pets/{pet_id}", Pet.from_json, patch, conditional=True)
        return await self._send(call, options)

    async def delete_pet(self, pet_id: int, **options: Unpack[ChangeOptions]) -> None:
        """Removes a pet. If an attempt was lost and the next one finds the pet gone, that
        counts as success."""
        await self._send(self._removal("delete_pet", f"/pets/{pet_id}"), options)

    @by_name
    async def get_inventory(self, *, category_id: int | None = None, **options: Unpack[ReadOptions]) -> Inventory:
        """Returns the number of pets in each status, in the store or in a category. The
        counts may be up to ten seconds old; `Meta.age` is their age."""
        path = path_with("/store/inventory", {"categoryId": category_id})
        return await self._send(Call("get_inventory", "GET", path, Inventory.from_json), options)

    # Photos

    async def add_photo(self, pet_id: int, picture: bytes | BinaryIO, **options: Unpack[CreateOptions]) -> Photo:
        """Adds a photo to a pet. The picture is a JPEG, PNG or WebP file of at most 10 MiB.
        The service keeps a smaller one without metadata. The photo is added only once, even
        if the call is retried."""
        return await self._send(upload(pet_id, picture), options)

    @by_name
    def list_photos(
        self, pet_ids: Sequence[int], *, page_size: int = PAGE_SIZE, **options: Unpack[ListOptions]
    ) -> AsyncIterator[Photo]:
        """Lists the photos of 1 to 100 pets, oldest first. Photos that exist during the
        whole listing are listed exactly once; photos added during it may be included."""
        query = {"petId": list(pet_ids)}
        return self._each(self._pages("list_photos", "/photos", query, page_size, Photo.from_json, options))

    async def get_photo(self, photo_id: int, **options: Unpack[ReadOptions]) -> Photo:
        """Returns one photo, without its image."""
        return await self._send(Call("get_photo", "GET", f"/photos/{photo_id}", Photo.from_json), options)

    async def get_image(self, photo_id: int, **options: Unpack[ReadOptions]) -> Image:
        """Returns the image of a photo. It never changes."""
        return await self._send(download("get_image", f"/photos/{photo_id}/image"), options)

    async def get_thumbnail(self, photo_id: int, **options: Unpack[ReadOptions]) -> Image:
        """Returns a small image of a photo, of at most 320 pixels on its long side. It never
        changes."""
        return await self._send(download("get_thumbnail", f"/photos/{photo_id}/thumbnail"), options)

    async def delete_photo(self, photo_id: int, **options: Unpack[ChangeOptions]) -> None:
        """Removes a photo. If an attempt was lost and the next one finds the photo gone, that
        counts as success."""
        await self._send(self._removal("delete_photo", f"/photos/{photo_id}"), options)

    # Orders

    @by_name
    def list_orders(
        self,
        *,
        status: OrderStatus | Sequence[OrderStatus] | None = None,
        pet_id: int | None = None,
        reference: str | None = None,
        oldest: bool = False,
        page_size: int = PAGE_SIZE,
        **options: Unpack[ListOptions],
    ) -> AsyncIterator[Order]:
        """Lists orders, newest first, with the guarantee of `list_pets`. `status` is one
        status, or any of several. `oldest` lists the oldest orders first."""
        query = {
            "status": status if status is None or isinstance(status, str) else list(status),
            "petId": pet_id,
            "reference": reference,
            "sort": "oldest" if oldest else None,
        }
        return self._each(self._pages("list_orders", "/store/orders", query, page_size, Order.from_json, options))

    async def place_order(
        self,
        pet_id: int,
        *,
        reference: str | None = None,
        note: str | None = None,
        **options: Unpack[CreateOptions],
    ) -> Order:
        """Orders a pet, which must be available and becomes pending. Only one order is
        placed, even if the call is retried."""
        check_id("place_order", pet_id)
        order = NewOrder(pet_id, UNSET if reference is None else reference, UNSET if note is None else note)
        call = Call("place_order", "POST", "/store/orders", Order.from_json, order, Repeat.REPLAYED)
        return await self._send(call, options)

    async def get_order(self, order_id: int, **options: Unpack[ReadOptions]) -> Order:
        """Returns one order."""
        return await self._send(Call("get_order", "GET", f"/store/orders/{order_id}", Order.from_json), options)

    async def update_order(self, order_id: int, patch: OrderPatch, **options: Unpack[ChangeOptions]) -> Order:
        """Changes an order and returns the changed order. If its status changes, so does that
        of its pet. If an attempt was lost and the next one is refused, the error has
        `outcome_unknown`: the order shows that it was changed, but not by whom."""
        check_model("update_order", OrderPatch, patch)
        path = f"/store/orders/{order_id}"
        call = Call("update_order", "PATCH", path, Order.from_json, patch, conditional=True)
        return await self._send(call, options)

    # Categories

    @by_name
    def list_categories(self, *, page_size: int = PAGE_SIZE, **options: Unpack[ListOptions]) -> AsyncIterator[Category]:
        """Lists categories by ascending id."""
        return self._each(self._pages("list_categories", "/categories", {}, page_size, Category.from_json, options))

    async def get_category(self, category_id: int, **options: Unpack[ReadOptions]) -> Category:
        """Returns one category."""
        call = Call("get_category", "GET", f"/categories/{category_id}", self._category(category_id))
        return await self._send(call, options)

    async def put_category(self, category: Category, **options: Unpack[PutOptions]) -> Category:
        """Sets the name of a category, and creates the category if it doesn't exist.
        `Meta.status` is 201 if it was created, unless that response was lost and the call
        was retried. With `if_none_match="*"` it only creates."""
        check_model("put_category", Category, category)
        path, body, read = f"/categories/{category.id}", {"name": category.name}, self._category(category.id)
        call = Call("put_category", "PUT", path, read, body, conditional=True, creates=True)
        return await self._send(call, options)

    # Events

    @by_name
    def list_events(
        self,
        *,
        after: int | None = None,
        latest: bool = False,
        before: int | None = None,
        newest: bool = False,
        types: Sequence[str] | str | None = None,
        subject: str | None = None,
        pet_id: int | None = None,
        since: datetime | None = None,
        **options: Unpack[ReadOptions],
    ) -> AsyncIterator[Event]:
        """Lists the events so far, oldest first, and ends with the newest. `events` also
        waits for later ones.

        `after` is an event's id, `types` are like "pet.created", or "pet.*" for all of a
        resource, and `subject` is a resource, such as "pet/17". `pet_id` selects the events
        of a pet, its photos and its orders; it can't be used with `subject`. With `before` (an event's
        id) or `newest` the events are listed newest first, down to the oldest kept.

        `since` begins at most a minute before the first event at or after that time. With
        `before` or `newest` the list ends there instead. It can't be used with `after` or
        `latest`."""
        query = EventsQuery(after, latest, before, newest, types, subject, pet_id, since)
        return self._each(EventPages(self._core, "list_events", query, options))

    @by_name
    def events(
        self,
        *,
        after: int | None = None,
        latest: bool = False,
        types: Sequence[str] | str | None = None,
        subject: str | None = None,
        pet_id: int | None = None,
        since: datetime | None = None,
        **options: Unpack[CallOptions],
    ) -> AsyncIterator[Event]:
        """Follows the events of the store, oldest first. The loop has no end: it waits for
        the next event. After a failure it resumes where it was, however long that takes,
        with no limit on the number of attempts. So no event is skipped or repeated.

        `after` is the id of the last event that you have seen. Without it, events start with
        the oldest kept one, with `since` at most a minute before the first event at or after that
        time, or with `latest` from now on. EventsExpiredError means that the
        events after this position are no longer kept: rebuild from the lists what you built
        from earlier events.

        The service sends the events in a stream, which counts as one request as long as it
        lasts. If a stream can't be used, because a proxy holds it back or the key has too
        many, the client requests events one response after the other for ten minutes, at
        least two a minute, and then tries a stream again."""
        query = EventsQuery(after, latest, None, False, types, subject, pet_id, since)
        return self._each(Follower(self._core, query, options))

    async def list_event_page(
        self,
        limit: int = PAGE_SIZE,
        *,
        after: int | None = None,
        latest: bool = False,
        before: int | None = None,
        newest: bool = False,
        types: Sequence[str] | str | None = None,
        subject: str | None = None,
        pet_id: int | None = None,
        since: datetime | None = None,
        **options: Unpack[ReadOptions],
    ) -> tuple[list[Event], int]:
        """Makes one request for events, for programs that show one page at a time: at most
        `limit` events, 1 to 100, oldest first, and the id to continue after. With `before`
        or `newest` they are newest first, with the id to continue before, or 0 once the
        oldest kept event, or `since`, has been reached."""
        query = EventsQuery(after, latest, before, newest, types, subject, pet_id, since)
        pages = EventPages(self._core, "list_events", query, options)
        return await self._runner.run(pages.one_page(query, limit))

    async def latest_event_id(self, **options: Unpack[ReadOptions]) -> int:
        """Returns the id of the newest event, or 0 if there is none. Later events come after
        it."""
        query = EventsQuery(None, True, None, False, None, None, None)
        return await self._runner.run(EventPages(self._core, "latest_event_id", query, options).latest_id())

    # Limits and the server

    async def get_limits(self, **options: Unpack[ReadOptions]) -> Limits:
        """Returns how much of its plan the client's key has used. It counts as a request;
        `rate_limit`, which has the latest headers, doesn't."""
        return await self._send(Call("get_limits", "GET", "/limits", Limits.from_json), options)

    async def get_usage(self, hours: int | None = None, **options: Unpack[ReadOptions]) -> list[UsageHour]:
        """Returns the number of requests of the client's key by hour, the latest first, for
        the given number of hours, at most 2160, by default 24. Hours without a request are
        omitted."""
        path = path_with("/usage", {"hours": hours or None})
        return await self._send(Call("get_usage", "GET", path, list_of(UsageHour.from_json)), options)

    @by_name
    def list_failures(
        self,
        *,
        key_id: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
        since: datetime | None = None,
        page_size: int = PAGE_SIZE,
        **options: Unpack[ListOptions],
    ) -> AsyncIterator[Failure]:
        """Lists the requests that got an error response in the last seven days, newest
        first: those of the client's key or, with the `admin` permission, of all keys. A
        request appears within two seconds. `request_id` is that of a `ServiceError`."""
        query = {"keyId": key_id, "code": code, "requestId": request_id, "since": encode(since)}
        return self._each(self._pages("list_failures", "/failures", query, page_size, Failure.from_json, options))

    async def get_status(self, **options: Unpack[ReadOptions]) -> Status:
        """Returns the state of the server that responds: version, database, size, cache,
        last backup, and the requests of the last hour. It needs a key with the admin
        permission."""
        return await self._send(Call("get_status", "GET", "/status", Status.from_json), options)

    # Keys

    @by_name
    def list_keys(self, *, page_size: int = PAGE_SIZE, **options: Unpack[ListOptions]) -> AsyncIterator[Key]:
        """Lists keys, newest first, including revoked and expired ones. Like all operations
        on keys it needs a key with the admin permission."""
        return self._each(self._pages("list_keys", "/keys", {}, page_size, Key.from_json, options))

    async def create_key(self, key: NewKey, **options: Unpack[CallOptions]) -> KeyWithSecret:
        """Creates a key. Store its secret: it is not shown again. The service doesn't support
        Idempotency-Key here, because it would have to store the secret. So this call is only
        retried if it's certain that nothing was created. After an error with
        `outcome_unknown`, look for the key in the list and revoke it."""
        check_model("create_key", NewKey, key)
        call = Call("create_key", "POST", "/keys", KeyWithSecret.from_json, key, Repeat.HARMFUL, secret=True)
        return await self._send(call, options)

    async def get_key(self, key_id: int, **options: Unpack[ReadOptions]) -> Key:
        """Returns one key."""
        return await self._send(Call("get_key", "GET", f"/keys/{key_id}", Key.from_json), options)

    async def update_key(self, key_id: int, patch: KeyPatch, **options: Unpack[ChangeOptions]) -> Key:
        """Changes a key and returns the changed key. The change takes effect within a second.
        Use `if_match` to change it only if it is still in the state you read; using the key
        doesn't count as a change."""
        check_model("update_key", KeyPatch, patch)
        call = Call("update_key", "PATCH", f"/keys/{key_id}", Key.from_json, patch, conditional=True)
        return await self._send(call, options)

    async def revoke_key(self, key_id: int, **options: Unpack[ChangeOptions]) -> None:
        """Disables a key permanently. Revoking it again is not an error."""
        await self._send(self._removal("revoke_key", f"/keys/{key_id}"), options)

    async def rotate_key(
        self, key_id: int, grace_seconds: int = DEFAULT_GRACE, **options: Unpack[ChangeOptions]
    ) -> KeyWithSecret:
        """Gives a key a new secret. The previous ones keep working for the grace period, 0
        to 90 days. Like `create_key` it's only retried if it's certain that nothing was
        changed. After an error with `outcome_unknown`, rotate the key again."""
        call = self._rotation("rotate_key", f"/keys/{key_id}", KeyWithSecret.from_json, grace_seconds)
        return await self._send(call, options)

    async def unban_key(self, key_id: int, **options: Unpack[ChangeOptions]) -> Key:
        """Lifts the ban of a key, if it has one; `Meta.ban_lifted` says whether it did."""
        call = Call("unban_key", "POST", f"/keys/{key_id}/unban", Key.from_json, conditional=True)
        return await self._send(call, options)

    async def get_key_usage(
        self, key_id: int, hours: int | None = None, **options: Unpack[ReadOptions]
    ) -> list[UsageHour]:
        """Like `get_usage`, for any key."""
        path = path_with(f"/keys/{key_id}/usage", {"hours": hours or None})
        return await self._send(Call("get_key_usage", "GET", path, list_of(UsageHour.from_json)), options)

    # Webhooks

    @by_name
    def list_webhooks(self, *, page_size: int = PAGE_SIZE, **options: Unpack[ListOptions]) -> AsyncIterator[Webhook]:
        """Lists webhooks, newest first. Like all operations on webhooks it needs a key with
        the admin permission."""
        return self._each(self._pages("list_webhooks", "/webhooks", {}, page_size, Webhook.from_json, options))

    async def create_webhook(self, webhook: NewWebhook, **options: Unpack[CallOptions]) -> WebhookWithSecret:
        """Creates a webhook. Store its secret: it is not shown again, and receivers need it
        to verify webhooks; see `animalstore.webhook`. Like `create_key` it's only retried if
        it's certain that nothing was created."""
        check_model("create_webhook", NewWebhook, webhook)
        read = WebhookWithSecret.from_json
        call = Call("create_webhook", "POST", "/webhooks", read, webhook, Repeat.HARMFUL, secret=True)
        return await self._send(call, options)

    async def get_webhook(self, webhook_id: int, **options: Unpack[ReadOptions]) -> Webhook:
        """Returns one webhook."""
        return await self._send(Call("get_webhook", "GET", f"/webhooks/{webhook_id}", Webhook.from_json), options)

    async def update_webhook(self, webhook_id: int, patch: WebhookPatch, **options: Unpack[ChangeOptions]) -> Webhook:
        """Changes a webhook and returns it. Setting the state to active resumes a disabled or
        paused webhook; it never gets the events from while it was inactive."""
        check_model("update_webhook", WebhookPatch, patch)
        path = f"/webhooks/{webhook_id}"
        call = Call("update_webhook", "PATCH", path, Webhook.from_json, patch, conditional=True)
        return await self._send(call, options)

    async def delete_webhook(self, webhook_id: int, **options: Unpack[ChangeOptions]) -> None:
        """Removes a webhook with its deliveries."""
        await self._send(self._removal("delete_webhook", f"/webhooks/{webhook_id}"), options)

    async def rotate_webhook(
        self, webhook_id: int, grace_seconds: int = DEFAULT_GRACE, **options: Unpack[ChangeOptions]
    ) -> WebhookWithSecret:
        """Gives a webhook a new secret. During the grace period deliveries are also signed
        with the previous one. After an error with `outcome_unknown`, rotate it again."""
        path = f"/webhooks/{webhook_id}"
        return await self._send(
            self._rotation("rotate_webhook", path, WebhookWithSecret.from_json, grace_seconds), options
        )

    async def ping_webhook(
        self, webhook_id: int, event_type: str | None = None, **options: Unpack[CallOptions]
    ) -> Delivery:
        """Sends a message of type webhook.ping to a webhook, or sample data for a type of
        event, whether or not the webhook selects that type. The delivery shows the outcome
        later."""
        path, body = f"/webhooks/{webhook_id}/ping", {"type": event_type} if event_type else None
        call = Call("ping_webhook", "POST", path, Delivery.from_json, body, Repeat.HARMFUL, accepted=True)
        return await self._send(call, options)

    @by_name
    def list_deliveries(
        self,
        webhook_id: int,
        *,
        state: DeliveryState | None = None,
        page_size: int = PAGE_SIZE,
        **options: Unpack[ListOptions],
    ) -> AsyncIterator[Delivery]:
        """Lists the deliveries to a webhook, newest first."""
        path, query = f"/webhooks/{webhook_id}/deliveries", {"state": state}
        return self._each(self._pages("list_deliveries", path, query, page_size, Delivery.from_json, options))

    async def get_delivery(self, webhook_id: int, delivery_id: int, **options: Unpack[ReadOptions]) -> DeliveryWithBody:
        """Returns a delivery to a webhook and the body that is sent."""
        path = f"/webhooks/{webhook_id}/deliveries/{delivery_id}"
        return await self._send(Call("get_delivery", "GET", path, DeliveryWithBody.from_json), options)

    async def retry_delivery(self, webhook_id: int, delivery_id: int, **options: Unpack[CallOptions]) -> Delivery:
        """Makes a delivery due now, regardless of its state."""
        path = f"/webhooks/{webhook_id}/deliveries/{delivery_id}/retry"
        return await self._send(Call("retry_delivery", "POST", path, Delivery.from_json, accepted=True), options)

    async def retry_deliveries(self, webhook_id: int, which: DeliveryRetry, **options: Unpack[CallOptions]) -> int:
        """Makes all matching deliveries to a webhook due now, and returns how many there are.
        With a state, repeating a call that failed continues it."""
        check_model("retry_deliveries", DeliveryRetry, which)
        path = f"/webhooks/{webhook_id}/deliveries/retry"
        call = Call("retry_deliveries", "POST", path, self._count, which, accepted=True)
        return await self._send(call, options)

    # Calls that several methods make

    def _pages(
        self,
        operation: str,
        path: str,
        query: dict[str, Any],
        page_size: int,
        read: Callable[[object], T],
        options: ListOptions,
    ) -> Pages[T]:
        return Pages(self._core, operation, path, {**query, "limit": page_size}, read, options)

    @staticmethod
    def _category(category_id: int) -> Callable[[object], Category]:
        def read(value: object) -> Category:
            category = Category.from_json(value)
            if category.id != category_id:
                raise DecodeError("it is another category")
            return category

        return read

    @staticmethod
    def _removal(operation: str, path: str) -> Call[None]:
        return Call(operation, "DELETE", path, None, conditional=True)

    @staticmethod
    def _rotation(operation: str, path: str, read: Callable[[object], T], grace_seconds: int) -> Call[T]:
        body = {"graceSeconds": grace_seconds}
        return Call(operation, "POST", path + "/rotate", read, body, Repeat.HARMFUL, conditional=True, secret=True)

    @staticmethod
    def _count(value: object) -> int:
        return integer(json_object(value).get("deliveries"))
