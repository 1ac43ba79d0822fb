import type { Call, Outcome } from "./call.js";
import { AnimalStoreError, InvalidArgumentError } from "./errors.js";
import type { CallOptions } from "./options.js";
import { Scope } from "./scope.js";
import type { Transport } from "./transport.js";
import type { Event } from "./types.js";

/** The query of a list without filters. */
export interface PageQuery {
  /** The number of entries per page, 1 to 100. By default 100, because every page is a request that counts. */
  pageSize?: number;
}

const maxPageSize = 100;

/** Makes a query string. Values that are undefined are left out. */
export function queryOf(values: Record<string, string | number | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined) {
      query.set(name, String(value));
    }
  }
  const text = query.toString();
  return text === "" ? "" : "?" + text;
}

/** Options without the conditions, which only apply to the first page. */
function withoutConditions(options: CallOptions): CallOptions {
  const { ifMatch, ifNoneMatch, ...rest } = options;
  return rest;
}

/** Iterates over a list. It requests a page when its first entry is needed. */
export async function* list<T>(
  transport: Transport,
  operation: string,
  path: string,
  filters: Record<string, string | number | undefined>,
  pageSize: number | undefined,
  options: CallOptions,
  check: (entry: T) => boolean,
): AsyncGenerator<T, void, undefined> {
  const scope = new Scope(options);
  try {
    let at = path + queryOf({ ...filters, limit: pageSize ?? maxPageSize, cursor: options.cursor || undefined });
    let page = options;
    while (at !== "") {
      const call: Call = { operation, method: "GET", path: at, check: (value) => Array.isArray(value) && value.every(check) };
      const { value, next }: Outcome = await transport.do(call, page, scope);
      if (next === at) {
        throw new AnimalStoreError("the list's link to the next page leads to the same page", originOf(transport, operation, at));
      }
      yield* value as T[];
      at = options.onePage ? "" : next;
      page = withoutConditions(options);
    }
  } finally {
    scope.close();
  }
}

function originOf(transport: Transport, operation: string, path: string) {
  return { operation, request: "GET " + transport.urlOf(path) };
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
  /** Such as "pet.created", or "pet.*" for all of a resource. */
  types?: string[];
  /** A resource, such as "pet/17". */
  subject?: string;
}

/** How many seconds the service waits for an event: the maximum it allows. */
const eventsWait = 30;

function isEvent(e: Event): boolean {
  return e?.id >= 1 && !!e.type && e.data !== null && typeof e.data === "object";
}

function areEvents(value: unknown): boolean {
  return Array.isArray(value) && value.every(isEvent);
}

/** The parameters of a request for events. */
function eventsQuery(operation: string, q: EventsQuery, limit: number): Record<string, string | number | undefined> {
  const given = [q.after !== undefined && q.after !== 0, q.latest, q.before !== undefined && q.before !== 0, q.newest];
  if (given.filter(Boolean).length > 1) {
    throw new InvalidArgumentError("only one of after, latest, before and newest can be set", { operation });
  }
  return {
    limit,
    type: q.types?.join(",") || undefined,
    subject: q.subject || undefined,
    after: q.latest ? "latest" : q.after || undefined,
    before: q.newest ? "latest" : q.before || undefined,
  };
}

/** Iterates over the events so far, or with follow also over later ones, without end. */
export async function* eventsOf(transport: Transport, operation: string, q: EventsQuery, follow: boolean, options: CallOptions): AsyncGenerator<Event, void, undefined> {
  const query = eventsQuery(operation, q, maxPageSize);
  const back = query.before !== undefined;
  if (follow && back) {
    throw new InvalidArgumentError("before and newest read backwards, so they can't be followed", { operation });
  }
  const scope = new Scope(options);
  try {
    if (q.latest) {
      // If the first page itself were requested with after=latest and the response were
      // lost, the retry would miss the events in between.
      query.after = await latestEventId(transport, operation, follow, options, scope);
    }
    let at = "/events" + queryOf({ ...query, wait: follow ? eventsWait : undefined });
    for (;;) {
      const call: Call = { operation, method: "GET", path: at, endless: follow, wait: follow ? eventsWait * 1000 : 0, check: areEvents };
      const { value, next }: Outcome = await transport.do(call, withoutConditions(options), scope);
      yield* value as Event[];
      if (next === "" && back) {
        return;
      }
      if (next === "") {
        throw noNextEvents(transport, operation, at);
      }
      if (!follow && !back && next === at) {
        return;
      }
      at = next;
    }
  } finally {
    scope.close();
  }
}

function noNextEvents(transport: Transport, operation: string, path: string): AnimalStoreError {
  return new AnimalStoreError("the response has no link to the next events", originOf(transport, operation, path));
}

/** The id of the newest event, or 0 if there is none. */
export async function latestEventId(transport: Transport, operation: string, endless: boolean, options: CallOptions, scope: Scope): Promise<number> {
  const call: Call = { operation, method: "GET", path: "/events?after=latest&limit=1", endless, check: areEvents };
  const { next } = await transport.do(call, options, scope);
  const id = parameterOf(next, "after");
  if (id === undefined) {
    throw noNextEvents(transport, operation, call.path);
  }
  return id;
}

function parameterOf(path: string, name: string): number | undefined {
  const value = new URLSearchParams(path.split("?")[1] ?? "").get(name) ?? "";
  return /^\d+$/.test(value) ? Number(value) : undefined;
}

/** A page of events, and the id to continue after, or before when reading backwards. */
export interface EventPage {
  events: Event[];
  /** 0 when reading backwards and the oldest kept event has been reached. */
  next: number;
}

export async function eventPage(transport: Transport, q: EventsQuery, limit: number, options: CallOptions): Promise<EventPage> {
  const operation = "listEvents";
  const query = eventsQuery(operation, q, limit);
  const call: Call = { operation, method: "GET", path: "/events" + queryOf(query), check: areEvents };
  const scope = new Scope(options);
  try {
    const { value, next } = await transport.do(call, options, scope);
    if (query.before !== undefined && next === "") {
      return { events: value, next: 0 };
    }
    const id = parameterOf(next, query.before === undefined ? "after" : "before");
    if (id === undefined) {
      throw noNextEvents(transport, operation, call.path);
    }
    return { events: value, next: id };
  } finally {
    scope.close();
  }
}
