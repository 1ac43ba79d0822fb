"""The functions in this file are the Python examples on the docs page. Each is named after
its operation id. TestPythonExamples_Slow in clients/conformance runs them."""

from animalstore import (
    Category,
    Client,
    DeliveryRetry,
    KeyPatch,
    NewKey,
    NewPet,
    NewWebhook,
    OrderPatch,
    PetPatch,
    WebhookPatch,
)


def list_pets(store: Client) -> None:
    for pet in store.list_pets(status="available"):
        print(pet.id, pet.name)


def create_pet(store: Client) -> None:
    pet = store.create_pet(NewPet(name="Rex", category_id=7))
    print(pet.id, pet.status)


def create_pet_batch(store: Client) -> None:
    pets = store.create_pet_batch([NewPet(name="Rex", category_id=7), NewPet(name="Mia", category_id=3)])
    print(pets[0].id, pets[1].id)


def get_pet(store: Client) -> None:
    pet = store.find_pet(42)  # uses the list, because this operation is deprecated
    print(pet.name, pet.status)


def update_pet(store: Client) -> None:
    pet = store.update_pet(42, PetPatch(name="Rex II"))
    print(pet.name, pet.status)


def delete_pet(store: Client) -> None:
    store.delete_pet(42)


def add_photo(store: Client) -> None:
    with open("photo.jpg", "rb") as picture:
        photo = store.add_photo(42, picture)
    print(photo.id, photo.width, photo.height)


def list_photos(store: Client) -> None:
    for photo in store.list_photos([42, 41]):
        print(photo.id, photo.pet_id)


def get_photo(store: Client) -> None:
    photo = store.get_photo(5)
    print(photo.pet_id, photo.width, photo.height)


def delete_photo(store: Client) -> None:
    store.delete_photo(5)


def get_image(store: Client) -> None:
    image = store.get_image(5)
    with open("photo.jpg", "wb") as file:
        file.write(image.data)


def get_thumbnail(store: Client) -> None:
    image = store.get_thumbnail(5)
    with open("thumbnail.jpg", "wb") as file:
        file.write(image.data)


def list_orders(store: Client) -> None:
    for order in store.list_orders(status=["placed", "approved"], oldest=True):
        print(order.id, order.pet_id)


def place_order(store: Client) -> None:
    order = store.place_order(42, reference="A-1042")
    print(order.id, order.status)


def get_order(store: Client) -> None:
    order = store.get_order(9)
    print(order.pet_id, order.status)


def update_order(store: Client) -> None:
    order = store.update_order(9, OrderPatch(status="approved"))
    print(order.pet_id, order.status)


def get_inventory(store: Client) -> None:
    inventory = store.get_inventory(category_id=7)
    print(inventory.available, inventory.pending, inventory.sold)


def list_categories(store: Client) -> None:
    for category in store.list_categories():
        print(category.id, category.name)


def get_category(store: Client) -> None:
    category = store.get_category(7)
    print(category.name)


def put_category(store: Client) -> None:
    category = store.put_category(Category(id=7, name="Dogs"))
    print(category.name)


def list_events(store: Client) -> None:
    # Use events instead of list_events to wait for new ones.
    for event in store.list_events(types=["pet.*"]):
        print(event.type, event.subject)


def get_limits(store: Client) -> None:
    limits = store.get_limits()
    print(limits.minute.remaining, "of", limits.minute.limit)


def get_usage(store: Client) -> None:
    for hour in store.get_usage(24):
        print(hour.hour, hour.admitted, hour.refused)


def list_failures(store: Client) -> None:
    for failure in store.list_failures(code="validation_failed"):
        print(failure.time, failure.method, failure.message)


def get_status(store: Client) -> None:
    status = store.get_status()
    print(status.version, status.engine, status.size_bytes)


def list_keys(store: Client) -> None:
    for key in store.list_keys():
        print(key.id, key.name)


def create_key(store: Client) -> None:
    key = store.create_key(NewKey(name="shop", plan="pro"))
    print(key.id, key.secret)  # store it: it isn't shown again


def get_key(store: Client) -> None:
    key = store.get_key(2)
    print(key.name, key.plan)


def update_key(store: Client) -> None:
    key = store.update_key(2, KeyPatch(plan="business"))
    print(key.name, key.plan)


def revoke_key(store: Client) -> None:
    store.revoke_key(2)


def rotate_key(store: Client) -> None:
    key = store.rotate_key(2, grace_seconds=3600)  # the old secret works for another hour
    print(key.secret)  # store it: it isn't shown again


def unban_key(store: Client) -> None:
    key = store.unban_key(2)
    print(key.name)


def get_key_usage(store: Client) -> None:
    for hour in store.get_key_usage(2, 24):
        print(hour.hour, hour.admitted, hour.refused)


def list_webhooks(store: Client) -> None:
    for webhook in store.list_webhooks():
        print(webhook.id, webhook.url, webhook.state)


def create_webhook(store: Client) -> None:
    webhook = store.create_webhook(NewWebhook(url="https://example.com/hook", types=["pet.*", "order.created"]))
    print(webhook.id, webhook.secret)  # store it: it isn't shown again


def get_webhook(store: Client) -> None:
    webhook = store.get_webhook(1)
    print(webhook.url, webhook.state, webhook.last_delivered_at)


def update_webhook(store: Client) -> None:
    webhook = store.update_webhook(1, WebhookPatch(state="paused"))
    print(webhook.url, webhook.state)


def delete_webhook(store: Client) -> None:
    store.delete_webhook(1)


def rotate_webhook(store: Client) -> None:
    webhook = store.rotate_webhook(1, grace_seconds=3600)  # both secrets sign for another hour
    print(webhook.secret)  # store it: it isn't shown again


def ping_webhook(store: Client) -> None:
    delivery = store.ping_webhook(1)
    print(delivery.id, delivery.state)


def list_deliveries(store: Client) -> None:
    for delivery in store.list_deliveries(1, state="failed"):
        print(delivery.id, delivery.type, delivery.attempts)


def retry_delivery(store: Client) -> None:
    delivery = store.retry_delivery(1, 1)
    print(delivery.id, delivery.next_attempt_at)


def get_delivery(store: Client) -> None:
    delivery = store.get_delivery(1, 1)
    print(delivery.state, delivery.body)


def retry_deliveries(store: Client) -> None:
    deliveries = store.retry_deliveries(1, DeliveryRetry(state="failed"))
    print(deliveries)
