// What the errors of fetch mean. Node gives them codes, Bun others, and browsers none.

const notConnected = /ECONNREFUSED|E(HOST|NET)UNREACH|ENOTFOUND|EAI_AGAIN|CONNECT_TIMEOUT|ConnectionRefused|FailedToOpenSocket/;
const permanent = /ENOTFOUND|EPROTO|CERT|ERR_(TLS|SSL)|UNABLE_TO/;

/** The codes of an error and of its cause. */
function codesOf(error: any): string {
  return `${error?.code} ${error?.cause?.code}`;
}

/** Whether there certainly was no connection, so that nothing can have been sent. */
export function isNotConnected(error: unknown): boolean {
  return notConnected.test(codesOf(error));
}

/** Whether a retry would fail in the same way. */
export function isPermanent(error: unknown): boolean {
  return permanent.test(codesOf(error));
}
