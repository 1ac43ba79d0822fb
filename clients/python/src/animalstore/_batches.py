from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from typing import cast

from ._call import Call, Repeat, check_model
from ._core import Core, Steps
from ._json import DecodeError, encode
from ._models import NewPet, Pet, PetBatch
from ._options import AllOptions, CallOptions

MAX_BATCH = 100
"""How many pets can be added at once."""


def batch_call(operation: str, pets: Sequence[NewPet]) -> Call[list[Pet]]:
    """The call that adds pets at once."""
    for pet in pets:
        check_model(operation, NewPet, pet)

    def read(value: object) -> list[Pet]:
        added = PetBatch.from_json(value).pets
        if len(added) != len(pets):
            raise DecodeError("expected each of the pets")
        return added

    return Call(operation, "POST", "/pets/batch", read, {"pets": list(pets)}, Repeat.REPLAYED)


def import_pets(
    core: Core, pets: Sequence[NewPet], salt: str, on_batch: Callable[[int], None] | None, options: CallOptions
) -> Steps[list[Pet]]:
    """Adds pets in batches whose keys are the same whenever the same pets are added."""
    batches = [batch_call("import_pets", pets[i : i + MAX_BATCH]) for i in range(0, len(pets), MAX_BATCH)]
    digest = hashlib.sha256(json.dumps([salt, encode(list(pets))]).encode()).hexdigest()
    timeout = options.get("timeout")
    deadline = None if timeout is None else time.monotonic() + timeout
    added: list[Pet] = []
    for number, call in enumerate(batches, 1):
        size = min(MAX_BATCH, len(pets) - len(added))
        keyed = cast(AllOptions, {**options, "idempotency_key": f"import-{digest}-{number}-{size}"})
        added += yield from core.call(call, keyed, deadline)
        if on_batch:
            on_batch(len(added))
    return added
