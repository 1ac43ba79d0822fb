"""Mistakes of users of the package, and what it says about them. Nothing is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import animalstore

client: Any = animalstore.Client("http://127.0.0.1:1", "key", max_attempts=1)


def refuses(mistake: Callable[[], object], *expected: str) -> None:
    said = "nothing"
    try:
        mistake()
    except (TypeError, ValueError) as e:
        said = str(e)
    assert all(text in said for text in expected), f"got {said}, want {expected}"


refuses(lambda: client.create_pet({"name": "Rex", "categoryId": 7}), "create_pet", "NewPet(name='Rex', category_id=7)")
refuses(lambda: client.update_pet(1, {"status": "sold"}), "update_pet", "PetPatch(status='sold')")
refuses(lambda: client.put_category({"id": 7, "name": "Dogs"}), "put_category", "Category(id=7, name='Dogs')")
refuses(lambda: client.list_pets({"status": "sold"}), "list_pets", "status='sold'")
refuses(lambda: next(client.list_pets(staus="sold")), "list_pets", "staus")
refuses(lambda: client.get_order(5, cursor="x"), "get_order", "lists")
refuses(lambda: client.get_order(None), "get_order", "id")
refuses(lambda: client.find_pet(None), "find_pet", "id")
refuses(lambda: client.place_order(None), "place_order", "id")

e = animalstore.ServiceError(
    "pet_not_found", "there is no pet with id 9", 404, "request-1", operation="find_pet", request="GET http://x/v1/pets"
)
assert str(e) == "find_pet: 404 pet_not_found: there is no pet with id 9 (GET http://x/v1/pets)", e
