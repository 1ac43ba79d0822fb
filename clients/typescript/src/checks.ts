import type * as api from "./types.js";

// Each reports whether a decoded response is plausible. One that isn't was cut short or
// isn't from the service.

/** Checks that an object has a value for each of these fields. */
function hasFields<T>(...fields: (keyof T)[]) {
  return (value: any): value is T => fields.every((field) => value?.[field]);
}

export const isPet = hasFields<api.Pet>("id", "name", "status");
export const isPhoto = hasFields<api.Photo>("id", "petId", "contentType");
export const isOrder = hasFields<api.Order>("id", "petId", "status");
export const isLimits = hasFields<api.Limits>("plan", "minute", "day");
export const isStatus = hasFields<api.Status>("engine", "deployment");
export const isKey = hasFields<api.Key>("id", "name", "plan");
export const isKeyWithSecret = hasFields<api.KeyWithSecret>("id", "name", "plan", "secret");
export const isWebhook = hasFields<api.Webhook>("id", "url", "state");
export const isWebhookWithSecret = hasFields<api.WebhookWithSecret>("id", "url", "state", "secret");
export const isFailure = hasFields<api.Failure>("id", "status", "code");
export const isDelivery = hasFields<api.Delivery>("id", "type", "state");
export const isDeliveryWithBody = hasFields<api.DeliveryWithBody>("id", "type", "state", "body");

export function isEvent(value: any): value is api.Event {
  return value?.id >= 1 && value.type && value.data && typeof value.data === "object";
}

/** Checks that each of the pets of a batch was added. */
export function isPetBatch(size: number) {
  return (value: any): value is api.PetBatch => value.pets?.length === size && value.pets.every(isPet);
}

/** The id of a category can be 0. */
export function isCategory(value: any): value is api.Category {
  return typeof value?.id === "number";
}

export function isInventory(value: any): value is api.Inventory {
  return value.available + value.pending + value.sold >= 0;
}

export function isUsage(value: any): value is api.UsageHour[] {
  return Array.isArray(value);
}

export function isDeliveryCount(value: any): value is { deliveries: number } {
  return value.deliveries >= 0;
}

export function isImage(value: any): value is Blob {
  return value.size > 0;
}
