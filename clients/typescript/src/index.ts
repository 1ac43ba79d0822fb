export type { ImportOptions, PetImport } from "./batches.js";
export { Client, defaultGraceSeconds } from "./client.js";
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
export type { EventPage } from "./lists.js";
export type { CallAttempt, CallOptions, ClientOptions, Meta, RateLimit, Wait } from "./options.js";
export type { Picture } from "./pictures.js";
export type { DeliveryQuery, EventsQuery, FailureQuery, InventoryQuery, OrderQuery, PageQuery, PetQuery, PhotoQuery } from "./queries.js";
export { verifyWebhook, WebhookError, webhookTolerance, type WebhookHeaders, type WebhookReason } from "./webhook.js";
