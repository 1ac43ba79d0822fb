import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const baseUrl = process.env.ANIMALSTORE_URL!;
const connect = (key: string) => createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });
const store = connect(process.env.ANIMALSTORE_API_KEY!);
const categoryId = 1;

// Create, list, get.
const pets: components["schemas"]["Pet"][] = [];
for (const name of ["Ada", "Bo", "Cleo", "Dot", "Eve"]) {
  const { data, error } = await store.POST("/pets", { body: { name, categoryId } });
  assert(data, error?.message);
  pets.push(data);
}
const [ada, bo] = pets as [(typeof pets)[0], (typeof pets)[0]];
const both = await store.GET("/pets", { params: { query: { id: [ada.id, bo.id], status: "available" } } });
assert.deepEqual(both.data, [bo, ada]);
const one = await store.GET("/pets/{petId}", { params: { path: { petId: ada.id } } });
assert.deepEqual(one.data, ada);

// Change, order, cancel, delete.
const renamed = await store.PATCH("/pets/{petId}", { params: { path: { petId: ada.id } }, body: { name: "Ada L." } });
assert.equal(renamed.data?.name, "Ada L.");
const order = await store.POST("/store/orders", { body: { petId: ada.id } });
assert(order.data && Date.parse(order.data.createdAt) > 0);
const cancelled = await store.PATCH("/store/orders/{orderId}", { params: { path: { orderId: order.data.id } }, body: { status: "cancelled" } });
assert.equal(cancelled.data?.status, "cancelled");
const removed = await store.DELETE("/pets/{petId}", { params: { path: { petId: ada.id } } });
assert.equal(removed.response.status, 204);

// All pages: the cursor is in the Link header.
const names: string[] = [];
let cursor: string | undefined;
do {
  const page = await store.GET("/pets", { params: { query: { categoryId, limit: 2, cursor } } });
  assert(page.data, page.error?.message);
  names.push(...page.data.map((pet) => pet.name));
  cursor = /[?&]cursor=([^&>]+)[^>]*>; rel="next"/.exec(page.response.headers.get("Link") ?? "")?.[1];
} while (cursor);
assert.deepEqual(names, ["Eve", "Dot", "Cleo", "Bo"]);

// A typed 404.
const gone = await store.GET("/pets/{petId}", { params: { path: { petId: ada.id } } });
assert.equal(gone.response.status, 404);
assert.equal(gone.error?.code, "pet_not_found");

// A key with one request a minute; null in a patch; a typed 429.
const key = await store.POST("/keys", {
  body: { name: "limited", plan: "enterprise", limits: { perMinute: 1, perDay: 10 }, expiresAt: "2099-01-01T00:00:00Z" },
});
assert(key.data?.expiresAt, key.error?.message);
const forever = await store.PATCH("/keys/{keyId}", { params: { path: { keyId: key.data.id } }, body: { expiresAt: null } });
assert.equal(forever.data?.expiresAt, null);
const limited = connect(key.data.secret);
await limited.GET("/pets");
const refused = await limited.GET("/pets");
assert.equal(refused.response.status, 429);
assert.equal(refused.error?.code, "rate_limit_exceeded");
assert(Number(refused.response.headers.get("Retry-After")) > 0);
