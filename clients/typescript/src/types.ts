// The types of the API, from the OpenAPI document.
import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];

export type Pet = Schemas["Pet"];
export type NewPet = Schemas["NewPet"];
export type PetPatch = Schemas["PetPatch"];
export type PetBatch = Schemas["PetBatch"];
export type PetStatus = Schemas["PetStatus"];
export type Photo = Schemas["Photo"];
export type Order = Schemas["Order"];
export type NewOrder = Schemas["NewOrder"];
export type OrderPatch = Schemas["OrderPatch"];
export type OrderStatus = Schemas["OrderStatus"];
export type Category = Schemas["Category"];
export type Inventory = Schemas["Inventory"];
export type Key = Schemas["Key"];
export type NewKey = Schemas["NewKey"];
export type KeyPatch = Schemas["KeyPatch"];
export type KeyWithSecret = Schemas["KeyWithSecret"];
export type Limits = Schemas["Limits"];
export type UsageHour = Schemas["UsageHour"];
export type Failure = Schemas["Failure"];
export type Status = Schemas["Status"];
export type Webhook = Schemas["Webhook"];
export type NewWebhook = Schemas["NewWebhook"];
export type WebhookPatch = Schemas["WebhookPatch"];
export type WebhookWithSecret = Schemas["WebhookWithSecret"];
export type Delivery = Schemas["Delivery"];
export type DeliveryWithBody = Schemas["DeliveryWithBody"];
export type DeliveryRetry = Schemas["DeliveryRetry"];
export type DeliveryState = Schemas["DeliveryState"];

/** The types of events, and what their `data` is. */
export interface EventData {
  "pet.created": Pet;
  "pet.updated": Pet;
  "pet.deleted": Pet;
  "photo.created": Photo;
  "photo.deleted": Photo;
  "order.created": Order;
  "order.updated": Order;
  "category.updated": Category;
  "key.created": Key;
  "key.updated": Key;
  "key.rotated": Key;
  "key.revoked": Key;
  "key.banned": Key;
  "key.unbanned": Key;
  "webhook.created": Webhook;
  "webhook.updated": Webhook;
  "webhook.deleted": Webhook;
  "webhook.disabled": Webhook;
}

export type EventType = keyof EventData;

/** One form for each type of event. */
type ByType<Fields> = { [T in EventType]: Omit<Fields, "type" | "data"> & { type: T; data: EventData[T] } }[EventType];

/**
 * A change of the store. Its `type` tells what its `data` is. More types may be added:
 * ignore those that you don't know.
 */
export type Event = ByType<Schemas["Event"]>;

/** What a webhook receives: an event, or the message that `pingWebhook` sends. */
export type WebhookMessage =
  | ByType<Schemas["DeliveryBody"]>
  | (Omit<Schemas["DeliveryBody"], "type"> & { type: "webhook.ping" });

/** All types of the OpenAPI document. */
export type { components, paths };
