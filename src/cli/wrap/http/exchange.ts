import type { IncomingMessage, ServerResponse } from "node:http";
import { memberAt, replaced, slice } from "../json-span.js";
import type { Answer, Link } from "../link.js";
import { SUBSCRIPTION_KEY } from "../link.js";
import { sendJson } from "./guard.js";
import type { Incoming } from "./message.js";
import type { Session } from "./sessions.js";
import { EventStream } from "./sse.js";

/** A request without an answer after this long gets a stream, whose keep-alives hold the connection. */
const PATIENCE_MS = 10_000;

/** Passes one request to the child and its answer back, with what the child says about it in between. */
export async function exchange(
  link: Link,
  message: Incoming,
  http: { readonly request: IncomingMessage; readonly response: ServerResponse },
  session: Session | undefined,
): Promise<void> {
  const { response } = http;
  const streamable = /\btext\/event-stream\b|\*\/\*/.test(http.request.headers.accept ?? "");
  const headers: Record<string, string> = session ? { "mcp-session-id": session.id } : {};
  let stream: EventStream | undefined;
  const open = (): EventStream | undefined => {
    if (!stream && streamable && !response.destroyed) stream = new EventStream(response, headers);
    return stream;
  };
  if (message.progressToken || message.method === "subscriptions/listen") open();
  const patience = setTimeout(open, PATIENCE_MS);
  const token = memberAt(message.bytes, ["params", "_meta", "progressToken"]);
  const { id, answer } = link.request(message.bytes, {
    id: message.id,
    progressToken: token && slice(message.bytes, token),
    onNotification: (notification) => open()?.send(notification),
  });
  const key = message.id.toString();
  session?.open.set(key, id);
  response.once("close", () => {
    // Without a session a closed response is how a client says that it does not wait any more.
    if (!session && !response.writableFinished) link.cancel(id);
  });
  const settled = envelopeOf(message, await answer);
  clearTimeout(patience);
  if (session?.open.get(key) === id) session.open.delete(key);
  if (!stream) return sendJson(response, 200, settled, headers);
  stream.send(settled);
  stream.end();
}

/** The child's `result` or `error`, byte for byte, under the client's own id. */
export function envelopeOf(message: Incoming, answer: Answer): Buffer {
  const head = Buffer.from(`{"jsonrpc":"2.0","id":${message.id.toString()},"${answer.kind}":`);
  return Buffer.concat([head, ownSubscription(message, answer.bytes), Buffer.from("}")]);
}

/** The end of a subscription names it by the request's id, which was ours at the child. */
function ownSubscription(message: Incoming, bytes: Buffer): Buffer {
  if (message.method !== "subscriptions/listen") return bytes;
  const span = memberAt(bytes, ["_meta", SUBSCRIPTION_KEY]);
  return span ? replaced(bytes, span, message.id) : bytes;
}
