/**
 * Reads a stream. It stops once it has read more than `most` bytes, or at an error, which it
 * returns with the content before it.
 */
export async function readAll(open: () => ReadableStream<Uint8Array<ArrayBuffer>> | null | undefined, most: number): Promise<[content: Blob, error?: unknown]> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let left = most;
  try {
    const reader = open()?.getReader();
    for (let part; left >= 0 && (part = await reader?.read())?.value; left -= part.value.length) {
      chunks.push(part.value);
    }
    void reader?.cancel().catch(() => {});
  } catch (error) {
    return [new Blob(chunks), error ?? "unknown"];
  }
  return [new Blob(chunks)];
}
