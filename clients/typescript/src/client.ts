import type { Call } from "./call.js";
import { ServiceError } from "./errors.js";
import { eventPage, eventsOf, list, queryOf, type EventPage, type EventsQuery, type PageQuery, type Query } from "./lists.js";
import type { CallOptions, ClientOptions, RateLimit } from "./options.js";
import { newTransport, type Transport } from "./transport.js";
import type * as api from "./types.js";

/** Selects pets. Filters that are left out match all of them. */
export interface PetQuery extends PageQuery {
  status?: api.PetStatus;
  categoryId?: number;
  /** At most 100. */
  ids?: number[];
  /** The beginning of the name, in any case. The pets are then listed by name. */
  name?: string;
}

/** Selects orders. Filters that are left out match all of them. */
export interface OrderQuery extends PageQuery {
  status?: api.OrderStatus;
  petId?: number;
}

/** Selects the pets to count. Without a category, all of them. */
export interface InventoryQuery {
  categoryId?: number;
}

/** Selects deliveries. Filters that are left out match all of them. */
export interface DeliveryQuery extends PageQuery {
  state?: api.DeliveryState;
}

/** The service's default for how long the previous secrets of a rotated key keep working, in seconds. */
export const defaultGraceSeconds = 86_400;

/**
 * Calls one deployment with one API key. There is one method for every operation of the
 * API, with the operation's name. Create one client per key and share it: only then does
 * it know about all requests that count against the key.
 */
export class Client {
  readonly #transport: Transport;

  /**
   * @param baseURL Such as "https://pets.example" or "http://127.0.0.1:8080/v1": the
   * version at the end is optional. Nothing is sent yet, so a wrong key is noticed only in
   * the first call.
   */
  constructor(baseURL: string, apiKey: string, options: ClientOptions = {}) {
    this.#transport = newTransport(baseURL, apiKey, options);
  }

  /** The URL of the API, including /v1. */
  get baseURL(): string {
    return this.#transport.base.href;
  }

  /** The rate limit headers of the latest response that had them. It doesn't send a request. */
  get rateLimit(): RateLimit | undefined {
    return this.#transport.gate.seen();
  }

  /**
   * Lists pets, newest first. Pets that exist during the whole listing are listed exactly
   * once, whatever else changes meanwhile; pets added meanwhile are not listed.
   */
  listPets(query: PetQuery = {}, options: CallOptions = {}): AsyncGenerator<api.Pet, void, undefined> {
    const { ids, ...filters } = query;
    return this.#list("listPets", "/pets", { ...filters, id: ids?.join() }, options, isPet);
  }

  /**
   * Returns one pet by its id. The error has code pet_not_found if it doesn't exist. It
   * reads the list, which replaces `getPet`, so its ETag can't be used for `ifMatch`.
   */
  async findPet(petId: number, options: CallOptions = {}): Promise<api.Pet> {
    if (petId > 0) {
      // The list refuses other ids, which no pet has.
      for await (const pet of this.#list<api.Pet>("findPet", "/pets", { id: petId }, options, isPet)) {
        return pet;
      }
    }
    throw new ServiceError(`there is no pet with id ${petId}`, { operation: "findPet" }, { code: "pet_not_found", status: 0, requestId: "" });
  }

  /** Adds a pet. It is added only once, even if the call is retried: see `idempotencyKey`. */
  createPet(pet: api.NewPet, options?: CallOptions): Promise<api.Pet> {
    return this.#send("createPet", "POST", "/pets", isPet, options, { body: pet, repeat: "replayed" });
  }

  /**
   * Returns one pet by its id.
   *
   * @deprecated The service removes this operation on 5 December 2030. Then the error has
   * code endpoint_removed. Use `findPet`.
   */
  getPet(petId: number, options?: CallOptions): Promise<api.Pet> {
    return this.#get("getPet", `/pets/${petId}`, isPet, options);
  }

  /** Changes a pet and returns the changed pet. Use `ifMatch` to change it only if it is still in the state you read. */
  updatePet(petId: number, patch: api.PetPatch, options?: CallOptions): Promise<api.Pet> {
    return this.#send("updatePet", "PATCH", `/pets/${petId}`, isPet, options, { body: patch });
  }

  /** Removes a pet. If an attempt was lost and the next one finds the pet gone, that counts as success. */
  deletePet(petId: number, options?: CallOptions): Promise<void> {
    return this.#send("deletePet", "DELETE", `/pets/${petId}`, undefined, options);
  }

