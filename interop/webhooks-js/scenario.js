// Gets a webhook of a new pet, and refuses one that was forged.
import assert from "node:assert";
import { createServer } from "node:http";
import { receiver } from "./receiver.js";

const api = (path, body) =>
  fetch(process.env.ANIMALSTORE_URL + path, {
    method: "POST",
    headers: { Authorization: `Bearer ${process.env.ANIMALSTORE_API_KEY}`, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  }).then((response) => response.json());

// The address has to be known before the secret is.
let handler;
const server = createServer((request, response) => handler(request, response));
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const url = `http://127.0.0.1:${server.address().port}/hook`;
const { secret } = await api("/webhooks", { url, types: ["pet.created"] });
assert.match(secret, /^whsec_/);

const arrived = new Promise((resolve, reject) => {
  setTimeout(() => reject(new Error("nothing arrived in 30 s")), 30_000).unref();
  const verified = receiver(secret, (id, event) => resolve({ id, event }));
  handler = (request, response) => verified.emit("request", request, response);
});
const pet = await api("/pets", { name: "Mia <3 ü", categoryId: 7 });
const { id, event } = await arrived;
assert.match(id, /^evt_\d+$/);
assert.strictEqual(event.type, "pet.created");
assert.deepStrictEqual(event.data, pet);

const forged = await fetch(url, {
  method: "POST",
  headers: { "webhook-id": id, "webhook-timestamp": String(Math.floor(Date.now() / 1000)), "webhook-signature": "v1,AAAA" },
  body: "{}",
});
assert.strictEqual(forged.status, 400);
server.close();
server.closeAllConnections();
