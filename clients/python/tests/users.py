"""Code as users of the package write it, for mypy and pyright: what is marked must be an
error, and nothing else."""

from __future__ import annotations

from animalstore import (
    UNSET,
    AsyncClient,
    CancelToken,
    Client,
    EventsExpiredError,
    KeyPatch,
    Meta,
    NewPet,
    NewWebhook,
    Pet,
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
            pet = Pet.from_json(event.data)
            if event.type == "pet.deleted":
                pets.pop(pet.id, None)
            else:
                pets[pet.id] = pet
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
    webhook.verify([created.secret, "whsec_b2xk"], headers, body)


def mistakes(client: Client) -> None:
    client.list_pets(status="gone")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.create_pet(NewPet(name="Rex"))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.create_pet(NewPet("Rex", 7), if_match="x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.get_pet("7")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.get_order(7).statuss  # type: ignore[attr-defined]  # noqa: B018  # pyright: ignore
