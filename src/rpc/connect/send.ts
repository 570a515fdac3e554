/** Writes an answer at the pace at which its caller reads. */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";

/** Resolves when all is written or nobody reads any more. */
export async function sendAnswer(answer: UniversalServerResponse, response: ServerResponse): Promise<void> {
  const parts = answer.body?.[Symbol.asyncIterator]();
  try {
    let part = await parts?.next();
    if (response.destroyed) return;
    // Headers are written after the first part exists: until then the method may add some.
    response.writeHead(answer.status, Object.fromEntries(answer.header ?? []));
    for (; part && part.done !== true && !response.destroyed; part = await parts?.next()) {
      if (!response.write(part.value) && !response.destroyed) await drained(response);
    }
    if (!response.destroyed) response.end();
  } finally {
    await parts?.return?.();
  }
}

async function drained(response: ServerResponse): Promise<void> {
  const over = new AbortController();
  try {
    await Promise.race([once(response, "drain", over), once(response, "close", over)]);
  } finally {
    over.abort();
  }
}
