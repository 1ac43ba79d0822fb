import type { Call } from "./call.js";
import { isEvent } from "./checks.js";
import { AnimalStoreError, InvalidArgumentError } from "./errors.js";
import { paramOf } from "./headers.js";
import type { CallOptions } from "./options.js";
import { withQuery, type QueryValues } from "./paths.js";
import type { EventsQuery } from "./queries.js";
import { Scope } from "./scope.js";
import type { Transport } from "./transport.js";
import type { Event } from "./types.js";

const maxPageSize = 100;

/**
 * Iterates over the entries of all pages. follow returns the path of the page after one,
 * "" after the last, or an error that comes after the page's entries.
 */
async function* pages<T>(transport: Transport, call: Call<T[]>, options: CallOptions, scope: Scope, follow: (next: string, at: string) => string | Error): AsyncGenerator<T, void, undefined> {
  let page = options;
  for (let at = call.path; at !== ""; ) {
    const { value, next } = await transport.do({ ...call, path: at }, page, scope);
    const following = follow(next, at);
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
  /** The filters, and optionally the size of a page. */
  query: QueryValues & { pageSize?: number };
  /** Whether an entry is plausible. */
  check: (value: any) => value is T;
}

/** Iterates over a list. It requests a page when its first entry is needed. */
export async function* list<T>(transport: Transport, { operation, path, query, check }: List<T>, options: CallOptions = {}): AsyncGenerator<T, void, undefined> {
  const { pageSize = maxPageSize, ...filters } = query;
  const call: Call<T[]> = {
    operation,
    method: "GET",
    path: withQuery(path, { ...filters, limit: pageSize, cursor: options.cursor }),
    check: arrayOf(check),
  };
  const scope = new Scope(options);
  try {
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

/** Checks every entry of a list. */
function arrayOf<T>(check: (value: any) => value is T) {
  return (value: any): value is T[] => Array.isArray(value) && value.every(check);
}

function brokenLink(transport: Transport, { operation, path }: Call<unknown>, message: string): AnimalStoreError {
  return new AnimalStoreError(message, { operation, request: "GET " + transport.base.href + path });
}

/** How many seconds the service waits for an event: the maximum it allows. */
const eventsWait = 30;

/** The parameters of a request for events. */
function eventsQuery(operation: string, q: EventsQuery, limit: number): QueryValues {
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

function eventsCall(operation: string, query: QueryValues, endless: boolean): Call<Event[]> {
  const wait = query.wait ? eventsWait * 1000 : 0;
  return { operation, method: "GET", path: withQuery("/events", query), endless, wait, check: arrayOf(isEvent) };
}

/** Iterates over the events so far, or with follow also over later ones, without end. */
export async function* eventsOf(transport: Transport, operation: string, q: EventsQuery, follow: boolean, options: CallOptions = {}): AsyncGenerator<Event, void, undefined> {
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
    yield* pages(transport, call, options, scope, (next, at) => {
      if (next === "" && !back) {
        return noNextEvents(transport, call);
      }
      return !follow && !back && next === at ? "" : next;
    });
  } finally {
    scope.close();
  }
}

function noNextEvents(transport: Transport, call: Call<unknown>): AnimalStoreError {
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
