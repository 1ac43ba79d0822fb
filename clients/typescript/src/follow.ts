import type { Call } from "./call.js";
import { isEvent } from "./checks.js";
import { InvalidArgumentError } from "./errors.js";
import { eventsCall, eventsQuery, latestId, maxPageSize, nextId } from "./lists.js";
import type { CallOptions } from "./options.js";
import { withQuery } from "./paths.js";
import type { EventsQuery } from "./queries.js";
import { maxResponse } from "./response.js";
import { clock, Scope } from "./scope.js";
import type { EventStream, Transport } from "./transport.js";
import type { Event } from "./types.js";

/** How long the service lets a stream be silent, in milliseconds. */
const commentInterval = 15_000;
/** How many seconds the service waits for an event: the maximum it allows. */
const pollWait = 30;
/** How long a follower polls before it tries a stream again, in milliseconds. */
const pollPeriod = 600_000;

/** Follows events by a stream of server-sent events, or by long polls while a stream can't be used. */
export async function* follow(transport: Transport, q: EventsQuery, options: CallOptions = {}): AsyncGenerator<Event, void, undefined> {
  const operation = "events";
  const query = eventsQuery(operation, q);
  if (query.before) {
    throw new InvalidArgumentError("before and newest read backwards, so they can't be followed", { operation });
  }
  const scope = new Scope(options);
  let position = ""; // the id to continue after; "" if that is in the query
  let retry = 0; // the pause between streams that the service asks for
  let breaks = 0; // streams in a row that ended before an event or a comment
  let pollUntil = -Infinity;
  try {
    if (q.latest) {
      query.after = await latestId(transport, operation, options, scope, true);
    }
    for (;;) {
      if (clock() < pollUntil) {
        const place = position ? { after: position, since: "" } : {};
        const page = { ...query, ...place, limit: maxPageSize, wait: pollWait };
        const call = { ...eventsCall(operation, page), endless: true, wait: pollWait * 1000 };
        const events = await transport.do(call, options, scope);
        yield* events.value;
        position = String(nextId(transport, call, events));
        continue;
      }
      const call: Call<EventStream | undefined> = { operation, method: "GET", path: withQuery("/events", query), endless: true, stream: position };
      const { value: stream, attempts } = await transport.do(call, options, scope);
      if (stream) {
        try {
          for await (const block of blocksOf(stream)) {
            const event = parse(block.data);
            if (block.data && !event) {
              break; // it is read again
            }
            if (block.comment || event) {
              breaks = 0;
            }
            retry = block.retry ?? retry;
            position = block.id || position;
            if (event) {
              yield event;
            }
          }
        } catch (error) {
          if (scope.signal.aborted) {
            throw scope.error({ operation, attempts, request: "GET " + transport.base.href + call.path });
          }
        } finally {
          stream.time.close();
        }
      }
      if (!stream || stream.time.timedOut) {
        pollUntil = clock() + pollPeriod;
      } else {
        await transport.pauseStream(call, scope, retry, ++breaks, attempts);
      }
    }
  } finally {
    scope.close();
  }
}

/** What a stream sends up to an empty line. */
interface Block {
  id?: string;
  data?: string;
  retry?: number;
  comment?: boolean;
}

/** Reads a stream. It ends with an error when the connection is lost, or the service is silent for too long. */
async function* blocksOf({ body, time, timeout }: EventStream): AsyncGenerator<Block, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let block: Block = {};
  try {
    for (let limit = timeout; rest.length < maxResponse; limit = timeout + commentInterval) {
      time.restart(limit);
      const { value, done } = await reader.read();
      time.restart(Infinity); // a slow loop is not a silent service
      if (done) {
        return;
      }
      const lines = (rest + decoder.decode(value, { stream: true })).split(/\r?\n/);
      rest = lines.pop()!;
      for (const line of lines) {
        if (line === "") {
          yield block;
          block = {};
          continue;
        }
        const [, field, text] = /^([^:]*):? ?(.*)$/.exec(line) as unknown as [string, string, string];
        if (field === "id") {
          block.id = text;
        } else if (field === "data") {
          block.data = (block.data ?? "") + text + "\n";
        } else if (field === "retry") {
          block.retry = Number(text) || 0;
        } else if (field === "") {
          block.comment = true;
        }
      }
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}

/** Parses an event, or returns undefined if it can't be one. */
function parse(data = ""): Event | undefined {
  try {
    const event: unknown = JSON.parse(data);
    return isEvent(event) ? event : undefined;
  } catch {
    return undefined;
  }
}
