import type { Call } from "./call.js";
import type { PageQuery } from "./lists.js";
import type { CallOptions } from "./options.js";
import type { Picture } from "./pictures.js";
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

/** Selects the photos of pets. */
export interface PhotoQuery extends PageQuery {
  /** 1 to 100. */
  petIds: number[];
}

/** Selects the pets to count. Without a category, all of them. */
export interface InventoryQuery {
  categoryId?: number;
}

/** Selects deliveries. Filters that are left out match all of them. */
export interface DeliveryQuery extends PageQuery {
  state?: api.DeliveryState;
}

/** The operations of the API that take one request, or are a list. */
export interface Operations {
  /**
   * Lists pets, newest first. Pets that exist during the whole listing are listed exactly
   * once, whatever else changes meanwhile; pets added meanwhile are not listed.
   */
  listPets(query?: PetQuery, options?: CallOptions): AsyncGenerator<api.Pet, void, undefined>;

  /** Adds a pet. It is added only once, even if the call is retried: see `idempotencyKey`. */
  createPet(pet: api.NewPet, options?: CallOptions): Promise<api.Pet>;

  /**
   * Returns one pet by its id.
   *
   * @deprecated The service removes this operation on 5 December 2030. Then the error has
   * code endpoint_removed. Use `findPet`.
   */
  getPet(petId: number, options?: CallOptions): Promise<api.Pet>;

  /** Changes a pet and returns the changed pet. Use `ifMatch` to change it only if it is still in the state you read. */
  updatePet(petId: number, patch: api.PetPatch, options?: CallOptions): Promise<api.Pet>;

  /** Removes a pet. If an attempt was lost and the next one finds the pet gone, that counts as success. */
  deletePet(petId: number, options?: CallOptions): Promise<void>;

  /**
   * Adds a photo to a pet. The service keeps a smaller picture, without metadata. The photo
   * is added only once, even if the call is retried: see `idempotencyKey`. For that, the
   * whole picture is read into memory first, also from a stream.
   */
  addPhoto(petId: number, picture: Picture, options?: CallOptions): Promise<api.Photo>;

  /** Lists the photos of pets, oldest first. Photos that exist during the whole listing are listed exactly once; photos added meanwhile may be listed too. */
  listPhotos(query: PhotoQuery, options?: CallOptions): AsyncGenerator<api.Photo, void, undefined>;

  /** Returns one photo, without its image. */
  getPhoto(photoId: number, options?: CallOptions): Promise<api.Photo>;

  /** Returns the image of a photo, a JPEG or PNG file. It never changes. */
  getImage(photoId: number, options?: CallOptions): Promise<Blob>;

  /** Returns a small image of a photo, of at most 320 pixels on its long side. It never changes. */
  getThumbnail(photoId: number, options?: CallOptions): Promise<Blob>;

  /** Removes a photo. If an attempt was lost and the next one finds the photo gone, that counts as success. */
  deletePhoto(photoId: number, options?: CallOptions): Promise<void>;

  /** Lists orders, newest first, with the guarantee of `listPets`. */
  listOrders(query?: OrderQuery, options?: CallOptions): AsyncGenerator<api.Order, void, undefined>;

  /**
   * Orders a pet, which must be available and becomes pending. Only one order is placed,
   * even if the call is retried: see `idempotencyKey`.
   */
  placeOrder(petId: number, options?: CallOptions): Promise<api.Order>;

  /** Returns one order. */
  getOrder(orderId: number, options?: CallOptions): Promise<api.Order>;

  /**
   * Changes an order and returns the changed order. The status of its pet changes with it.
   * If an attempt was lost and the next one is refused, the error's `outcomeUnknown` is
   * set: the order shows that it was changed, but not by whom.
   */
  updateOrder(orderId: number, patch: api.OrderPatch, options?: CallOptions): Promise<api.Order>;

  /**
   * Returns the number of pets in each status. The counts may be up to ten seconds old; `age`
   * in `readMeta` is their age. In a category that doesn't exist there are no pets.
   */
  getInventory(query?: InventoryQuery, options?: CallOptions): Promise<api.Inventory>;

  /** Lists categories by ascending id. */
  listCategories(query?: PageQuery, options?: CallOptions): AsyncGenerator<api.Category, void, undefined>;

  /** Returns one category. */
  getCategory(categoryId: number, options?: CallOptions): Promise<api.Category>;

  /**
   * Sets the name of a category, and creates the category if it doesn't exist. The status
   * in `readMeta` is 201 if it was created, unless that response was lost and the call was
   * retried. With `ifNoneMatch: "*"` it only creates: if the category exists, the error has
   * code precondition_failed.
   */
  putCategory(category: api.Category, options?: CallOptions): Promise<api.Category>;

  /** Returns how much of its plan the client's key has used. It counts as a request; `rateLimit` doesn't. */
  getLimits(options?: CallOptions): Promise<api.Limits>;