  /** Lists orders, newest first, with the guarantee of `listPets`. */
  listOrders(query: OrderQuery = {}, options: CallOptions = {}): AsyncGenerator<api.Order, void, undefined> {
    return this.#list("listOrders", "/store/orders", { ...query }, options, isOrder);
  }

  /**
   * Orders a pet, which must be available and becomes pending. Only one order is placed,
   * even if the call is retried: see `idempotencyKey`.
   */
  placeOrder(petId: number, options?: CallOptions): Promise<api.Order> {
    return this.#send("placeOrder", "POST", "/store/orders", isOrder, options, { body: { petId }, repeat: "replayed" });
  }

  /** Returns one order. */
  getOrder(orderId: number, options?: CallOptions): Promise<api.Order> {
    return this.#get("getOrder", `/store/orders/${orderId}`, isOrder, options);
  }

  /**
   * Changes an order and returns the changed order. The status of its pet changes with it.
   * If an attempt was lost and the next one is refused, the error's `outcomeUnknown` is
   * set: the order shows that it was changed, but not by whom.
   */
  updateOrder(orderId: number, patch: api.OrderPatch, options?: CallOptions): Promise<api.Order> {
    return this.#send("updateOrder", "PATCH", `/store/orders/${orderId}`, isOrder, options, { body: patch });
  }

  /**
   * Returns the number of pets in each status. The counts may be up to ten seconds old; `age`
   * in `readMeta` is their age. In a category that doesn't exist there are no pets.
   */
  getInventory(query: InventoryQuery = {}, options?: CallOptions): Promise<api.Inventory> {
    return this.#get("getInventory", "/store/inventory" + queryOf({ ...query }), (i) => i.available + i.pending + i.sold >= 0, options);
  }

  /** Lists categories by ascending id. */
  listCategories(query: PageQuery = {}, options: CallOptions = {}): AsyncGenerator<api.Category, void, undefined> {
    return this.#list("listCategories", "/categories", { ...query }, options, isCategory);
  }

  /** Returns one category. */
  getCategory(categoryId: number, options?: CallOptions): Promise<api.Category> {
    return this.#get("getCategory", `/categories/${categoryId}`, (c) => c.id === categoryId, options);
  }

  /**
   * Sets the name of a category, and creates the category if it doesn't exist. The status
   * in `readMeta` is 201 if it was created, unless that response was lost and the call was
   * retried. With `ifNoneMatch: "*"` it only creates: if the category exists, the error has
   * code precondition_failed.
   */
  putCategory(category: api.Category, options?: CallOptions): Promise<api.Category> {
    const { id, name } = category;
    return this.#send("putCategory", "PUT", `/categories/${id}`, (c) => c.id === id, options, { body: { name }, creates: true });
  }

