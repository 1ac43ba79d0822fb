export { Client, defaultGraceSeconds, type DeliveryQuery, type InventoryQuery, type OrderQuery, type PetQuery } from "./client.js";
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
export { verifyWebhook, WebhookError, webhookTolerance, type WebhookHeaders, type WebhookReason } from "./webhook.js";
