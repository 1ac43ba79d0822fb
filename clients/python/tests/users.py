"""Code as users of the package write it, for mypy and pyright: what is marked must be an
error, and nothing else."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler

from werkzeug import Request  # the one of Flask

from animalstore import (
    UNSET,
    AsyncClient,
    CallAttempt,
    CancelToken,
    Client,
    EventsExpiredError,
    KeyPatch,
    Meta,
    NewPet,
    NewWebhook,
    Pet,
    PetEvent,
    PetPatch,
    PetStatus,
    RateLimitError,
    ServiceError,
    webhook,
)


def sell(client: Client, pet_id: int) -> PetStatus:
    meta = Meta()
    client.get_limits(meta=meta, timeout=5, cancel=CancelToken())
    try:
        pet = client.update_pet(pet_id, PetPatch(status="sold"), if_match=meta.etag)
    except RateLimitError as e:
        raise SystemExit(f"wait {e.retry_after} s for the {e.window}") from e
    except ServiceError as e:
        raise SystemExit(f"{e.code} {e.status} {e.message} {e.request_id}") from e
    return pet.status


def mirror(client: Client) -> dict[int, Pet]:
    position = client.latest_event_id()
    pets = {pet.id: pet for pet in client.list_pets(status="available", page_size=50)}
    try:
        for event in client.events(after=position, types=["pet.*"]):
            if event.type == "pet.deleted":
                pets.pop(event.data.id, None)
            elif isinstance(event, PetEvent):
                pets[event.data.id] = event.data
    except EventsExpiredError:
        return mirror(client)
    return pets


async def names(client: AsyncClient) -> list[str]:
    await client.create_pet(NewPet(name="Rex", category_id=7), idempotency_key="cart-17")
    return [pet.name async for pet in client.list_pets()]


def never_expires(client: Client, key_id: int) -> bool:
    key = client.update_key(key_id, KeyPatch(expires_at=None))
    return key.expires_at is None and KeyPatch().expires_at is UNSET


def receive(client: Client, headers: dict[str, str], body: bytes) -> None:
    created = client.create_webhook(NewWebhook(url="https://example.com/hook"))
    message = webhook.verify([created.secret, "whsec_b2xk"], headers, body)
    if message.type == "order.created":
        print(message.data.pet_id, message.timestamp)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        webhook.verify("whsec_b2xk", self.headers, self.rfile.read())


def receive_flask(request: Request) -> str:
    return webhook.verify("whsec_b2xk", request.headers, request.get_data()).type


def log(attempt: CallAttempt) -> None:
    print(attempt.operation, attempt.method, attempt.path, attempt.status, attempt.seconds, attempt.request_id)


def logged(url: str, key: str) -> Client:
    return Client(url, key, on_attempt=log)


def mistakes(client: Client) -> None:
    client.list_pets(status="gone")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.create_pet(NewPet(name="Rex"))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.create_pet(NewPet("Rex", 7), if_match="x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    for event in client.events():
        if event.type == "pet.created":
            event.data.pet_id  # type: ignore[attr-defined]  # noqa: B018  # pyright: ignore
    client.create_pet({"name": "Rex"})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.list_pets({"status": "sold"})  # type: ignore[call-arg, arg-type]  # pyright: ignore[reportCallIssue]
    client.get_pet("7")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    webhook.verify("whsec_b2xk", ["webhook-id"], b"")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.get_order(7).statuss  # type: ignore[attr-defined]  # noqa: B018  # pyright: ignore
