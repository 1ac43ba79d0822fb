import type { Call } from "./call.js";
import { knownError } from "./errors.js";
import { eventPage, eventsOf, list, queryOf, type EventPage, type EventsQuery } from "./lists.js";
import { isPet, operations, type Operations } from "./operations.js";
import type { CallOptions, ClientOptions, RateLimit } from "./options.js";
import { newTransport, type Transport } from "./transport.js";
import type * as api from "./types.js";

/**
 * Calls one deployment with one API key. There is one method for every operation of the
 * API, with the operation's name. Create one client per key and share it: only then does
 * it know about all requests that count against the key.
 */
export class Client {
  readonly #transport: Transport;

  /**
   * @param baseURL Such as "https://pets.example" or "http://127.0.0.1:8080/v1": the
   * version at the end is optional. Nothing is sent yet, so a wrong key is noticed only in
   * the first call.
   */
  constructor(baseURL: string, apiKey: string, options: ClientOptions = {}) {
    this.#transport = newTransport(baseURL, apiKey, options);
  }

  /** The URL of the API, including /v1. */
  get baseURL(): string {
    return this.#transport.base.href;
  }

  /** The rate limit headers of the latest response that had them. It doesn't send a request. */
  get rateLimit(): RateLimit | undefined {
    return this.#transport.gate.seen();
  }

  // The methods of Operations.
  static {
    for (const [operation, [request, check, input, more]] of Object.entries(operations)) {
      const [template, method = "GET"] = request.split(" ").reverse() as [string, Call["method"]?];
      (this.prototype as any)[operation] = function (this: Client, ...args: any[]) {
        const path = template.replace(/{}/g, () => encodeURIComponent(args.shift()));
        const call: Call = { operation, method, path, check, ...more, ...input?.(args.shift()) };
        return call.list ? list(this.#transport, call, args[0]) : send(this.#transport, call, args[0]);
      };
    }
  }

  /**
   * Returns one pet by its id. The error has code pet_not_found if it doesn't exist. It
   * reads the list, which replaces `getPet`, so its ETag can't be used for `ifMatch`.
   */
  async findPet(petId: number, options: CallOptions = {}): Promise<api.Pet> {
    const operation = "findPet";
    if (petId > 0) {
      // The list refuses other ids, which no pet has.
      for await (const pet of list(this.#transport, { operation, method: "GET", path: "/pets", query: { id: petId }, check: isPet }, options)) {
        return pet;
      }
    }
    throw knownError("pet_not_found", `there is no pet with id ${petId}`, { operation });
  }

  /**
   * Lists the events so far, oldest first, and ends with the newest. `events` also waits
   * for later ones. With `before` or `newest` it lists them newest first and ends with the
   * oldest kept event.
   */
  listEvents(query: EventsQuery = {}, options: CallOptions = {}): AsyncGenerator<api.Event, void, undefined> {
    return eventsOf(this.#transport, "listEvents", query, false, options);
  }

  /**
   * Follows the events of the store, oldest first. The loop has no end: it waits for the
   * next event. It stops when you leave it, when `signal` is aborted, or after an error
   * that a retry can't fix. After any other failure it resumes where it was, however long
   * that takes, so no event is skipped or repeated.
   *
   * The error has code events_expired if the events after this position are no longer
   * kept: rebuild from the lists whatever you built from earlier events.
   *
   * The service responds as soon as there is an event, or after 30 seconds without one.
   * Each response counts against the limits, at least two a minute.
   */
  events(query: EventsQuery = {}, options: CallOptions = {}): AsyncGenerator<api.Event, void, undefined> {
    return eventsOf(this.#transport, "events", query, true, options);
  }

  /** Makes one request for events, for programs that show one page at a time: at most limit events, 1 to 100. */
  listEventPage(query: EventsQuery, limit: number, options?: CallOptions): Promise<EventPage> {
    return eventPage(this.#transport, "listEvents", query, limit, options);
  }

  /** Returns the id of the newest event, or 0 if there is none. Later events come after it. */
  async latestEventId(options?: CallOptions): Promise<number> {
    return (await eventPage(this.#transport, "latestEventId", { latest: true }, 1, options)).next;
  }
}

export interface Client extends Operations {}

async function send(transport: Transport, call: Call, options?: CallOptions): Promise<any> {
  const { value } = await transport.do({ ...call, path: call.path + queryOf(call.query) }, options);
  return call.result ? value[call.result] : value;
}
