import { batchCall, importPets, type ImportOptions, type PetImport } from "./batches.js";
import type { Call } from "./call.js";
import {
  isCategory,
  isDelivery,
  isDeliveryCount,
  isDeliveryWithBody,
  isFailure,
  isImage,
  isInventory,
  isKey,
  isKeyWithSecret,
  isLimits,
  isOrder,
  isPet,
  isPhoto,
  isStatus,
  isUsage,
  isWebhook,
  isWebhookWithSecret,
} from "./checks.js";
import { ServiceError } from "./errors.js";
import { follow } from "./follow.js";
import { arrayOf, eventPage, latestId, list, listEvents, type EventPage } from "./lists.js";
import { checkUnknown, type CallOptions, type ClientOptions, type RateLimit } from "./options.js";
import { path, withQuery } from "./paths.js";
import type { Picture } from "./pictures.js";
import type { DeliveryQuery, EventsQuery, FailureQuery, InventoryQuery, OrderQuery, PageQuery, PetQuery, PhotoQuery } from "./queries.js";
import { newTransport, type Transport } from "./transport.js";
import type * as api from "./types.js";

/** The service's default for how long the previous secrets of a rotated key or webhook keep working, in seconds. */
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
   * @param apiKey Without one, it throws an InvalidArgumentError. The type allows undefined
   * because an environment variable may be unset.
   */
  constructor(baseURL: string, apiKey: string | undefined, options: ClientOptions = {}) {
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

  async #send<T>(call: Call<T>, options?: CallOptions): Promise<T> {
    const { value } = await this.#transport.do(call, options);
    return value;
  }

  // Pets

  /**
   * Lists pets, newest first. Pets that exist during the whole listing are listed exactly
   * once, regardless of other changes; pets added during the listing are not included.
   */
  listPets(query: PetQuery = {}, options?: CallOptions): AsyncGenerator<api.Pet, void, undefined> {
    const filters = { status: "", categoryId: "", ids: "id", name: "" };
    return list(this.#transport, { operation: "listPets", path: "/pets", query, filters, check: isPet }, options);
  }

  /**
   * Returns one pet by its id. The error has code pet_not_found and status 404 if it
   * doesn't exist. It reads the list, which replaces `getPet`, so its ETag can't be used for
   * `ifMatch`.
   */
  async findPet(petId: number, options?: CallOptions): Promise<api.Pet> {
    const call = { operation: "findPet", method: "GET", path: path`/pets?id=${petId}&limit=100`, check: arrayOf(isPet) } as const;
    const request = "GET " + this.baseURL + call.path;
    let requestId = "";
    let attempts = 0;
    // The list refuses other ids, which no pet has.
    if (!(petId <= 0)) {
      const { value, ...response } = await this.#transport.do(call, options);
      if (value[0]) {
        return value[0];
      }
      ({ requestId, attempts } = response);
    }
    throw new ServiceError(`there is no pet with id ${petId}`, { ...call, request, attempts }, { code: "pet_not_found", status: 404, requestId });
  }

  /** Adds a pet. It is added only once, even if the call is retried: see `idempotencyKey`. */
  createPet(pet: api.NewPet, options?: CallOptions): Promise<api.Pet> {
    return this.#send({ operation: "createPet", method: "POST", path: "/pets", body: pet, repeat: "replayed", check: isPet }, options);
  }

  /** Adds 1 to 100 pets: all of them or none. They are added only once, even if the call is retried: see `idempotencyKey`. */
  async createPetBatch(pets: api.NewPet[], options?: CallOptions): Promise<api.Pet[]> {
    const batch = await this.#send(batchCall(pets), options);
    return batch.pets;
  }

  /**
   * Adds any number of pets in their order, as batches of 100, each of which is one request,
   * and returns them with their ids. If a pet isn't valid, it adds none.
   *
   * After an error or a crash, call it again with the same pets, API key and salt, at most
   * 24 hours after the first call: pets that were added are returned, but not added again. If
   * any pet or their order changes, that is a new import, which adds all of them.
   */
  importPets(pets: api.NewPet[], options: ImportOptions = {}): Promise<PetImport> {
    return importPets(this.#transport, pets, options);
  }

  /**
   * Returns one pet by its id.
   *
   * @deprecated The service removes this operation on 5 December 2030. Then the error has
   * code endpoint_removed. Use `findPet`.
   */
  getPet(petId: number, options?: CallOptions): Promise<api.Pet> {
    return this.#send({ operation: "getPet", method: "GET", path: path`/pets/${petId}`, check: isPet }, options);
  }

  /** Changes a pet and returns the changed pet. Use `ifMatch` to change it only if it is still in the state you read. */
  updatePet(petId: number, patch: api.PetPatch, options?: CallOptions): Promise<api.Pet> {
    return this.#send({ operation: "updatePet", method: "PATCH", path: path`/pets/${petId}`, body: patch, check: isPet }, options);
  }

  /** Removes a pet. If an attempt was lost and the next one finds the pet gone, that counts as success. */
  deletePet(petId: number, options?: CallOptions): Promise<void> {
    return this.#send({ operation: "deletePet", method: "DELETE", path: path`/pets/${petId}` }, options);
  }

  /**
   * Returns the number of pets in each status. The counts may be up to ten seconds old; `age`
   * in `readMeta` is their age. A category that doesn't exist has no pets.
   */
  async getInventory(query: InventoryQuery = {}, options?: CallOptions): Promise<api.Inventory> {
    const { categoryId, ...unknown } = query;
    checkUnknown(unknown, { operation: "getInventory" });
    const target = withQuery("/store/inventory", { categoryId });
    return this.#send({ operation: "getInventory", method: "GET", path: target, check: isInventory }, options);
  }

  // Photos

  /**
   * Adds a photo to a pet. The service keeps a smaller picture, without metadata. The photo
   * is added only once, even if the call is retried: see `idempotencyKey`. For that, the
   * whole picture is read into memory first, also from a stream.
   */
  addPhoto(petId: number, picture: Picture, options?: CallOptions): Promise<api.Photo> {
    return this.#send(
      { operation: "addPhoto", method: "POST", path: path`/pets/${petId}/photos`, picture, repeat: "replayed", check: isPhoto },
      options,
    );
  }

  /**
   * Lists the photos of pets, oldest first. Photos that exist during the whole listing are
   * listed exactly once; photos added during the listing may be included.
   */
  listPhotos(query: PhotoQuery, options?: CallOptions): AsyncGenerator<api.Photo, void, undefined> {
    return list(this.#transport, { operation: "listPhotos", path: "/photos", query, filters: { petIds: "petId" }, check: isPhoto }, options);
  }

  /** Returns one photo, without its image. */
  getPhoto(photoId: number, options?: CallOptions): Promise<api.Photo> {
    return this.#send({ operation: "getPhoto", method: "GET", path: path`/photos/${photoId}`, check: isPhoto }, options);
  }

  /** Returns the image of a photo, a JPEG or PNG file. It never changes. */
  getImage(photoId: number, options?: CallOptions): Promise<Blob> {
    return this.#send({ operation: "getImage", method: "GET", path: path`/photos/${photoId}/image`, image: true, check: isImage }, options);
  }

  /** Returns a small image of a photo, of at most 320 pixels on its long side. It never changes. */
  getThumbnail(photoId: number, options?: CallOptions): Promise<Blob> {
    return this.#send({ operation: "getThumbnail", method: "GET", path: path`/photos/${photoId}/thumbnail`, image: true, check: isImage }, options);
  }

  /** Removes a photo. If an attempt was lost and the next one finds the photo gone, that counts as success. */
  deletePhoto(photoId: number, options?: CallOptions): Promise<void> {
    return this.#send({ operation: "deletePhoto", method: "DELETE", path: path`/photos/${photoId}` }, options);
  }

  // Orders

  /** Lists orders, newest first unless the query says otherwise, with the guarantee of `listPets`. */
  listOrders({ status, oldest, ...others }: OrderQuery = {}, options?: CallOptions): AsyncGenerator<api.Order, void, undefined> {
    const filters = { status: "", petId: "", reference: "", sort: "" };
    const query = { ...others, status: Array.isArray(status) ? status.join(",") : status, sort: oldest ? "oldest" : undefined };
    return list(this.#transport, { operation: "listOrders", path: "/store/orders", query, filters, check: isOrder }, options);
  }

  /**
   * Orders a pet, which must be available and becomes pending. Only one order is placed,
   * even if the call is retried: see `idempotencyKey`.
   */
  placeOrder({ petId, reference, note }: api.NewOrder, options?: CallOptions): Promise<api.Order> {
    const body = { petId, reference, note };
    return this.#send({ operation: "placeOrder", method: "POST", path: "/store/orders", body, repeat: "replayed", check: isOrder }, options);
  }

  /** Returns one order. */
  getOrder(orderId: number, options?: CallOptions): Promise<api.Order> {
    return this.#send({ operation: "getOrder", method: "GET", path: path`/store/orders/${orderId}`, check: isOrder }, options);
  }

  /**
   * Changes an order and returns the changed order. If its status changes, so does that of its pet.
   * If an attempt was lost and the next one is refused, the error's `outcomeUnknown` is
   * set: the order shows that it was changed, but not by whom.
   */
  updateOrder(orderId: number, patch: api.OrderPatch, options?: CallOptions): Promise<api.Order> {
    return this.#send({ operation: "updateOrder", method: "PATCH", path: path`/store/orders/${orderId}`, body: patch, check: isOrder }, options);
  }

  // Categories

  /** Lists categories by ascending id. */
  listCategories(query: PageQuery = {}, options?: CallOptions): AsyncGenerator<api.Category, void, undefined> {
    return list(this.#transport, { operation: "listCategories", path: "/categories", query, check: isCategory }, options);
  }

  /** Returns one category. */
  getCategory(categoryId: number, options?: CallOptions): Promise<api.Category> {
    return this.#send({ operation: "getCategory", method: "GET", path: path`/categories/${categoryId}`, check: isCategory }, options);
  }

  /**
   * Sets the name of a category, and creates the category if it doesn't exist. The status
   * in `readMeta` is 201 if it was created, unless that response was lost and the call was
   * retried. With `ifNoneMatch: "*"` it only creates: if the category exists, the error has
   * code precondition_failed.
   */
  putCategory(category: api.Category, options?: CallOptions): Promise<api.Category> {
    const { id, name } = category;
    return this.#send(
      { operation: "putCategory", method: "PUT", path: path`/categories/${id}`, body: { name }, creates: true, check: isCategory },
      options,
    );
  }

  // Events

  /**
   * Lists the events so far, oldest first, and ends with the newest. `events` also waits
   * for later ones. With `before` or `newest` it lists them newest first and ends with the
   * oldest kept event, or at `since`.
   */
  listEvents(query: EventsQuery = {}, options?: CallOptions): AsyncGenerator<api.Event, void, undefined> {
    return listEvents(this.#transport, query, options);
  }

  /**
   * Follows the events of the store, oldest first. The loop has no end: it waits for the
   * next event. It stops when you leave it, when `signal` is aborted, or after an error
   * that a retry can't fix. After any other failure it resumes where it was, however long
   * that takes, so no event is skipped or repeated.
   *
   * The error has code events_expired if the events after this position are no longer
   * kept: rebuild from the lists what you built from earlier events.
   *
   * The service sends the events in a stream, which counts as one request as long as it
   * lasts. If a stream can't be used, because a proxy holds it back or the key has too many,
   * the client requests events in sequence for ten minutes, at least two a
   * minute, and then tries a stream again.
   */
  events(query: EventsQuery = {}, options?: CallOptions): AsyncGenerator<api.Event, void, undefined> {
    return follow(this.#transport, query, options);
  }

  /** Makes one request for events, for programs that show one page at a time: at most limit events, 1 to 100. */
  listEventPage(query: EventsQuery, limit: number, options?: CallOptions): Promise<EventPage> {
    return eventPage(this.#transport, query, limit, options);
  }

  /** Returns the id of the newest event, or 0 if there is none. Later events come after it. */
  latestEventId(options?: CallOptions): Promise<number> {
    return latestId(this.#transport, "latestEventId", options);
  }

  // Limits and the server

  /** Returns how much of its plan the client's key has used. It counts as a request; `rateLimit` doesn't. */
  getLimits(options?: CallOptions): Promise<api.Limits> {
    return this.#send({ operation: "getLimits", method: "GET", path: "/limits", check: isLimits }, options);
  }

  /**
   * Returns the number of requests of the client's key by hour, newest first, for the
   * given number of hours, at most 2160, by default 24. Hours without a request are omitted.
   */
  getUsage(hours?: number, options?: CallOptions): Promise<api.UsageHour[]> {
    return this.#send({ operation: "getUsage", method: "GET", path: withQuery("/usage", { hours }), check: isUsage }, options);
  }

  /**
   * Lists the requests that got an error response in the last seven days, newest
   * first: those of the client's key or, with the `admin` permission, of all keys. A request
   * appears within two seconds.
   */
  listFailures(query: FailureQuery = {}, options?: CallOptions): AsyncGenerator<api.Failure, void, undefined> {
    const filters = { keyId: "", code: "", requestId: "", since: "" };
    return list(this.#transport, { operation: "listFailures", path: "/failures", query, filters, check: isFailure }, options);
  }

  /** Returns the state of the server that responds. It needs a key with the admin permission. */
  getStatus(options?: CallOptions): Promise<api.Status> {
    return this.#send({ operation: "getStatus", method: "GET", path: "/status", check: isStatus }, options);
  }

  // Keys

  /** Lists keys, newest first, including revoked and expired ones. Like all operations on keys it needs the admin permission. */
  listKeys(query: PageQuery = {}, options?: CallOptions): AsyncGenerator<api.Key, void, undefined> {
    return list(this.#transport, { operation: "listKeys", path: "/keys", query, check: isKey }, options);
  }

  /**
   * Creates a key. Store its secret: it is not shown again. This call is only retried if
   * it's certain that nothing was created. If the error's `outcomeUnknown` is set, look for
   * the key in the list and revoke it.
   */
  createKey(key: api.NewKey, options?: CallOptions): Promise<api.KeyWithSecret> {
    return this.#send({ operation: "createKey", method: "POST", path: "/keys", body: key, repeat: "harmful", check: isKeyWithSecret }, options);
  }

  /** Returns one key. */
  getKey(keyId: number, options?: CallOptions): Promise<api.Key> {
    return this.#send({ operation: "getKey", method: "GET", path: path`/keys/${keyId}`, check: isKey }, options);
  }

  /** Changes a key and returns the changed key. The change takes effect within a second. */
  updateKey(keyId: number, patch: api.KeyPatch, options?: CallOptions): Promise<api.Key> {
    return this.#send({ operation: "updateKey", method: "PATCH", path: path`/keys/${keyId}`, body: patch, check: isKey }, options);
  }

  /** Disables a key permanently. Revoking it again is not an error. */
  revokeKey(keyId: number, options?: CallOptions): Promise<void> {
    return this.#send({ operation: "revokeKey", method: "DELETE", path: path`/keys/${keyId}` }, options);
  }

  /**
   * Gives a key a new secret. The previous ones keep working for the grace period. Like
   * `createKey` it's only retried if it's certain that nothing was changed. If the error's
   * `outcomeUnknown` is set, rotate the key again.
   *
   * @param graceSeconds By default `defaultGraceSeconds`.
   */
  rotateKey(keyId: number, graceSeconds = defaultGraceSeconds, options?: CallOptions): Promise<api.KeyWithSecret> {
    return this.#send(
      {
        operation: "rotateKey",
        method: "POST",
        path: path`/keys/${keyId}/rotate`,
        body: { graceSeconds },
        repeat: "harmful",
        conditional: true,
        check: isKeyWithSecret,
      },
      options,
    );
  }

  /** Lifts the ban of a key, if it has one; `banLifted` in `readMeta` says whether it did. */
  unbanKey(keyId: number, options?: CallOptions): Promise<api.Key> {
    return this.#send({ operation: "unbanKey", method: "POST", path: path`/keys/${keyId}/unban`, conditional: true, check: isKey }, options);
  }

  /** Like `getUsage`, for any key. */
  getKeyUsage(keyId: number, hours?: number, options?: CallOptions): Promise<api.UsageHour[]> {
    return this.#send({ operation: "getKeyUsage", method: "GET", path: withQuery(path`/keys/${keyId}/usage`, { hours }), check: isUsage }, options);
  }

  // Webhooks

  /** Lists webhooks, newest first. Like all operations on webhooks it needs the admin permission. */
  listWebhooks(query: PageQuery = {}, options?: CallOptions): AsyncGenerator<api.Webhook, void, undefined> {
    return list(this.#transport, { operation: "listWebhooks", path: "/webhooks", query, check: isWebhook }, options);
  }

  /**
   * Creates a webhook. Store its secret: it is not shown again, and receivers need it for
   * `verifyWebhook`. Like `createKey` it's only retried if it's certain that nothing was
   * created.
   */
  createWebhook(webhook: api.NewWebhook, options?: CallOptions): Promise<api.WebhookWithSecret> {
    return this.#send(
      { operation: "createWebhook", method: "POST", path: "/webhooks", body: webhook, repeat: "harmful", check: isWebhookWithSecret },
      options,
    );
  }

  /** Returns one webhook. */
  getWebhook(webhookId: number, options?: CallOptions): Promise<api.Webhook> {
    return this.#send({ operation: "getWebhook", method: "GET", path: path`/webhooks/${webhookId}`, check: isWebhook }, options);
  }

  /** Changes a webhook and returns it. A resumed webhook never gets events that occurred while it was inactive. */
  updateWebhook(webhookId: number, patch: api.WebhookPatch, options?: CallOptions): Promise<api.Webhook> {
    return this.#send({ operation: "updateWebhook", method: "PATCH", path: path`/webhooks/${webhookId}`, body: patch, check: isWebhook }, options);
  }

  /** Removes a webhook with its deliveries. */
  deleteWebhook(webhookId: number, options?: CallOptions): Promise<void> {
    return this.#send({ operation: "deleteWebhook", method: "DELETE", path: path`/webhooks/${webhookId}` }, options);
  }

  /**
   * Gives a webhook a new secret. During the grace period, deliveries are also signed with
   * the previous one.
   *
   * @param graceSeconds By default `defaultGraceSeconds`.
   */
  rotateWebhook(webhookId: number, graceSeconds = defaultGraceSeconds, options?: CallOptions): Promise<api.WebhookWithSecret> {
    return this.#send(
      {
        operation: "rotateWebhook",
        method: "POST",
        path: path`/webhooks/${webhookId}/rotate`,
        body: { graceSeconds },
        repeat: "harmful",
        conditional: true,
        check: isWebhookWithSecret,
      },
      options,
    );
  }

  /**
   * Sends a message of type webhook.ping to a webhook, or sample data for another type of
   * event. The delivery shows the outcome later.
   */
  pingWebhook(webhookId: number, type?: api.EventType, options?: CallOptions): Promise<api.Delivery> {
    const body = type ? { type } : undefined;
    return this.#send(
      {
        operation: "pingWebhook",
        method: "POST",
        path: path`/webhooks/${webhookId}/ping`,
        body,
        repeat: "harmful",
        accepted: true,
        check: isDelivery,
      },
      options,
    );
  }

  /** Lists the deliveries to a webhook, newest first. */
  listDeliveries(webhookId: number, query: DeliveryQuery = {}, options?: CallOptions): AsyncGenerator<api.Delivery, void, undefined> {
    return list(
      this.#transport,
      { operation: "listDeliveries", path: path`/webhooks/${webhookId}/deliveries`, query, filters: { state: "" }, check: isDelivery },
      options,
    );
  }

  /** Returns a delivery to a webhook and the body that is sent. */
  getDelivery(webhookId: number, deliveryId: number, options?: CallOptions): Promise<api.DeliveryWithBody> {
    return this.#send(
      { operation: "getDelivery", method: "GET", path: path`/webhooks/${webhookId}/deliveries/${deliveryId}`, check: isDeliveryWithBody },
      options,
    );
  }

  /** Makes a delivery due now, regardless of its state. */
  retryDelivery(webhookId: number, deliveryId: number, options?: CallOptions): Promise<api.Delivery> {
    return this.#send(
      {
        operation: "retryDelivery",
        method: "POST",
        path: path`/webhooks/${webhookId}/deliveries/${deliveryId}/retry`,
        accepted: true,
        check: isDelivery,
      },
      options,
    );
  }

  /** Makes all matching deliveries to a webhook due now, and returns how many there are. */
  async retryDeliveries(webhookId: number, which: api.DeliveryRetry, options?: CallOptions): Promise<number> {
    const { deliveries } = await this.#send(
      {
        operation: "retryDeliveries",
        method: "POST",
        path: path`/webhooks/${webhookId}/deliveries/retry`,
        body: which,
        accepted: true,
        check: isDeliveryCount,
      },
      options,
    );
    return deliveries;
  }
}
