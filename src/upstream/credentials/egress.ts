/** The way out of requests that show a credential. */
import { type CredentialUse, UpstreamError } from "../../catalogue/upstream-port.js";
import type { Egress, EgressResponse } from "../egress.js";
import { place } from "../failures.js";
import type { Credentials } from "./credentials.js";

/**
 * Adds the credential to every request, after it was judged for that request's own endpoint. A server that repeats the
 * secret in its answer is not listened to: errors, conditions and definitions are made of answers, and others read those.
 */
export function showing(egress: Egress, credentials: Credentials, use: CredentialUse): Egress {
  return {
    refusal: (endpoint) => egress.refusal(endpoint),
    async request(endpoint, request, signal) {
      const { header, text, secret } = await credentials.show(endpoint, use);
      const headers = { ...request.headers, [header]: text };
      return guarded(endpoint, secret, await egress.request(endpoint, { ...request, headers, secret: true }, signal));
    },
    close: () => egress.close(),
  };
}

function guarded(endpoint: string, secret: string, response: EgressResponse): EgressResponse {
  // JSON may write a slash with a backslash before it.
  const spellings = [...new Set([secret, secret.replaceAll("/", "\\/")])].map((text) => Buffer.from(text));
  const overlap = Math.max(...spellings.map(({ length }) => length)) - 1;
  const repeats = (bytes: Buffer): boolean => spellings.some((spelling) => bytes.includes(spelling));
  const refused = (): UpstreamError => {
    response.discard();
    return new UpstreamError("protocol", `${place(endpoint)} repeats the credential in its answer, which is therefore not taken`);
  };
  async function* chunks(limit: number): AsyncGenerator<Buffer> {
    let before: Buffer = Buffer.alloc(0);
    for await (const chunk of response.chunks(limit)) {
      const seen = Buffer.concat([before, chunk]);
      if (repeats(seen)) throw refused();
      before = seen.subarray(Math.max(0, seen.length - overlap));
      yield chunk;
    }
  }
  return {
    status: response.status,
    header(name) {
      const value = response.header(name);
      if (value !== undefined && repeats(Buffer.from(value))) throw refused();
      return value;
    },
    chunks,
    read: async (limit) => {
      const parts: Buffer[] = [];
      for await (const chunk of chunks(limit)) parts.push(chunk);
      return Buffer.concat(parts);
    },
    discard: () => response.discard(),
  };
}
