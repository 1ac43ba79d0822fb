import type { Call } from "./call.js";
import { AnimalStoreError, InvalidArgumentError } from "./errors.js";
import { paramOf } from "./headers.js";
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

export type Query = Record<string, string | number | number[] | undefined>;

/** Makes a query string. Values that are undefined or empty are left out. */
export function queryOf(values: Query = {}): string {
  const given = Object.entries(values).filter(([, value]) => String(value ?? "") !== "") as [string, string][];
  const query = String(new URLSearchParams(given));
  return query && "?" + query;
}

/**
 * Iterates over the entries of all pages. follow returns the path of the page after one,
 * "" after the last, or an error that comes after the page's entries.
 */
async function* pages<T>(transport: Transport, call: Call, options: CallOptions, scope: Scope, follow: (next: string, at: string) => string | Error): AsyncGenerator<T, void, undefined> {
  let page = options;
  for (let at = call.path; at !== ""; ) {
    const { value, next } = await transport.do({ ...call, path: at }, page, scope);
    const following = follow(next, at);
    yield* value as T[];
    if (following instanceof Error) {
      throw following;
    }
    at = following;
    // The conditions only apply to the first page.
    const { ifMatch, ifNoneMatch, ...others } = options;
    page = others;
  }
}

/** Iterates over a list. It requests a page when its first entry is needed. */
export async function* list(transport: Transport, { query, check, ...others }: Call, options: CallOptions = {}): AsyncGenerator<any, void, undefined> {
  const scope = new Scope(options);
  const { pageSize = maxPageSize, ...filters } = query!;
  try {
    const path = others.path + queryOf({ ...filters, limit: pageSize, cursor: options.cursor });
    const call: Call = { ...others, path, check: (value) => Array.isArray(value) && value.every(check!) };
    yield* pages(transport, call, options, scope, (next, at) => {
      if (next === at) {
        throw brokenLink(transport, call, "the list's link to the next page leads to the same page");
      }
      return options.onePage ? "" : next;
    });
  } finally {
    scope.close();
  }
}

function brokenLink(transport: Transport, { operation, path }: Call, message: string): AnimalStoreError {
  return new AnimalStoreError(message, { operation, request: "GET " + transport.base.href + path });
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

function areEvents(value: Event[]): boolean {
  return Array.isArray(value) && value.every((e) => e?.id >= 1 && e.type && e.data && typeof e.data === "object");
}

/** The parameters of a request for events. */
function eventsQuery(operation: string, q: EventsQuery, limit: number): Query {
  if ([q.after, q.latest, q.before, q.newest].filter(Boolean).length > 1) {
    throw new InvalidArgumentError("only one of after, latest, before and newest can be set", { operation });
  }
  return {
    limit,
    type: q.types?.join(),
    subject: q.subject,
    after: q.latest ? "latest" : q.after || "",
    before: q.newest ? "latest" : q.before || "",
  };
}

function eventsCall(operation: string, query: Query, endless: boolean): Call {
  const wait = query.wait ? eventsWait * 1000 : 0;
  return { operation, method: "GET", path: "/events" + queryOf(query), endless, wait, check: areEvents };
}

/** Iterates over the events so far, or with follow also over later ones, without end. */
export async function* eventsOf(transport: Transport, operation: string, q: EventsQuery, follow: boolean, options: CallOptions): AsyncGenerator<Event, void, undefined> {
  const query = eventsQuery(operation, q, maxPageSize);
  const back = query.before !== "";
  if (follow && back) {
    throw new InvalidArgumentError("before and newest read backwards, so they can't be followed", { operation });
  }
  const scope = new Scope(options);
  try {
    if (q.latest) {
      // If the first page itself were requested with after=latest and the response were
      // lost, the retry would miss the events in between.
      query.after = (await eventPage(transport, operation, { latest: true }, 1, options, follow, scope)).next;
    }
    const call = eventsCall(operation, follow ? { ...query, wait: eventsWait } : query, follow);
    yield* pages<Event>(transport, call, options, scope, (next, at) => {
      if (next === "" && !back) {
        return noNextEvents(transport, call);
      }
      return !follow && !back && next === at ? "" : next;
    });
  } finally {
    scope.close();
  }
}

function noNextEvents(transport: Transport, call: Call): AnimalStoreError {
  return brokenLink(transport, call, "the response has no link to the next events");
}

/** A page of events, and the id to continue after, or before when reading backwards. */
export interface EventPage {
  events: Event[];
  /** 0 when reading backwards and the oldest kept event has been reached. */
  next: number;
}

/** Requests one page of events. */
export async function eventPage(transport: Transport, operation: string, q: EventsQuery, limit: number, options?: CallOptions, endless = false, scope?: Scope): Promise<EventPage> {
  const query = eventsQuery(operation, q, limit);
  const call = eventsCall(operation, query, endless);
  const { value, next } = await transport.do(call, options, scope);
  const id = paramOf(next, query.before ? "before" : "after");
  if (id === null && !(query.before && next === "")) {
    throw noNextEvents(transport, call);
  }
  return { events: value, next: Number(id) };
}
