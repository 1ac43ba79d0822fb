// What the errors of fetch mean. Node and Bun give them codes, Deno a text, browsers neither.

const notConnected = /ECONNREFUSED|E(HOST|NET)UNREACH|ENOTFOUND|EAI_AGAIN|CONNECT_TIMEOUT|ConnectionRefused|FailedToOpenSocket/;
const permanent = /ENOTFOUND|EPROTO|CERT|ERR_(TLS|SSL)|UNABLE_TO/;

/** The codes of an error and of its cause. */
function codesOf(error: any): string {
  return `${error?.code} ${error?.cause?.code}`;
}

/** Whether there certainly was no connection, so that nothing can have been sent. */
export function isNotConnected(error: any): boolean {
  // A URL has no space, so this isn't a part of one in Deno's text.
  return notConnected.test(codesOf(error)) || / \(Connect\)/.test(error?.cause?.message);
}

/** Whether a retry would fail in the same way. */
export function isPermanent(error: unknown): boolean {
  return permanent.test(codesOf(error));
}
