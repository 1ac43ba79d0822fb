export { Client } from "./client.js";
export { defaultGraceSeconds, type DeliveryQuery, type InventoryQuery, type Operations, type OrderQuery, type PetQuery, type PhotoQuery } from "./operations.js";
export * from "./types.js";
export {
  AbortError,
  AnimalStoreError,
  InvalidArgumentError,
  NetworkError,
  NotModifiedError,
  RateLimitError,
  ResponseError,
  ServiceError,
  TimeoutError,
  type Window,
} from "./errors.js";
export type { EventPage, EventsQuery, PageQuery } from "./lists.js";
export type { CallOptions, ClientOptions, Meta, RateLimit, Wait } from "./options.js";
export type { Picture } from "./pictures.js";
export { verifyWebhook, WebhookError, webhookTolerance, type WebhookHeaders, type WebhookReason } from "./webhook.js";
