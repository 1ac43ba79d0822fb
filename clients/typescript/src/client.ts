import type { Call } from "./call.js";
import { ServiceError } from "./errors.js";
import { eventPage, eventsOf, latestEventId, list, queryOf, type EventPage, type EventsQuery, type PageQuery } from "./lists.js";
import type { CallOptions, ClientOptions, RateLimit } from "./options.js";
import { Scope } from "./scope.js";
import { Transport } from "./transport.js";
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
    this.#transport = new Transport(baseURL, apiKey, options);
  }

  /** The URL of the API, including /v1. */
  get baseURL(): string {
    return this.#transport.base.href;
  }

  /** The rate limit headers of the latest response that had them. It doesn't send a request. */
  get rateLimit(): RateLimit | undefined {
    return this.#transport.gate.seen;
  }

  /**
   * Lists pets, newest first. Pets that exist during the whole listing are listed exactly
   * once, whatever else changes meanwhile; pets added meanwhile are not listed.
   */
  listPets(query: PetQuery = {}, options: CallOptions = {}): AsyncGenerator<api.Pet, void, undefined> {
    const { status, categoryId, ids, name, pageSize } = query;
    return list(this.#transport, "listPets", "/pets", { status, categoryId, id: ids?.join(","), name }, pageSize, options, isPet);
  }

  /**
   * Returns one pet by its id. The error has code pet_not_found if it doesn't exist. It
   * reads the list, which replaces `getPet`, so its ETag can't be used for `ifMatch`.
   */
  async findPet(petId: number, options: CallOptions = {}): Promise<api.Pet> {
    if (petId > 0) {
      // The list refuses other ids, which no pet has.
      for await (const pet of list<api.Pet>(this.#transport, "findPet", "/pets", { id: petId }, undefined, options, isPet)) {
        return pet;
      }
    }
    const request = "GET " + this.#transport.urlOf("/pets" + queryOf({ id: petId }));
    throw new ServiceError("pet_not_found", `there is no pet with id ${petId}`, 0, "", { operation: "findPet", request });
  }

  /** Adds a pet. It is added only once, even if the call is retried: see `idempotencyKey`. */
  createPet(pet: api.NewPet, options?: CallOptions): Promise<api.Pet> {
    return this.#send({ operation: "createPet", method: "POST", path: "/pets", body: pet, repeat: "replayed", check: isPet }, options);
  }

  /**
   * Returns one pet by its id.
   *
   * @deprecated The service removes this operation on 5 December 2030. Then the error has
   * code endpoint_removed. Use `findPet`.
   */
  getPet(petId: number, options?: CallOptions): Promise<api.Pet> {
    return this.#send({ operation: "getPet", method: "GET", path: `/pets/${petId}`, check: isPet }, options);
  }

  /** Changes a pet and returns the changed pet. Use `ifMatch` to change it only if it is still in the state you read. */
  updatePet(petId: number, patch: api.PetPatch, options?: CallOptions): Promise<api.Pet> {
    return this.#send({ operation: "updatePet", method: "PATCH", path: `/pets/${petId}`, body: patch, conditional: true, check: isPet }, options);
  }

  /** Removes a pet. If an attempt was lost and the next one finds the pet gone, that counts as success. */
  deletePet(petId: number, options?: CallOptions): Promise<void> {
    return this.#send({ operation: "deletePet", method: "DELETE", path: `/pets/${petId}`, conditional: true }, options);
  }

  /** Lists orders, newest first, with the guarantee of `listPets`. */
  listOrders(query: OrderQuery = {}, options: CallOptions = {}): AsyncGenerator<api.Order, void, undefined> {
    const { status, petId, pageSize } = query;
    return list(this.#transport, "listOrders", "/store/orders", { status, petId }, pageSize, options, isOrder);
  }

  /**
   * Orders a pet, which must be available and becomes pending. Only one order is placed,
   * even if the call is retried: see `idempotencyKey`.
   */
  placeOrder(petId: number, options?: CallOptions): Promise<api.Order> {
    return this.#send({ operation: "placeOrder", method: "POST", path: "/store/orders", body: { petId }, repeat: "replayed", check: isOrder }, options);
  }

  /** Returns one order. */
  getOrder(orderId: number, options?: CallOptions): Promise<api.Order> {
    return this.#send({ operation: "getOrder", method: "GET", path: `/store/orders/${orderId}`, check: isOrder }, options);
  }

  /**
   * Changes an order and returns the changed order. The status of its pet changes with it.
   * If an attempt was lost and the next one is refused, the error's `outcomeUnknown` is
   * set: the order shows that it was changed, but not by whom.
   */
  updateOrder(orderId: number, patch: api.OrderPatch, options?: CallOptions): Promise<api.Order> {
    return this.#send({ operation: "updateOrder", method: "PATCH", path: `/store/orders/${orderId}`, body: patch, conditional: true, check: isOrder }, options);
  }

  /** Lists categories by ascending id. */
  listCategories(query: PageQuery = {}, options: CallOptions = {}): AsyncGenerator<api.Category, void, undefined> {
    return list(this.#transport, "listCategories", "/categories", {}, query.pageSize, options, isCategory);
  }

  /** Returns one category. */
  getCategory(categoryId: number, options?: CallOptions): Promise<api.Category> {
    return this.#send({ operation: "getCategory", method: "GET", path: `/categories/${categoryId}`, check: (c) => c.id === categoryId }, options);
  }

  /**
   * Sets the name of a category, and creates the category if it doesn't exist. The status
   * in `readMeta` is 201 if it was created, unless that response was lost and the call was
   * retried. With `ifNoneMatch: "*"` it only creates: if the category exists, the error has
   * code precondition_failed.
   */
  putCategory(category: api.Category, options?: CallOptions): Promise<api.Category> {
    const { id, name } = category;
    return this.#send({ operation: "putCategory", method: "PUT", path: `/categories/${id}`, body: { name }, conditional: true, creates: true, check: (c) => c.id === id }, options);
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
  listEventPage(query: EventsQuery, limit: number, options: CallOptions = {}): Promise<EventPage> {
    return eventPage(this.#transport, query, limit, options);
  }

  /** Returns the id of the newest event, or 0 if there is none. Later events come after it. */
  async latestEventId(options: CallOptions = {}): Promise<number> {
    const scope = new Scope(options);
    try {
      return await latestEventId(this.#transport, "latestEventId", false, options, scope);
    } finally {
      scope.close();
    }
  }

  /** Returns how much of its plan the client's key has used. It counts as a request; `rateLimit` doesn't. */
  getLimits(options?: CallOptions): Promise<api.Limits> {
    const check = (l: api.Limits) => !!l.plan && l.minute?.limit > 0 && l.day?.limit > 0;
    return this.#send({ operation: "getLimits", method: "GET", path: "/limits", check }, options);
  }

  /**
   * Returns the number of requests of the client's key by hour, the latest first, for the
   * given number of hours, at most 2160, by default 24. Hours without a request are omitted.
   */
  getUsage(hours?: number, options?: CallOptions): Promise<api.UsageHour[]> {
    return this.#send({ operation: "getUsage", method: "GET", path: "/usage" + queryOf({ hours }), check: Array.isArray }, options);
  }

  /** Returns the state of the server that responds. It needs a key with the admin permission. */
  getStatus(options?: CallOptions): Promise<api.Status> {
    return this.#send({ operation: "getStatus", method: "GET", path: "/status", check: (s) => !!s.engine && !!s.deployment }, options);
  }

  /** Lists keys, newest first, including revoked and expired ones. Like all operations on keys it needs the admin permission. */
  listKeys(query: PageQuery = {}, options: CallOptions = {}): AsyncGenerator<api.Key, void, undefined> {
    return list(this.#transport, "listKeys", "/keys", {}, query.pageSize, options, isKey);
  }

  /**
   * Creates a key. Store its secret: it is not shown again. This call is only retried if
   * it's certain that nothing was created. If the error's `outcomeUnknown` is set, look for
   * the key in the list and revoke it.
   */
  createKey(key: api.NewKey, options?: CallOptions): Promise<api.KeyWithSecret> {
    return this.#send({ operation: "createKey", method: "POST", path: "/keys", body: key, repeat: "harmful", secret: true, check: hasSecret(isKey) }, options);
  }

  /** Returns one key. */
  getKey(keyId: number, options?: CallOptions): Promise<api.Key> {
    return this.#send({ operation: "getKey", method: "GET", path: `/keys/${keyId}`, check: isKey }, options);
  }

  /** Changes a key and returns the changed key. The change takes effect within a second. */
  updateKey(keyId: number, patch: api.KeyPatch, options?: CallOptions): Promise<api.Key> {
    return this.#send({ operation: "updateKey", method: "PATCH", path: `/keys/${keyId}`, body: patch, conditional: true, check: isKey }, options);
  }

  /** Disables a key permanently. Revoking it again is not an error. */
  revokeKey(keyId: number, options?: CallOptions): Promise<void> {
    return this.#send({ operation: "revokeKey", method: "DELETE", path: `/keys/${keyId}`, conditional: true }, options);
  }

  /**
   * Gives a key a new secret. The previous ones keep working for the grace period. Like
   * `createKey` it's only retried if it's certain that nothing was done. If the error's
   * `outcomeUnknown` is set, rotate the key again.
   */
  rotateKey(keyId: number, graceSeconds = defaultGraceSeconds, options?: CallOptions): Promise<api.KeyWithSecret> {
    return this.#rotate("rotateKey", `/keys/${keyId}`, graceSeconds, isKey, options);
  }

  /** Lifts the ban of a key, if it has one; `banLifted` in `readMeta` says whether it did. */
  unbanKey(keyId: number, options?: CallOptions): Promise<api.Key> {
    return this.#send({ operation: "unbanKey", method: "POST", path: `/keys/${keyId}/unban`, conditional: true, check: isKey }, options);
  }

  /** Like `getUsage`, for any key. */
  getKeyUsage(keyId: number, hours?: number, options?: CallOptions): Promise<api.UsageHour[]> {
    return this.#send({ operation: "getKeyUsage", method: "GET", path: `/keys/${keyId}/usage` + queryOf({ hours }), check: Array.isArray }, options);
  }

  /** Lists webhooks, newest first. Like all operations on webhooks it needs the admin permission. */
  listWebhooks(query: PageQuery = {}, options: CallOptions = {}): AsyncGenerator<api.Webhook, void, undefined> {
    return list(this.#transport, "listWebhooks", "/webhooks", {}, query.pageSize, options, isWebhook);
  }

  /**
   * Creates a webhook. Store its secret: it is not shown again, and receivers need it for
   * `verifyWebhook`. Like `createKey` it's only retried if it's certain that nothing was
   * created.
   */
  createWebhook(webhook: api.NewWebhook, options?: CallOptions): Promise<api.WebhookWithSecret> {
    return this.#send({ operation: "createWebhook", method: "POST", path: "/webhooks", body: webhook, repeat: "harmful", secret: true, check: hasSecret(isWebhook) }, options);
  }

  /** Returns one webhook. */
  getWebhook(webhookId: number, options?: CallOptions): Promise<api.Webhook> {
    return this.#send({ operation: "getWebhook", method: "GET", path: `/webhooks/${webhookId}`, check: isWebhook }, options);
  }

  /** Changes a webhook and returns it. A webhook that is resumed never gets the events from in between. */
  updateWebhook(webhookId: number, patch: api.WebhookPatch, options?: CallOptions): Promise<api.Webhook> {
    return this.#send({ operation: "updateWebhook", method: "PATCH", path: `/webhooks/${webhookId}`, body: patch, conditional: true, check: isWebhook }, options);
  }

  /** Removes a webhook with its deliveries. */
  deleteWebhook(webhookId: number, options?: CallOptions): Promise<void> {
    return this.#send({ operation: "deleteWebhook", method: "DELETE", path: `/webhooks/${webhookId}`, conditional: true }, options);
  }

  /** Gives a webhook a new secret. During the grace period, deliveries are also signed with the previous one. */
  rotateWebhook(webhookId: number, graceSeconds = defaultGraceSeconds, options?: CallOptions): Promise<api.WebhookWithSecret> {
    return this.#rotate("rotateWebhook", `/webhooks/${webhookId}`, graceSeconds, isWebhook, options);
  }

  /**
   * Sends a message of type webhook.ping to a webhook, or sample data for another type of
   * event. The delivery shows the outcome later.
   */
  pingWebhook(webhookId: number, type?: api.EventType, options?: CallOptions): Promise<api.Delivery> {
    const body = type === undefined ? undefined : { type };
    return this.#send({ operation: "pingWebhook", method: "POST", path: `/webhooks/${webhookId}/ping`, body, repeat: "harmful", accepted: true, check: isDelivery }, options);
  }

  /** Lists the deliveries to a webhook, newest first. */
  listDeliveries(webhookId: number, query: DeliveryQuery = {}, options: CallOptions = {}): AsyncGenerator<api.Delivery, void, undefined> {
    return list(this.#transport, "listDeliveries", `/webhooks/${webhookId}/deliveries`, { state: query.state }, query.pageSize, options, isDelivery);
  }

  /** Returns a delivery to a webhook and the body that is sent. */
  getDelivery(webhookId: number, deliveryId: number, options?: CallOptions): Promise<api.DeliveryWithBody> {
    return this.#send({ operation: "getDelivery", method: "GET", path: `/webhooks/${webhookId}/deliveries/${deliveryId}`, check: (d) => isDelivery(d) && "body" in d }, options);
  }

  /** Makes a delivery due at once, whatever its state. */
  retryDelivery(webhookId: number, deliveryId: number, options?: CallOptions): Promise<api.Delivery> {
    return this.#send({ operation: "retryDelivery", method: "POST", path: `/webhooks/${webhookId}/deliveries/${deliveryId}/retry`, accepted: true, check: isDelivery }, options);
  }

  /** Makes all deliveries to a webhook that match due at once, and returns how many. */
  async retryDeliveries(webhookId: number, which: api.DeliveryRetry, options?: CallOptions): Promise<number> {
    const path = `/webhooks/${webhookId}/deliveries/retry`;
    const retried = await this.#send({ operation: "retryDeliveries", method: "POST", path, body: which, accepted: true, check: (r) => r.deliveries >= 0 }, options);
    return retried.deliveries;
  }

  #rotate(operation: string, path: string, graceSeconds: number, check: (value: any) => boolean, options?: CallOptions): Promise<any> {
    return this.#send({ operation, method: "POST", path: path + "/rotate", body: { graceSeconds }, repeat: "harmful", secret: true, conditional: true, check: hasSecret(check) }, options);
  }

  async #send(call: Call, options?: CallOptions): Promise<any> {
    return this.#transport.send(call, options);
  }
}

// Whether a decoded value is plausible. A response that isn't was cut short or isn't from
// the service.
const isPet = (p: api.Pet) => p?.id > 0 && !!p.name && !!p.status;
const isOrder = (o: api.Order) => o?.id > 0 && o.petId > 0 && !!o.status;
const isCategory = (c: api.Category) => typeof c?.id === "number";
const isKey = (k: api.Key) => k?.id > 0 && !!k.name && !!k.plan;
const isWebhook = (w: api.Webhook) => w?.id > 0 && !!w.url && !!w.state;
const isDelivery = (d: api.Delivery) => d?.id > 0 && !!d.type && !!d.state;
const hasSecret = (check: (value: any) => boolean) => (value: any) => check(value) && !!value.secret;
