import { InvalidArgumentError, knownError, type Origin } from "./errors.js";
import type { Scope } from "./scope.js";
import { readAll } from "./streams.js";

/** A JPEG, PNG or WebP file of at most 10 MiB. The type of a blob doesn't matter. */
export type Picture = Blob | ArrayBuffer | ArrayBufferView<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>;

const maxUpload = 10 << 20;

/** How long the service allows an upload to take, in milliseconds. */
export const uploadTime = 60_000;

/** Reads a whole picture, so that it can be sent again, and finds out its type. */
export async function readPicture(picture: Picture, scope: Scope, origin: Origin): Promise<Blob> {
  const { signal } = scope;
  const [content, error] = await readAll(() => new Response(picture).body?.pipeThrough(new TransformStream(), { signal }), maxUpload);
  if (content.size > maxUpload) {
    throw knownError("payload_too_large", `the picture must have at most ${maxUpload} bytes: make it smaller`, origin);
  }
  if (error) {
    throw signal.aborted ? scope.error(origin) : new InvalidArgumentError(`reading the picture failed: ${error}`, origin, { cause: error });
  }
  const start = String.fromCharCode(...new Uint8Array(await content.slice(0, 12).arrayBuffer()));
  const [type] = Object.entries(formats).find(([, format]) => format.test(start)) ?? [];
  return content.slice(0, content.size, type);
}

/** How files begin. The service refuses others, and says which it accepts. */
const formats = {
  "image/jpeg": /^\xff\xd8\xff/,
  "image/png": /^\x89PNG\r\n\x1a\n/,
  "image/webp": /^RIFF[^]{4}WEBP/,
};
