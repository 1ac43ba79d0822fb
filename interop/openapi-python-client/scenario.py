import os
import re
from datetime import datetime, timezone

from animalstore import AuthenticatedClient
from animalstore.api.keys import create_key, update_key
from animalstore.api.orders import place_order, update_order
from animalstore.api.pets import create_pet, delete_pet, get_pet, list_pets, update_pet
from animalstore.models import (
    Error, NewKey, KeyLimits, KeyPatch, NewOrder, OrderPatch, OrderStatus, NewPet, PetPatch, PetStatus, Plan,
)
from animalstore.types import UNSET


def connect(key):
    return AuthenticatedClient(base_url=os.environ["ANIMALSTORE_URL"], token=key)


client = connect(os.environ["ANIMALSTORE_API_KEY"])
CATEGORY = 4

# Create, list, get.
ada, bo, *_ = [
    create_pet.sync(client=client, body=NewPet(name=name, category_id=CATEGORY))
    for name in ["Ada", "Bo", "Cleo", "Dot", "Eve"]
]
assert list_pets.sync(client=client, id=[ada.id, bo.id], status=PetStatus.AVAILABLE) == [bo, ada]
assert get_pet.sync(ada.id, client=client) == ada

# Change, order, cancel, delete.
assert update_pet.sync(ada.id, client=client, body=PetPatch(name="Ada L.")).name == "Ada L."
order = place_order.sync(client=client, body=NewOrder(pet_id=ada.id))
assert order.created_at.tzinfo is not None
cancelled = update_order.sync(order.id, client=client, body=OrderPatch(status=OrderStatus.CANCELLED))
assert cancelled.status == OrderStatus.CANCELLED
assert delete_pet.sync_detailed(ada.id, client=client).status_code == 204

# All pages: the cursor is in the Link header.
names, cursor = [], UNSET
while True:
    page = list_pets.sync_detailed(client=client, category_id=CATEGORY, limit=2, cursor=cursor)
    names += [pet.name for pet in page.parsed]
    following = re.search(r'[?&]cursor=([^&>]+)[^>]*>; rel="next"', page.headers["Link"])
    if not following:
        break
    cursor = following[1]
assert names == ["Eve", "Dot", "Cleo", "Bo"], names

# A typed 404.
gone = get_pet.sync(ada.id, client=client)
assert isinstance(gone, Error) and gone.code == "pet_not_found" and gone.status == 404, gone

# A key with one request a minute; null in a patch; a typed 429.
key = create_key.sync(client=client, body=NewKey(
    name="limited", plan=Plan.ENTERPRISE, limits=KeyLimits(per_minute=1, per_day=10),
    expires_at=datetime(2099, 1, 1, tzinfo=timezone.utc),
))
assert key.expires_at.year == 2099
assert update_key.sync(key.id, client=client, body=KeyPatch(expires_at=None)).expires_at is None
limited = connect(key.secret)
list_pets.sync(client=limited)
refused = list_pets.sync_detailed(client=limited)
assert isinstance(refused.parsed, Error) and refused.parsed.code == "rate_limit_exceeded", refused
assert int(refused.headers["Retry-After"]) > 0