  /**
   * Lists the events so far, oldest first, and ends with the newest. `events` also waits
   * for later ones. With `before` or `newest` it lists them newest first and ends with the
   * oldest kept event.
   */
  listEvents(query: EventsQuery = {}, options: CallOptions = {}): AsyncGenerator<api.Event, void, undefined> {
    return eventsOf(this.#transport, "listEvents", query, false, options);
  }

  /**
   * Follows the events of the store, oldest first. The loop has no end: it waits for the
   * next event. It stops when you leave it, when `signal` is aborted, or after an error
   * that a retry can't fix. After any other failure it resumes where it was, however long
   * that takes, so no event is skipped or repeated.
   *
   * The error has code events_expired if the events after this position are no longer
   * kept: rebuild from the lists whatever you built from earlier events.
   *
   * The service responds as soon as there is an event, or after 30 seconds without one.
   * Each response counts against the limits, at least two a minute.
   */
  events(query: EventsQuery = {}, options: CallOptions = {}): AsyncGenerator<api.Event, void, undefined> {
    return eventsOf(this.#transport, "events", query, true, options);
  }

  /** Makes one request for events, for programs that show one page at a time: at most limit events, 1 to 100. */
  listEventPage(query: EventsQuery, limit: number, options?: CallOptions): Promise<EventPage> {
    return eventPage(this.#transport, "listEvents", query, limit, options);
  }

  /** Returns the id of the newest event, or 0 if there is none. Later events come after it. */
  async latestEventId(options?: CallOptions): Promise<number> {
    return (await eventPage(this.#transport, "latestEventId", { latest: true }, 1, options)).next;
  }

  /** Returns how much of its plan the client's key has used. It counts as a request; `rateLimit` doesn't. */
  getLimits(options?: CallOptions): Promise<api.Limits> {
    return this.#get("getLimits", "/limits", has("plan minute day"), options);
  }

  /**
   * Returns the number of requests of the client's key by hour, the latest first, for the
   * given number of hours, at most 2160, by default 24. Hours without a request are omitted.
   */
  getUsage(hours?: number, options?: CallOptions): Promise<api.UsageHour[]> {
    return this.#get("getUsage", "/usage" + queryOf({ hours }), Array.isArray, options);
  }

  /** Returns the state of the server that responds. It needs a key with the admin permission. */
  getStatus(options?: CallOptions): Promise<api.Status> {
    return this.#get("getStatus", "/status", has("engine deployment"), options);
  }

  /** Lists keys, newest first, including revoked and expired ones. Like all operations on keys it needs the admin permission. */
  listKeys(query: PageQuery = {}, options: CallOptions = {}): AsyncGenerator<api.Key, void, undefined> {
    return this.#list("listKeys", "/keys", { ...query }, options, isKey);
  }

  /**
   * Creates a key. Store its secret: it is not shown again. This call is only retried if
   * it's certain that nothing was created. If the error's `outcomeUnknown` is set, look for
   * the key in the list and revoke it.
   */
  createKey(key: api.NewKey, options?: CallOptions): Promise<api.KeyWithSecret> {
    return this.#send("createKey", "POST", "/keys", isNewKey, options, { body: key, repeat: "harmful" });
  }

  /** Returns one key. */
  getKey(keyId: number, options?: CallOptions): Promise<api.Key> {
    return this.#get("getKey", `/keys/${keyId}`, isKey, options);
  }

  /** Changes a key and returns the changed key. The change takes effect within a second. */
  updateKey(keyId: number, patch: api.KeyPatch, options?: CallOptions): Promise<api.Key> {
    return this.#send("updateKey", "PATCH", `/keys/${keyId}`, isKey, options, { body: patch });
  }

  /** Disables a key permanently. Revoking it again is not an error. */
  revokeKey(keyId: number, options?: CallOptions): Promise<void> {
    return this.#send("revokeKey", "DELETE", `/keys/${keyId}`, undefined, options);
  }

  /**
   * Gives a key a new secret. The previous ones keep working for the grace period. Like
   * `createKey` it's only retried if it's certain that nothing was done. If the error's
   * `outcomeUnknown` is set, rotate the key again.
   */
  rotateKey(keyId: number, graceSeconds = defaultGraceSeconds, options?: CallOptions): Promise<api.KeyWithSecret> {
    return this.#rotate("rotateKey", `/keys/${keyId}`, graceSeconds, isNewKey, options);
  }

  /** Lifts the ban of a key, if it has one; `banLifted` in `readMeta` says whether it did. */
  unbanKey(keyId: number, options?: CallOptions): Promise<api.Key> {
    return this.#send("unbanKey", "POST", `/keys/${keyId}/unban`, isKey, options, { conditional: true });
  }

  /** Like `getUsage`, for any key. */
  getKeyUsage(keyId: number, hours?: number, options?: CallOptions): Promise<api.UsageHour[]> {
    return this.#get("getKeyUsage", `/keys/${keyId}/usage` + queryOf({ hours }), Array.isArray, options);
  }

  /** Lists webhooks, newest first. Like all operations on webhooks it needs the admin permission. */
  listWebhooks(query: PageQuery = {}, options: CallOptions = {}): AsyncGenerator<api.Webhook, void, undefined> {
    return this.#list("listWebhooks", "/webhooks", { ...query }, options, isWebhook);
  }

  /**
   * Creates a webhook. Store its secret: it is not shown again, and receivers need it for
   * `verifyWebhook`. Like `createKey` it's only retried if it's certain that nothing was
   * created.
   */
  createWebhook(webhook: api.NewWebhook, options?: CallOptions): Promise<api.WebhookWithSecret> {
    return this.#send("createWebhook", "POST", "/webhooks", isNewWebhook, options, { body: webhook, repeat: "harmful" });
  }

  /** Returns one webhook. */
  getWebhook(webhookId: number, options?: CallOptions): Promise<api.Webhook> {
    return this.#get("getWebhook", `/webhooks/${webhookId}`, isWebhook, options);
  }

  /** Changes a webhook and returns it. A webhook that is resumed never gets the events from in between. */
  updateWebhook(webhookId: number, patch: api.WebhookPatch, options?: CallOptions): Promise<api.Webhook> {
    return this.#send("updateWebhook", "PATCH", `/webhooks/${webhookId}`, isWebhook, options, { body: patch });
  }

  /** Removes a webhook with its deliveries. */
  deleteWebhook(webhookId: number, options?: CallOptions): Promise<void> {
    return this.#send("deleteWebhook", "DELETE", `/webhooks/${webhookId}`, undefined, options);
  }

  /** Gives a webhook a new secret. During the grace period, deliveries are also signed with the previous one. */
  rotateWebhook(webhookId: number, graceSeconds = defaultGraceSeconds, options?: CallOptions): Promise<api.WebhookWithSecret> {
    return this.#rotate("rotateWebhook", `/webhooks/${webhookId}`, graceSeconds, isNewWebhook, options);
  }

  /**
   * Sends a message of type webhook.ping to a webhook, or sample data for another type of
   * event. The delivery shows the outcome later.
   */
  pingWebhook(webhookId: number, type?: api.EventType, options?: CallOptions): Promise<api.Delivery> {
    const body = type === undefined ? undefined : { type };
    return this.#send("pingWebhook", "POST", `/webhooks/${webhookId}/ping`, isDelivery, options, { body, repeat: "harmful", accepted: true });
  }

  /** Lists the deliveries to a webhook, newest first. */
  listDeliveries(webhookId: number, query: DeliveryQuery = {}, options: CallOptions = {}): AsyncGenerator<api.Delivery, void, undefined> {
    return this.#list("listDeliveries", `/webhooks/${webhookId}/deliveries`, { ...query }, options, isDelivery);
  }

  /** Returns a delivery to a webhook and the body that is sent. */
  getDelivery(webhookId: number, deliveryId: number, options?: CallOptions): Promise<api.DeliveryWithBody> {
    return this.#get("getDelivery", `/webhooks/${webhookId}/deliveries/${deliveryId}`, has("id type state body"), options);
  }

  /** Makes a delivery due at once, whatever its state. */
  retryDelivery(webhookId: number, deliveryId: number, options?: CallOptions): Promise<api.Delivery> {
    return this.#send("retryDelivery", "POST", `/webhooks/${webhookId}/deliveries/${deliveryId}/retry`, isDelivery, options, { accepted: true });
  }

  /** Makes all deliveries to a webhook that match due at once, and returns how many. */
  async retryDeliveries(webhookId: number, which: api.DeliveryRetry, options?: CallOptions): Promise<number> {
    const path = `/webhooks/${webhookId}/deliveries/retry`;
    const retried = await this.#send("retryDeliveries", "POST", path, (r) => r.deliveries >= 0, options, { body: which, accepted: true });
    return retried.deliveries;
  }

  #rotate(operation: string, path: string, graceSeconds: number, check: (value: any) => boolean, options?: CallOptions): Promise<any> {
    return this.#send(operation, "POST", path + "/rotate", check, options, { body: { graceSeconds }, repeat: "harmful", conditional: true });
  }

  #list<T>(operation: string, path: string, query: Query & PageQuery, options: CallOptions, check: (entry: T) => unknown): AsyncGenerator<T, void, undefined> {
    return list(this.#transport, operation, path, query, options, check);
  }

  #get(operation: string, path: string, check: (value: any) => unknown, options?: CallOptions): Promise<any> {
    return this.#send(operation, "GET", path, check, options);
  }

  /** Makes a call whose response check accepts, or has no body. */
  async #send(operation: string, method: Call["method"], path: string, check: Call["check"], options?: CallOptions, more?: Partial<Call>): Promise<any> {
    return (await this.#transport.do({ operation, method, path, check, ...more }, options)).value;
  }
}

// Whether a decoded value is plausible. A response that isn't was cut short or isn't from
// the service.
const has = (fields: string) => (value: any) => fields.split(" ").every((field) => value?.[field]);
const isPet = has("id name status");
const isOrder = has("id petId status");
const isCategory = (c: api.Category) => typeof c?.id === "number";
const isKey = has("id name plan");
const isWebhook = has("id url state");
const isDelivery = has("id type state");
const isNewKey = has("id name plan secret");
const isNewWebhook = has("id url state secret");