  /**
   * Returns the number of requests of the client's key by hour, the latest first, for the
   * given number of hours, at most 2160, by default 24. Hours without a request are omitted.
   */
  getUsage(hours?: number, options?: CallOptions): Promise<api.UsageHour[]>;

  /** Returns the state of the server that responds. It needs a key with the admin permission. */
  getStatus(options?: CallOptions): Promise<api.Status>;

  /** Lists keys, newest first, including revoked and expired ones. Like all operations on keys it needs the admin permission. */
  listKeys(query?: PageQuery, options?: CallOptions): AsyncGenerator<api.Key, void, undefined>;

  /**
   * Creates a key. Store its secret: it is not shown again. This call is only retried if
   * it's certain that nothing was created. If the error's `outcomeUnknown` is set, look for
   * the key in the list and revoke it.
   */
  createKey(key: api.NewKey, options?: CallOptions): Promise<api.KeyWithSecret>;

  /** Returns one key. */
  getKey(keyId: number, options?: CallOptions): Promise<api.Key>;

  /** Changes a key and returns the changed key. The change takes effect within a second. */
  updateKey(keyId: number, patch: api.KeyPatch, options?: CallOptions): Promise<api.Key>;

  /** Disables a key permanently. Revoking it again is not an error. */
  revokeKey(keyId: number, options?: CallOptions): Promise<void>;

  /**
   * Gives a key a new secret. The previous ones keep working for the grace period. Like
   * `createKey` it's only retried if it's certain that nothing was done. If the error's
   * `outcomeUnknown` is set, rotate the key again.
   *
   * @param graceSeconds By default `defaultGraceSeconds`.
   */
  rotateKey(keyId: number, graceSeconds?: number, options?: CallOptions): Promise<api.KeyWithSecret>;

  /** Lifts the ban of a key, if it has one; `banLifted` in `readMeta` says whether it did. */
  unbanKey(keyId: number, options?: CallOptions): Promise<api.Key>;

  /** Like `getUsage`, for any key. */
  getKeyUsage(keyId: number, hours?: number, options?: CallOptions): Promise<api.UsageHour[]>;

  /** Lists webhooks, newest first. Like all operations on webhooks it needs the admin permission. */
  listWebhooks(query?: PageQuery, options?: CallOptions): AsyncGenerator<api.Webhook, void, undefined>;

  /**
   * Creates a webhook. Store its secret: it is not shown again, and receivers need it for
   * `verifyWebhook`. Like `createKey` it's only retried if it's certain that nothing was
   * created.
   */
  createWebhook(webhook: api.NewWebhook, options?: CallOptions): Promise<api.WebhookWithSecret>;

  /** Returns one webhook. */
  getWebhook(webhookId: number, options?: CallOptions): Promise<api.Webhook>;

  /** Changes a webhook and returns it. A resumed webhook never gets the events from while it was paused or disabled. */
  updateWebhook(webhookId: number, patch: api.WebhookPatch, options?: CallOptions): Promise<api.Webhook>;

  /** Removes a webhook with its deliveries. */
  deleteWebhook(webhookId: number, options?: CallOptions): Promise<void>;

  /** Gives a webhook a new secret. During the grace period, deliveries are also signed with the previous one. */
  rotateWebhook(webhookId: number, graceSeconds?: number, options?: CallOptions): Promise<api.WebhookWithSecret>;

  /**
   * Sends a message of type webhook.ping to a webhook, or sample data for another type of
   * event. The delivery shows the outcome later.
   */
  pingWebhook(webhookId: number, type?: api.EventType, options?: CallOptions): Promise<api.Delivery>;

  /** Lists the deliveries to a webhook, newest first. */
  listDeliveries(webhookId: number, query?: DeliveryQuery, options?: CallOptions): AsyncGenerator<api.Delivery, void, undefined>;

  /** Returns a delivery to a webhook and the body that is sent. */
  getDelivery(webhookId: number, deliveryId: number, options?: CallOptions): Promise<api.DeliveryWithBody>;

  /** Makes a delivery due at once, whatever its state. */
  retryDelivery(webhookId: number, deliveryId: number, options?: CallOptions): Promise<api.Delivery>;

  /** Makes all deliveries to a webhook that match due at once, and returns how many. */
  retryDeliveries(webhookId: number, which: api.DeliveryRetry, options?: CallOptions): Promise<number>;
}

/** The service's default for how long the previous secrets of a rotated key keep working, in seconds. */
export const defaultGraceSeconds = 86_400;

