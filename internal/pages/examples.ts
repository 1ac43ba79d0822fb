// The functions in this file are the TypeScript examples on the docs page. Each is named
// after its operation id. TestTypeScriptExamples_Slow in clients/conformance runs them.
import { readFile, writeFile } from "node:fs/promises";
import type { Client } from "animalstore";

export async function listPets(store: Client) {
  for await (const pet of store.listPets({ status: "available" })) {
    console.log(pet.id, pet.name);
  }
}

export async function createPet(store: Client) {
  const pet = await store.createPet({ name: "Rex", categoryId: 7 });
  console.log(pet.id, pet.status);
}

export async function createPetBatch(store: Client) {
  const pets = await store.createPetBatch([{ name: "Rex", categoryId: 7 }, { name: "Mia", categoryId: 3 }]);
  console.log(pets[0].id, pets[1].id);
}

export async function getPet(store: Client) {
  const pet = await store.findPet(42); // uses the list, because this operation is deprecated
  console.log(pet.name, pet.status);
}

export async function updatePet(store: Client) {
  const pet = await store.updatePet(42, { name: "Rex II" });
  console.log(pet.name, pet.status);
}

export async function deletePet(store: Client) {
  await store.deletePet(42);
}

export async function addPhoto(store: Client) {
  const photo = await store.addPhoto(42, await readFile("photo.jpg"));
  console.log(photo.id, photo.width, photo.height);
}

export async function listPhotos(store: Client) {
  for await (const photo of store.listPhotos({ petIds: [42, 41] })) {
    console.log(photo.id, photo.petId);
  }
}

export async function getPhoto(store: Client) {
  const photo = await store.getPhoto(5);
  console.log(photo.petId, photo.width, photo.height);
}

export async function deletePhoto(store: Client) {
  await store.deletePhoto(5);
}

export async function getImage(store: Client) {
  const image = await store.getImage(5);
  await writeFile("photo.jpg", image.stream());
}

export async function getThumbnail(store: Client) {
  const image = await store.getThumbnail(5);
  await writeFile("thumbnail.jpg", image.stream());
}

export async function listOrders(store: Client) {
  for await (const order of store.listOrders({ status: ["placed", "approved"], oldest: true })) {
    console.log(order.id, order.petId);
  }
}

export async function placeOrder(store: Client) {
  const order = await store.placeOrder({ petId: 42, reference: "A-1042" });
  console.log(order.id, order.status);
}

export async function getOrder(store: Client) {
  const order = await store.getOrder(9);
  console.log(order.petId, order.status);
}

export async function updateOrder(store: Client) {
  const order = await store.updateOrder(9, { status: "approved" });
  console.log(order.petId, order.status);
}

export async function getInventory(store: Client) {
  const inventory = await store.getInventory();
  console.log(inventory.available, "available");
}

export async function listCategories(store: Client) {
  for await (const category of store.listCategories()) {
    console.log(category.id, category.name);
  }
}

export async function getCategory(store: Client) {
  const category = await store.getCategory(7);
  console.log(category.name);
}

export async function putCategory(store: Client) {
  const category = await store.putCategory({ id: 7, name: "Dogs" });
  console.log(category.name);
}

export async function listEvents(store: Client) {
  // Use events instead of listEvents to wait for new ones.
  for await (const event of store.listEvents({ types: ["pet.*"] })) {
    console.log(event.type, event.subject);
  }
}

export async function getLimits(store: Client) {
  const limits = await store.getLimits();
  console.log(limits.minute.remaining, "of", limits.minute.limit);
}

export async function getUsage(store: Client) {
  for (const hour of await store.getUsage(24)) {
    console.log(hour.hour, hour.admitted, hour.refused);
  }
}

export async function listFailures(store: Client) {
  for await (const failure of store.listFailures({ code: "validation_failed" })) {
    console.log(failure.time, failure.method, failure.message);
  }
}

export async function getStatus(store: Client) {
  const status = await store.getStatus();
  console.log(status.version, status.engine, status.sizeBytes);
}

export async function listKeys(store: Client) {
  for await (const key of store.listKeys()) {
    console.log(key.id, key.name);
  }
}

export async function createKey(store: Client) {
  const key = await store.createKey({ name: "shop", plan: "pro" });
  console.log(key.id, key.secret); // store it: it isn't shown again
}

export async function getKey(store: Client) {
  const key = await store.getKey(2);
  console.log(key.name, key.plan);
}

export async function updateKey(store: Client) {
  const key = await store.updateKey(2, { plan: "business" });
  console.log(key.name, key.plan);
}

export async function revokeKey(store: Client) {
  await store.revokeKey(2);
}

export async function rotateKey(store: Client) {
  const key = await store.rotateKey(2, 3600); // the old secret works for another hour
  console.log(key.secret); // store it: it isn't shown again
}

export async function unbanKey(store: Client) {
  const key = await store.unbanKey(2);
  console.log(key.name);
}

export async function getKeyUsage(store: Client) {
  for (const hour of await store.getKeyUsage(2, 24)) {
    console.log(hour.hour, hour.admitted, hour.refused);
  }
}

export async function listWebhooks(store: Client) {
  for await (const webhook of store.listWebhooks()) {
    console.log(webhook.id, webhook.url, webhook.state);
  }
}

export async function createWebhook(store: Client) {
  const webhook = await store.createWebhook({ url: "https://example.com/hook", types: ["pet.*", "order.created"] });
  console.log(webhook.id, webhook.secret); // store it: it isn't shown again
}

export async function getWebhook(store: Client) {
  const webhook = await store.getWebhook(1);
  console.log(webhook.url, webhook.state, webhook.lastDeliveredAt);
}

export async function updateWebhook(store: Client) {
  const webhook = await store.updateWebhook(1, { state: "paused" });
  console.log(webhook.url, webhook.state);
}

export async function deleteWebhook(store: Client) {
  await store.deleteWebhook(1);
}

export async function rotateWebhook(store: Client) {
  const webhook = await store.rotateWebhook(1, 3600); // both secrets sign for another hour
  console.log(webhook.secret); // store it: it isn't shown again
}

export async function pingWebhook(store: Client) {
  const delivery = await store.pingWebhook(1);
  console.log(delivery.id, delivery.state);
}

export async function listDeliveries(store: Client) {
  for await (const delivery of store.listDeliveries(1, { state: "failed" })) {
    console.log(delivery.id, delivery.type, delivery.attempts);
  }
}

export async function retryDelivery(store: Client) {
  const delivery = await store.retryDelivery(1, 1);
  console.log(delivery.id, delivery.nextAttemptAt);
}

export async function getDelivery(store: Client) {
  const delivery = await store.getDelivery(1, 1);
  console.log(delivery.state, delivery.body);
}

export async function retryDeliveries(store: Client) {
  console.log(await store.retryDeliveries(1, { state: "failed" }));
}
