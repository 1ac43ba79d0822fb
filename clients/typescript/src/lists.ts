import type { Call, Outcome } from "./call.js";
import { isEvent } from "./checks.js";
import { AnimalStoreError, InvalidArgumentError } from "./errors.js";
import { paramOf } from "./headers.js";
import { checkUnknown, type CallOptions } from "./options.js";
import { withQuery, type QueryValues } from "./paths.js";
import type { EventsQuery, PageQuery } from "./queries.js";
import { Scope } from "./scope.js";
import type { Transport } from "./transport.js";
import type { Event } from "./types.js";

export const maxPageSize = 100;

/**
 * Iterates over the entries of all pages. follow returns the path of the page after one,
 * "" after the last, or an error that comes after the page's entries.
 */
async function* pages<T>(transport: Transport, call: Call<T[]>, options: CallOptions, scope: Scope, follow: (next: string, at: string, attempts: number) => string | Error): AsyncGenerator<T, void, undefined> {
  let page = options;
  for (let at = call.path; at !== ""; ) {
    const { value, next, attempts } = await transport.do({ ...call, path: at }, page, scope);
    const following = follow(next, at, attempts);
    yield* value;
    if (following instanceof Error) {
      throw following;
    }
    at = following;
    // The conditions only apply to the first page.
    const { ifMatch, ifNoneMatch, ...others } = options;
    page = others;
  }
}

/** A list of the API, and the filters for its entries. */
interface List<T> {
  operation: string;
  path: string;
  /** What the caller asked for. */
  query: PageQuery;
  /** The filters that the list has, and their parameters if they have another name. */
  filters?: Record<string, string>;
  /** Whether an entry is plausible. */
  check: (value: any) => value is T;
}

/** Iterates over a list. It requests a page when its first entry is needed. */
export async function* list<T>(transport: Transport, { operation, path, query, filters = {}, check }: List<T>, options: CallOptions = {}): AsyncGenerator<T, void, undefined> {
  const { pageSize = maxPageSize, ...given } = query;
  const values: QueryValues = { limit: pageSize, cursor: options.cursor };
  for (const [name, value] of Object.entries(given as QueryValues)) {
    if (!(name in filters)) {
      checkUnknown({ [name]: value }, { operation });
    }
    if (Array.isArray(value) && !value.every(Number.isSafeInteger)) {
      throw new InvalidArgumentError(`${name} must be integers`, { operation });
    }
    values[filters[name] || name] = value;
  }
  const call: Call<T[]> = { operation, method: "GET", path: withQuery(path, values), page: true, check: arrayOf(check) };
  const scope = new Scope(options);
  try {
    yield* pages(transport, call, options, scope, (next, at, attempts) => {
      if (next === at) {
        throw brokenLink(transport, call, attempts, "the list's link to the next page leads to the same page");
      }
      return options.onePage ? "" : next;
    });
  } finally {
    scope.close();
  }
}

/** Checks every entry of a list. */
export function arrayOf<T>(check: (value: any) => value is T) {
  return (value: any): value is T[] => Array.isArray(value) && value.every(check);
}

function brokenLink(transport: Transport, { operation, path }: Call<unknown>, attempts: number, message: string): AnimalStoreError {
  return new AnimalStoreError(message, { operation, attempts, request: "GET " + transport.base.href + path });
}

/** The parameters of a request for events. */
export function eventsQuery(operation: string, q: EventsQuery, limit?: number): QueryValues {
  const { after, latest, before, newest, since, types, subject, petId, ...unknown } = q;
  checkUnknown(unknown, { operation });
  if ([after, latest, before, newest].filter(Boolean).length > 1) {
    throw new InvalidArgumentError("only one of after, latest, before and newest can be set", { operation });
  }
  if (since && (after !== undefined || latest)) {
    throw new InvalidArgumentError("since can't be used with after or latest", { operation });
  }
  return {
    limit,
    type: types?.join(),
    subject,
    petId,
    after: latest ? "latest" : after || "",
    before: newest ? "latest" : before || "",
    since: since ?? "",
  };
}

export function eventsCall(operation: string, query: QueryValues): Call<Event[]> {
  return { operation, method: "GET", path: withQuery("/events", query), check: arrayOf(isEvent) };
}

/** Iterates over the events so far. */
export async function* listEvents(transport: Transport, q: EventsQuery, options: CallOptions = {}): AsyncGenerator<Event, void, undefined> {
  const operation = "listEvents";
  const query = eventsQuery(operation, q, maxPageSize);
  const back = query.before !== "";
  const scope = new Scope(options);
  try {
    if (q.latest) {
      query.after = await latestId(transport, operation, options, scope);
    }
    const call = eventsCall(operation, query);
    yield* pages(transport, call, options, scope, (next, at, attempts) => {
      if (next === "" && !back) {
        return noNextEvents(transport, call, attempts);
      }
      return !back && next === at ? "" : next;
    });
  } finally {
    scope.close();
  }
}

function noNextEvents(transport: Transport, call: Call<unknown>, attempts: number): AnimalStoreError {
  return brokenLink(transport, call, attempts, "the response has no link to the next events");
}

/** The id in the link of a page to the next events; 0 if the oldest kept event has been reached. */
export function nextId(transport: Transport, call: Call<unknown>, { next, attempts }: Outcome<unknown>, direction: "after" | "before" = "after"): number {
  const id = paramOf(next, direction);
  if (id === null && !(direction === "before" && next === "")) {
    throw noNextEvents(transport, call, attempts);
  }
  return Number(id);
}

/**
 * Requests the id of the newest event. If events themselves were requested with
 * after=latest and the response were lost, the retry would miss the events in between.
 */
export async function latestId(transport: Transport, operation: string, options?: CallOptions, scope?: Scope, endless = false): Promise<number> {
  const call = { ...eventsCall(operation, { after: "latest", limit: 1 }), endless };
  return nextId(transport, call, await transport.do(call, options, scope));
}

/** A page of events, and the id to continue after, or before when reading backwards. */
export interface EventPage {
  events: Event[];
  /** 0 when reading backwards and the oldest kept event has been reached. */
  next: number;
}

/** Requests one page of events. */
export async function eventPage(transport: Transport, q: EventsQuery, limit: number, options?: CallOptions): Promise<EventPage> {
  const operation = "listEvents";
  const query = eventsQuery(operation, q, limit);
  const call = eventsCall(operation, query);
  const page = await transport.do(call, options);
  return { events: page.value, next: nextId(transport, call, page, query.before ? "before" : "after") };
}