// Whether a decoded value is plausible. A response that isn't was cut short or isn't from
// the service.
const has = (fields: string) => (value: any) => fields.split(" ").every((field) => value?.[field]);
export const isPet = has("id name status");
const isPhoto = has("id petId contentType");
const isOrder = has("id petId status");
const isCategory = (c: api.Category) => typeof c?.id === "number";
const isInventory = (i: api.Inventory) => i.available + i.pending + i.sold >= 0;
const isKey = has("id name plan");
const isNewKey = has("id name plan secret");
const isWebhook = has("id url state");
const isNewWebhook = has("id url state secret");
const isDelivery = has("id type state");
const isImage = (image: Blob) => image.size;

// What the argument between the ids and the options adds to a call.
const body = (body: object) => ({ body });
const query = (query: object) => ({ query: { ...query } });
const hours = (hours?: number) => ({ query: { hours } });
const grace = (graceSeconds = defaultGraceSeconds) => ({ body: { graceSeconds } });

const list: Partial<Call> = { list: true };
const replayed: Partial<Call> = { repeat: "replayed" };
const harmful: Partial<Call> = { repeat: "harmful" };
const rotation: Partial<Call> = { repeat: "harmful", conditional: true };
const image: Partial<Call> = { image: true };
const accepted: Partial<Call> = { accepted: true };

/**
 * How each method makes its call:
 *
 * - the request, a GET unless it says otherwise; {} is the next id among the arguments
 * - the check that a response must pass; without one, it has no body
 * - what the argument after the ids adds to the call, if there is one
 * - other properties of the call
 */
export const operations: {
  [operation in keyof Operations]: [request: string, check?: Call["check"], input?: ((argument: any) => Partial<Call>) | null, more?: Partial<Call>];
} = {
  listPets: ["/pets", isPet, ({ ids, ...filters }: PetQuery = {}) => ({ query: { ...filters, id: ids } }), list],
  createPet: ["POST /pets", isPet, body, replayed],
  getPet: ["/pets/{}", isPet],
  updatePet: ["PATCH /pets/{}", isPet, body],
  deletePet: ["DELETE /pets/{}"],

  addPhoto: ["POST /pets/{}/photos", isPhoto, (picture: Picture) => ({ picture }), replayed],
  listPhotos: ["/photos", isPhoto, ({ petIds, ...filters }: PhotoQuery) => ({ query: { ...filters, petId: petIds } }), list],
  getPhoto: ["/photos/{}", isPhoto],
  getImage: ["/photos/{}/image", isImage, null, image],
  getThumbnail: ["/photos/{}/thumbnail", isImage, null, image],
  deletePhoto: ["DELETE /photos/{}"],

  listOrders: ["/store/orders", isOrder, query, list],
  placeOrder: ["POST /store/orders", isOrder, (petId: number) => ({ body: { petId } }), replayed],
  getOrder: ["/store/orders/{}", isOrder],
  updateOrder: ["PATCH /store/orders/{}", isOrder, body],
  getInventory: ["/store/inventory", isInventory, query],

  listCategories: ["/categories", isCategory, query, list],
  getCategory: ["/categories/{}", isCategory],
  putCategory: ["PUT /categories", isCategory, ({ id, name }: api.Category) => ({ path: "/categories/" + id, body: { name } }), { creates: true }],

  getLimits: ["/limits", has("plan minute day")],
  getUsage: ["/usage", Array.isArray, hours],
  getStatus: ["/status", has("engine deployment")],

  listKeys: ["/keys", isKey, query, list],
  createKey: ["POST /keys", isNewKey, body, harmful],
  getKey: ["/keys/{}", isKey],
  updateKey: ["PATCH /keys/{}", isKey, body],
  revokeKey: ["DELETE /keys/{}"],
  rotateKey: ["POST /keys/{}/rotate", isNewKey, grace, rotation],
  unbanKey: ["POST /keys/{}/unban", isKey, null, { conditional: true }],
  getKeyUsage: ["/keys/{}/usage", Array.isArray, hours],

  listWebhooks: ["/webhooks", isWebhook, query, list],
  createWebhook: ["POST /webhooks", isNewWebhook, body, harmful],
  getWebhook: ["/webhooks/{}", isWebhook],
  updateWebhook: ["PATCH /webhooks/{}", isWebhook, body],
  deleteWebhook: ["DELETE /webhooks/{}"],
  rotateWebhook: ["POST /webhooks/{}/rotate", isNewWebhook, grace, rotation],
  pingWebhook: ["POST /webhooks/{}/ping", isDelivery, (type?: api.EventType) => ({ body: type ? { type } : undefined }), { ...harmful, ...accepted }],
  listDeliveries: ["/webhooks/{}/deliveries", isDelivery, query, list],
  getDelivery: ["/webhooks/{}/deliveries/{}", has("id type state body")],
  retryDelivery: ["POST /webhooks/{}/deliveries/{}/retry", isDelivery, null, accepted],
  retryDeliveries: ["POST /webhooks/{}/deliveries/retry", (r: { deliveries: number }) => r.deliveries >= 0, body, { ...accepted, result: "deliveries" }],
};
