import assert from "node:assert/strict";
import { createClient } from "./client/client/index.js";
import { createKey, createPet, deletePet, getPet, listPets, placeOrder, updateKey, updateOrder, updatePet, type Pet } from "./client/index.js";

const connect = (key: string) => createClient({ baseUrl: process.env.ANIMALSTORE_URL!, auth: key });
const client = connect(process.env.ANIMALSTORE_API_KEY!);
const categoryId = 2;

// Create, list, get.
const pets: Pet[] = [];
for (const name of ["Ada", "Bo", "Cleo", "Dot", "Eve"]) {
  const { data, error } = await createPet({ client, body: { name, categoryId } });
  assert(data, error?.message);
  pets.push(data);
}
const [ada, bo] = pets;
const both = await listPets({ client, query: { id: [ada.id, bo.id], status: "available" } });
assert.deepEqual(both.data, [bo, ada]);
const path = { petId: ada.id };
const one = await getPet({ client, path });
assert.deepEqual(one.data, ada);

// Change, order, cancel, delete.
const renamed = await updatePet({ client, path, body: { name: "Ada L." } });
assert.equal(renamed.data?.name, "Ada L.");
const order = await placeOrder({ client, body: { petId: ada.id } });
assert(order.data && Date.parse(order.data.createdAt) > 0);
const cancelled = await updateOrder({ client, path: { orderId: order.data.id }, body: { status: "cancelled" } });
assert.equal(cancelled.data?.status, "cancelled");
const removed = await deletePet({ client, path });
assert.equal(removed.response?.status, 204);

// All pages: the cursor is in the Link header.
const names: string[] = [];
let cursor: string | undefined;
do {
  const page = await listPets({ client, query: { categoryId, limit: 2, cursor } });
  assert(page.data, page.error?.message);
  names.push(...page.data.map((pet) => pet.name));
  cursor = /[?&]cursor=([^&>]+)[^>]*>; rel="next"/.exec(page.response?.headers.get("Link") ?? "")?.[1];
} while (cursor);
assert.deepEqual(names, ["Eve", "Dot", "Cleo", "Bo"]);

// A typed 404.
const gone = await getPet({ client, path });
assert.equal(gone.response?.status, 404);
assert.equal(gone.error?.code, "pet_not_found");

// A key with one request a minute; null in a patch; a typed 429.
const key = await createKey({
  client,
  body: { name: "limited", plan: "enterprise", limits: { perMinute: 1, perDay: 10 }, expiresAt: "2099-01-01T00:00:00Z" },
});
assert(key.data?.expiresAt, key.error?.message);
const forever = await updateKey({ client, path: { keyId: key.data.id }, body: { expiresAt: null } });
assert.equal(forever.data?.expiresAt, null);
const limited = connect(key.data.secret);
await listPets({ client: limited });
const refused = await listPets({ client: limited });
assert.equal(refused.response?.status, 429);
assert.equal(refused.error?.code, "rate_limit_exceeded");
assert(Number(refused.response?.headers.get("Retry-After")) > 0);
