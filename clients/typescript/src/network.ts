// What the errors of fetch mean. Node gives them codes, Bun others, and browsers none.

const notConnected = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
  "ConnectionRefused",
  "FailedToOpenSocket",
]);

const permanent = /^(ENOTFOUND|CERT_.*|ERR_TLS_.*|ERR_SSL_.*|DEPTH_ZERO_.*|SELF_SIGNED_.*|UNABLE_TO_.*|EPROTO)$/;

/** The codes of an error and of its causes. */
function codesOf(error: unknown): string[] {
  const codes: string[] = [];
  for (let e: any = error; e && codes.length < 10; e = e.cause) {
    codes.push(typeof e.code === "string" ? e.code : "");
  }
  return codes;
}

/** Whether there certainly was no connection, so that nothing can have been sent. */
export function isNotConnected(error: unknown): boolean {
  return codesOf(error).some((code) => notConnected.has(code));
}

/** Whether a retry would fail in the same way. */
export function isPermanent(error: unknown): boolean {
  return codesOf(error).some((code) => permanent.test(code));
}
