import type * as api from "./types.js";

/** The query of a list without filters. */
export interface PageQuery {
  /** The number of entries per page, 1 to 100. By default 100, because every page is a request that counts. */
  pageSize?: number;
}

/** Selects pets. Omitted filters match all pets. */
export interface PetQuery extends PageQuery {
  status?: api.PetStatus;
  categoryId?: number;
  /** At most 100. */
  ids?: number[];
  /**
   * The beginning of any of the first four words of the name, ignoring case and how words are
   * separated. The pets are then sorted by what they were found by.
   */
  name?: string;
}

/** Selects orders. Omitted filters match all orders. */
export interface OrderQuery extends PageQuery {
  /** One status, or any of several. */
  status?: api.OrderStatus | api.OrderStatus[];
  petId?: number;
  /** Exactly this one. */
  reference?: string;
  /** List the oldest orders first. */
  oldest?: boolean;
}

/** Selects the photos of pets. */
export interface PhotoQuery extends PageQuery {
  /** 1 to 100. */
  petIds: number[];
}

/** Selects the pets to count: those in a category, or by default all. */
export interface InventoryQuery {
  categoryId?: number;
}

/** Selects deliveries. Omitted filters match all deliveries. */
export interface DeliveryQuery extends PageQuery {
  state?: api.DeliveryState;
}

/** Selects failed requests. Omitted filters match all that the client's key may see. */
export interface FailureQuery extends PageQuery {
  /** Another key than the client's needs the `admin` permission. */
  keyId?: number;
  code?: string;
  /** The `requestId` of a `ServiceError`. */
  requestId?: string;
  /** Only from this time on, such as "2026-11-15T10:00:00Z". */
  since?: string;
}

/** Selects events. By default all kept events. */
export interface EventsQuery {
  /** Only events after this id. */
  after?: number;
  /** Only events from now on, instead of `after`. */
  latest?: boolean;
  /** Only events before this id, newest first; not in `events`. */
  before?: number;
  /** All events, newest first, instead of `before`. */
  newest?: boolean;
  /**
   * Begin at most a minute before the first event at or after this time, such as
   * "2026-11-15T10:00:00Z". With `before` or `newest` the list ends there instead; not with
   * `after` or `latest`.
   */
  since?: string;
  /** Such as "pet.created", or "pet.*" for all of a resource. */
  types?: string[];
  /** A resource, such as "pet/17". */
  subject?: string;
  /** A pet with its photos and orders; not with `subject`. */
  petId?: number;
}
