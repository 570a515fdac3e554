/** Refusals for size, the same on every listener. */
import { Fault } from "../domain/fault.js";
import { LIMITS } from "../domain/limits.js";

/** `actual` in bytes, if anybody knows it. */
export function messageTooLarge(which: "message" | "answer", actual: number | undefined): Fault {
  const limit = String(LIMITS.messageBytes);
  const size = actual === undefined ? "is larger than" : `has ${actual} bytes, which is more than`;
  const advice = which === "answer" ? "ask for a smaller page" : "send it in parts";
  const metadata = { limit, ...(actual !== undefined && { actual: String(actual) }), part: "message" };
  const message = `the ${which} ${size} the ${limit} bytes that one message may have: ${advice}`;
  return new Fault("MESSAGE_TOO_LARGE", message, { metadata });
}

/** `actual` counted as HTTP/2 counts: each entry costs 32 bytes beside its text. */
export function metadataTooLarge(actual: number): Fault {
  const limit = LIMITS.metadataBytes;
  const message = `the call's metadata has ${actual} bytes, at most ${limit} are taken: send less`;
  return new Fault("MESSAGE_TOO_LARGE", message, {
    metadata: { limit: String(limit), actual: String(actual), part: "metadata" },
  });
}
