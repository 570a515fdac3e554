/** Bytes with a short text before them: `text:bytes`. The text has no colon. */

const COLON = 0x3a;

export function joinRow(text: string, bytes: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${text}:`), bytes]);
}

/** Splits at the first colon. The bytes are a copy, so that they hold no larger buffer. Throws an Error without a colon. */
export function splitRow(row: Uint8Array): { text: string; bytes: Uint8Array } {
  const at = row.indexOf(COLON);
  if (at < 0) throw new Error("a stored row has no prefix: the store holds what this program did not write");
  return {
    text: Buffer.from(row.buffer, row.byteOffset, at).toString("latin1"),
    bytes: copyBytes(row.subarray(at + 1)),
  };
}

/** An exact copy with its own memory: a view into a socket's or a batch's buffer would keep all of that alive. */
export function copyBytes(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes);
}
