import type { IncomingMessage } from "node:http";
import { LIMITS } from "../../domain/limits.js";

export type Body =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "not-json" }
  | { readonly kind: "too-large"; readonly limitBytes: number }
  | { readonly kind: "gone" };

/** The whole body of a request as JSON, at most as large as a message to the registry. */
export async function readBody(request: IncomingMessage): Promise<Body> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > LIMITS.messageBytes) return { kind: "too-large", limitBytes: LIMITS.messageBytes };
      chunks.push(chunk);
    }
  } catch {
    return { kind: "gone" };
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
    return { kind: "json", value: JSON.parse(text) as unknown };
  } catch {
    return { kind: "not-json" };
  }
}
