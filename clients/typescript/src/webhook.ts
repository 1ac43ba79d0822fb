import type { WebhookMessage } from "./types.js";

/** The reasons why a webhook is refused. */
export type WebhookReason = "no_secret" | "invalid_secret" | "missing_header" | "invalid_header" | "too_old" | "too_new" | "no_match" | "invalid_body";

/** A webhook that isn't genuine, or that can't be verified. */
export class WebhookError extends Error {
  static {
    this.prototype.name = "WebhookError";
  }

  /** @internal */
  constructor(readonly reason: WebhookReason) {
    super("the webhook is refused: " + reason);
  }
}

/** The headers of a request: a Headers object, or an object like the one of Node's http. */
export type WebhookHeaders = { get(name: string): string | null } | Record<string, string | string[] | undefined>;

/**
 * How far a webhook's timestamp may be from the receiver's clock, in seconds, so that a
 * recorded webhook can't be replayed later.
 */
export const webhookTolerance = 300;

/**
 * Checks that a webhook was sent by someone who knows the secret, within webhookTolerance
 * of now, and returns its content. It throws a WebhookError if not.
 *
 * @param secrets The secret of the webhook, or several of which one must match: for a
 * receiver of several webhooks, or while an old secret is replaced by a new one.
 * @param body The request's body exactly as received, not decoded and encoded again.
 * @param now The time, by default the current one.
 */
export async function verifyWebhook(secrets: string | string[], headers: WebhookHeaders, body: string | Uint8Array<ArrayBuffer>, now: Date = new Date()): Promise<WebhookMessage> {
  const keys = [secrets].flat().map(keyOf);
  if (keys.length === 0) {
    throw new WebhookError("no_secret");
  }
  const [id, timestamp, signatures] = ["id", "timestamp", "signature"].map((name) => {
    const value = headerOf(headers, "webhook-" + name);
    if (value === "") {
      throw new WebhookError("missing_header");
    }
    return value;
  }) as [string, string, string];
  checkTime(timestamp, now);
  const signed = await new Blob([`${id}.${timestamp}.`, body]).arrayBuffer();
  for (const key of keys) {
    const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    for (const signature of signatures.split(/\s+/)) {
      // Signatures of other versions are skipped.
      const value = signature.startsWith("v1,") ? decodeBase64(signature.slice(3)) : undefined;
      // crypto.subtle compares in constant time.
      if (value !== undefined && (await crypto.subtle.verify("HMAC", imported, value, signed))) {
        return messageIn(body);
      }
    }
  }
  throw new WebhookError("no_match");
}

function messageIn(body: string | Uint8Array<ArrayBuffer>): WebhookMessage {
  try {
    const message = JSON.parse(typeof body === "string" ? body : new TextDecoder().decode(body));
    if (message.type && message.data) {
      return message;
    }
  } catch {
    // refused below
  }
  throw new WebhookError("invalid_body");
}

function keyOf(secret: string): Uint8Array<ArrayBuffer> {
  const key = decodeBase64(secret.replace(/^whsec_/, ""));
  // Anybody can sign with an empty key.
  if (key === undefined || key.length === 0) {
    throw new WebhookError("invalid_secret");
  }
  return key;
}

function headerOf(headers: WebhookHeaders, name: string): string {
  if (typeof headers.get === "function") {
    return headers.get(name) ?? "";
  }
  for (const [key, value] of Object.entries(headers)) {
    if (key.toLowerCase() === name) {
      return [value].flat()[0] ?? "";
    }
  }
  return "";
}

function checkTime(timestamp: string, now: Date): void {
  // A number that doesn't fit into 64 bits isn't from the server.
  const seconds = /^-?\d{1,19}$/.test(timestamp) ? Number(timestamp) : NaN;
  if (!(Math.abs(seconds) <= 2 ** 63)) {
    throw new WebhookError("invalid_header");
  }
  const distance = seconds - Math.floor(now.getTime() / 1000);
  if (distance < -webhookTolerance) {
    throw new WebhookError("too_old");
  }
  if (distance > webhookTolerance) {
    throw new WebhookError("too_new");
  }
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  // atob also accepts text without padding, and white space.
  if (text.length % 4 !== 0 || /\s/.test(text)) {
    return undefined;
  }
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
