// The types of the API, from the OpenAPI document.
import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];

export type Pet = Schemas["Pet"];
export type NewPet = Schemas["NewPet"];
export type PetPatch = Schemas["PetPatch"];
export type PetStatus = Schemas["PetStatus"];
export type Photo = Schemas["Photo"];
export type Order = Schemas["Order"];
export type OrderPatch = Schemas["OrderPatch"];
export type OrderStatus = Schemas["OrderStatus"];
export type Category = Schemas["Category"];
export type Inventory = Schemas["Inventory"];
/** A change of the store. `data` is the resource: a Pet, Photo, Order, Category, Key or Webhook. */
export type Event = Omit<Schemas["Event"], "data"> & { data: Record<string, unknown> };
export type EventType = Schemas["EventType"];
export type Key = Schemas["Key"];
export type NewKey = Schemas["NewKey"];
export type KeyPatch = Schemas["KeyPatch"];
export type KeyWithSecret = Schemas["KeyWithSecret"];
export type Limits = Schemas["Limits"];
export type UsageHour = Schemas["UsageHour"];
export type Status = Schemas["Status"];
export type Webhook = Schemas["Webhook"];
export type NewWebhook = Schemas["NewWebhook"];
export type WebhookPatch = Schemas["WebhookPatch"];
export type WebhookWithSecret = Schemas["WebhookWithSecret"];
export type Delivery = Schemas["Delivery"];
export type DeliveryWithBody = Schemas["DeliveryWithBody"];
export type DeliveryRetry = Schemas["DeliveryRetry"];
export type DeliveryState = Schemas["DeliveryState"];

/** All types of the OpenAPI document. */
export type { components, paths };
