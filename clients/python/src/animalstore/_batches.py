from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast, get_args

from ._call import Call, Repeat, check_model
from ._core import Core, Steps
from ._errors import InvalidArgumentError
from ._json import UNSET, DecodeError, json_bytes
from ._models import NewPet, Pet, PetBatch, PetStatus
from ._options import AllOptions, CallOptions, Meta

MAX_BATCH = 100
"""How many pets can be added at once."""


@dataclass
class PetImport:
    """The progress or the result of `import_pets`."""

    pets: list[Pet] = field(default_factory=list)
    """Those that were added, now or by an earlier call, as they were when they were added, in
    the order of the list."""
    added: int = 0
    """How many this call added."""
    existing: int = 0
    """How many an earlier call with the same pets had added."""


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


def broken_rule(pet: NewPet) -> str:
    """Says why the service would refuse a pet, or ""."""
    name, category_id = cast(object, pet.name), cast(object, pet.category_id)
    if not isinstance(name, str):
        return "name must be a string"
    statuses = get_args(PetStatus)
    rules: list[tuple[object, str]] = [
        (name.strip(), "name must not be white space only"),
        (len(name) <= 1024, "name must have at most 1024 characters"),
        ("\0" not in name, "name must not contain the character U+0000"),
        (isinstance(category_id, int) and -(2**63) <= category_id < 2**63, "category_id must be a 64-bit integer"),
        (pet.status is UNSET or pet.status in statuses, f"status must be one of {', '.join(statuses)}"),
    ]
    return next((text for kept, text in rules if not kept), "")


def import_pets(
    core: Core, pets: Sequence[NewPet], salt: str, on_batch: Callable[[PetImport], None] | None, options: CallOptions
) -> Steps[PetImport]:
    """Adds pets in batches whose keys are the same whenever the same pets are added."""
    batches = [batch_call("import_pets", pets[i : i + MAX_BATCH]) for i in range(0, len(pets), MAX_BATCH)]
    for i, pet in enumerate(pets):
        if broken := broken_rule(pet):
            raise InvalidArgumentError(f"pets[{i}].{broken}", operation="import_pets")
    digest = hashlib.sha256(json_bytes([salt, list(pets)])).hexdigest()
    timeout = options.get("timeout")
    deadline = None if timeout is None else time.monotonic() + timeout
    meta = options.get("meta") or Meta()
    done = PetImport()
    fresh = False  # no earlier call got this far
    for number, call in enumerate(batches, 1):
        size = min(MAX_BATCH, len(pets) - len(done.pets))
        keyed = cast(AllOptions, {**options, "meta": meta, "idempotency_key": f"import-{digest}-{number}-{size}"})
        done.pets += yield from core.call(call, keyed, deadline)
        fresh = fresh or not meta.replayed
        if fresh or call.resent:
            done.added += size
        else:  # an earlier call added this batch, and so those before it
            done.existing += done.added + size
            done.added = 0
        if on_batch:
            on_batch(done)
    return done
