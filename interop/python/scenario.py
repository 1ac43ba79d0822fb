import os
import re
from datetime import datetime, timezone

from animalstore import (
    ApiClient, Configuration, NewKey, KeyLimits, KeyPatch, KeysApi, NewOrder, OrderPatch, OrderStatus, OrdersApi,
    NewPet, PetPatch, PetsApi, PetStatus, Plan,
)
from animalstore.exceptions import ApiException, NotFoundException


# Without retries=0, urllib3 waits as long as a 429 says and then tries again.
def connect(key):
    return ApiClient(Configuration(host=os.environ["ANIMALSTORE_URL"], access_token=key, retries=0))


client = connect(os.environ["ANIMALSTORE_API_KEY"])
pets, orders, keys = PetsApi(client), OrdersApi(client), KeysApi(client)
CATEGORY = 3

# Create, list, get.
ada, bo, *_ = [pets.create_pet(NewPet(name=name, categoryId=CATEGORY)) for name in ["Ada", "Bo", "Cleo", "Dot", "Eve"]]
assert pets.list_pets(id=[ada.id, bo.id], status=PetStatus.AVAILABLE) == [bo, ada]
assert pets.get_pet(ada.id) == ada

# Change, order, cancel, delete.
assert pets.update_pet(ada.id, PetPatch(name="Ada L.")).name == "Ada L."
order = orders.place_order(NewOrder(petId=ada.id))
assert order.created_at.tzinfo is not None
assert orders.update_order(order.id, OrderPatch(status=OrderStatus.CANCELLED)).status == OrderStatus.CANCELLED
assert pets.delete_pet_with_http_info(ada.id).status_code == 204

# All pages: the cursor is in the Link header.
names, cursor = [], None
while True:
    page = pets.list_pets_with_http_info(category_id=CATEGORY, limit=2, cursor=cursor)
    names += [pet.name for pet in page.data]
    following = re.search(r'[?&]cursor=([^&>]+)[^>]*>; rel="next"', page.headers["Link"])
    if not following:
        break
    cursor = following[1]
assert names == ["Eve", "Dot", "Cleo", "Bo"], names

# A typed 404.
try:
    pets.get_pet(ada.id)
    raise AssertionError("got the removed pet")
except NotFoundException as e:
    assert e.data.code == "pet_not_found", e

# A key with one request a minute; null in a patch; a typed 429.
key = keys.create_key(NewKey(
    name="limited", plan=Plan.ENTERPRISE, limits=KeyLimits(perMinute=1, perDay=10),
    expiresAt=datetime(2099, 1, 1, tzinfo=timezone.utc),
))
assert key.expires_at.year == 2099 and key.ban is None
assert keys.get_key(key.id).ban is None and keys.list_keys()[0].ban is None
assert keys.update_key(key.id, KeyPatch(expiresAt=None)).expires_at is None
limited = PetsApi(connect(key.secret))
limited.list_pets()
try:
    limited.list_pets()
    raise AssertionError("got a second page in the same minute")
except ApiException as e:
    assert e.status == 429 and e.data.code == "rate_limit_exceeded", e
    assert int(e.headers["Retry-After"]) > 0
