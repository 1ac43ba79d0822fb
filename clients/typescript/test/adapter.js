// The adapter for TypeScript: clients/README.md describes what it reads and writes.
import { createInterface } from "node:readline";
import * as store from "../dist/index.js";

/** Clients by name, with the waits and attempts that weren't reported yet. */
const clients = new Map();

function newClient(name, args) {
  const waits = [];
  const attempts = [];
  const { baseURL, apiKey, backoffBase, backoffMax, ...options } = args;
  const onWait = (wait) => waits.push({ ...wait, reason: describe(wait.reason) });
  const client = new store.Client(baseURL, apiKey, { ...options, backoff: { base: backoffBase, max: backoffMax }, onWait, onAttempt: (attempt) => attempts.push(attempt) });
  clients.set(name, { client, waits, attempts });
}

/** Collects the entries of a list into entries, at most n of them unless n is 0. */
async function take(entries, n, list) {
  for await (const entry of list) {
    entries.push(entry);
    if (entries.length === n) {
      break;
    }
  }
  return entries;
}

/** A picture in one of the forms that addPhoto takes. */
function picture({ picture, size, as }) {
  const bytes = picture === undefined ? new Uint8Array(size) : Uint8Array.from(atob(picture), (c) => c.charCodeAt(0));
  const forms = {
    buffer: () => bytes.buffer,
    blob: () => new Blob([bytes]),
    stream: () => new Blob([bytes]).stream(),
    "silent stream": () => new ReadableStream(),
    "broken stream": () => new ReadableStream({ start: (controller) => controller.error(new Error("the disk is gone")) }),
  };
  return as === undefined ? bytes : forms[as]();
}

/** An image in the form of the protocol. */
async function describeImage(image) {
  const { type, size } = await image;
  return { contentType: type, size };
}

/** Calls one method of the client. A list that fails leaves its entries in entries. */
function call(client, name, a, o, n, entries) {
  switch (name) {
    case "listPets":
    case "listOrders":
    case "listFailures":
    case "listCategories":
    case "listKeys":
    case "listWebhooks":
      return take(entries, n, client[name](a.query, o));
    case "getInventory":
      return client.getInventory(a.query, o);
    case "addPhoto":
      return client.addPhoto(a.petId, picture(a), o);
    case "listPhotos":
      return take(entries, n, client.listPhotos({ petIds: a.petIds, ...a.query }, o));
    case "getImage":
    case "getThumbnail":
      return describeImage(client[name](a.photoId, o));
    case "listDeliveries":
      return take(entries, n, client.listDeliveries(a.webhookId, a.query, o));
    case "listEvents":
    case "events":
      return take(entries, n, client[name](a.events, o));
    case "listEventPage":
      return client.listEventPage(a.events ?? {}, a.limit, o);
    case "latestEventId":
    case "getLimits":
    case "getStatus":
      return client[name](o);
    case "getUsage":
      return client.getUsage(a.hours, o);
    case "getKeyUsage":
      return client.getKeyUsage(a.keyId, a.hours, o);
    case "placeOrder":
      return client.placeOrder(a, o);
    case "createPet":
      return client.createPet(a.pet, o);
    case "createPetBatch":
      return client.createPetBatch(a.pets, o);
    case "importPets":
      return client.importPets(Array(a.times ?? 1).fill(a.pets).flat(), { salt: a.salt, timeout: o.timeout, signal: o.signal });
    case "putCategory":
      return client.putCategory(a.category, o);
    case "createKey":
      return client.createKey(a.key, o);
    case "createWebhook":
      return client.createWebhook(a.webhook, o);
    case "rotateKey":
      return client.rotateKey(a.keyId, a.graceSeconds, o);
    case "rotateWebhook":
      return client.rotateWebhook(a.webhookId, a.graceSeconds, o);
    case "pingWebhook":
      return client.pingWebhook(a.webhookId, a.type, o);
    case "retryDeliveries":
      return client.retryDeliveries(a.webhookId, a.which, o);
    case "getDelivery":
    case "retryDelivery":
      return client[name](a.webhookId, a.deliveryId, o);
  }
  const id = a.petId ?? a.orderId ?? a.categoryId ?? a.keyId ?? a.webhookId ?? a.photoId;
  return a.patch === undefined ? client[name](id, o) : client[name](id, a.patch, o);
}

async function carryOut(command) {
  const { id, client: name, call: what, args, options } = command;
  const known = clients.get(name);
  const reply = { id };
  const entries = [];
  const { cancelAfter, take: n = 0, ...rest } = options ?? {};
  const controller = new AbortController();
  const timer = cancelAfter && setTimeout(() => controller.abort(), cancelAfter);
  if (what === "events") {
    setTimeout(() => globalThis.gc?.(), 150); // a signal that only garbage refers to may be lost
  }
  const callOptions = { ...rest, signal: controller.signal, readMeta: (meta) => (reply.meta = describeMeta(meta)) };
  try {
    switch (what) {
      case "new":
        newClient(name, args);
        break;
      case "close":
        clients.delete(name);
        break;
      case "rateLimit":
        reply.result = describeLimit(known.client.rateLimit);
        break;
      case "verifyWebhook":
        reply.result = await store.verifyWebhook(args.secrets, args.headers, args.body, new Date(args.now * 1000));
        break;
      default:
        reply.result = await call(known.client, what, args, callOptions, n, entries);
    }
  } catch (error) {
    reply.error = describe(error);
    if (what.startsWith("list") || what === "events") {
      reply.result = entries;
    }
  }
  clearTimeout(timer);
  reply.waits = known?.waits.splice(0);
  reply.attempts = known?.attempts.splice(0);
  return reply;
}

const kinds = [
  ["notModified", store.NotModifiedError],
  ["aborted", store.AbortError],
  ["timeout", store.TimeoutError],
  ["rateLimit", store.RateLimitError],
  ["service", store.ServiceError],
  ["response", store.ResponseError],
  ["webhook", store.WebhookError],
  ["network", store.NetworkError],
  ["invalid", store.AnimalStoreError],
];

function describe(error) {
  const [kind] = kinds.find(([, type]) => error instanceof type) ?? ["unknown"];
  const { code, message, status, requestId, operation, request, window, limit, reset, retryAfter, reason, attempts, outcomeUnknown = false } = error;
  return { kind, text: kind === "unknown" ? error.stack : String(error), code, message, status, requestId, operation, request, window, limit, reset: seconds(reset), retryAfter, reason, attempts, outcomeUnknown };
}

function describeMeta(meta) {
  return { ...meta, rateLimit: describeLimit(meta.rateLimit) };
}

function describeLimit(limit) {
  return limit === undefined ? null : { ...limit, reset: seconds(limit.reset) };
}

function seconds(date) {
  return date === undefined ? undefined : date.getTime() / 1000;
}

for await (const line of createInterface({ input: process.stdin })) {
  void carryOut(JSON.parse(line)).then((reply) => process.stdout.write(JSON.stringify(reply) + "\n"));
}
