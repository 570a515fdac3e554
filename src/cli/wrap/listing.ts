import { LIMITS } from "../../domain/limits.js";
import type { Eras } from "./era.js";
import { envelope } from "./era.js";
import { elementsOf, memberAt, membersOf, slice } from "./json-span.js";
import type { Link } from "./link.js";

/** The child's whole tool list: each definition as the bytes that it sent. Rejects when it has none to give. */
export async function listTools(link: Link, eras: Eras): Promise<Buffer[]> {
  const sessions = eras.initialize.kind === "result";
  if (sessions && !memberAt(eras.initialize.bytes, ["capabilities", "tools"])) return [];
  const tools: Buffer[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (let page = 0; page < LIMITS.listingPages; page++) {
    const params = { ...(cursor === undefined ? {} : { cursor }), ...(sessions ? {} : { _meta: envelope() }) };
    const { kind, bytes } = await link.ask("tools/list", params).answer;
    if (kind === "error") throw new Error(`the server answered tools/list with the error ${bytes.toString()}`);
    const members = membersOf(bytes);
    const list = members.get("tools");
    if (!list) throw new Error("the server answered tools/list without tools");
    for (const span of elementsOf(bytes, list)) tools.push(slice(bytes, span));
    const next = members.get("nextCursor");
    const value: unknown = next && JSON.parse(slice(bytes, next).toString());
    if (typeof value !== "string") return tools;
    if (seen.has(value)) throw new Error("the server's tools/list answered the same cursor twice");
    seen.add(value);
    cursor = value;
  }
  throw new Error(`the server's tools/list did not end after ${LIMITS.listingPages} pages`);
}

/** Hears from a server of the 2026-07-28 era that its list changed; the other eras say so unasked. */
export function subscribeToList(link: Link, eras: Eras, onChange: () => void): void {
  if (eras.initialize.kind === "result") return;
  const params = { notifications: { toolsListChanged: true }, _meta: envelope() };
  link.ask("subscriptions/listen", params, {
    onNotification(message) {
      const method = memberAt(message, ["method"]);
      if (method && slice(message, method).toString() === '"notifications/tools/list_changed"') onChange();
    },
  });
}
