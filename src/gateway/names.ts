/** The names under which tools of many servers stand in one MCP list, and the way back. */
import { createHash } from "node:crypto";
import { splitToolId } from "../domain/ids.js";

/** What the strictest of the common clients and models takes; MCP itself would take dots and 128 characters. */
const LONGEST = 64;
const PLAIN = /^[A-Za-z0-9_-]+$/;
const HASHED = /_[0-9a-f]{10}$/;
const HASH_DIGITS = 10;

/**
 * `server__tool`, which the first two underscores split; where that would be ambiguous, too long or has other characters, a readable
 * form with a hash of the tool_id behind it. No two tool_ids have one name, and a tool's name never depends on which others there are.
 */
export function exposedName(toolId: string): string {
  const { serverId, toolName } = splitToolId(toolId) ?? { serverId: toolId, toolName: "" };
  const plain = `${serverId}__${toolName}`;
  const splits = !serverId.includes("__") && !serverId.endsWith("_");
  if (splits && PLAIN.test(plain) && plain.length <= LONGEST && !HASHED.test(plain)) return plain;
  const hash = createHash("sha256").update(toolId).digest("hex").slice(0, HASH_DIGITS);
  const readable = plain.replace(/[^A-Za-z0-9_-]/g, "_");
  return `${middleCut(readable, LONGEST - HASH_DIGITS - 1)}_${hash}`;
}

/** Names differ at their ends, so what is too long loses its middle. */
function middleCut(text: string, length: number): string {
  if (text.length <= length) return text;
  const head = Math.ceil((length - 1) / 2);
  return `${text.slice(0, head)}_${text.slice(text.length - (length - 1 - head))}`;
}

/**
 * Which of these tools is meant: by its exposed name, by tool_id, or by the server's own name where only one of them has it. Undefined
 * where none is; `several` where more than one tool has that name.
 */
export function toolMeant(name: string, toolIds: Iterable<string>): { readonly toolId: string } | { readonly several: readonly string[] } | undefined {
  const sameName: string[] = [];
  for (const toolId of toolIds) {
    if (name === toolId || name === exposedName(toolId)) return { toolId };
    if (splitToolId(toolId)?.toolName === name) sameName.push(toolId);
  }
  const [only, ...more] = sameName;
  if (only === undefined) return undefined;
  return more.length === 0 ? { toolId: only } : { several: sameName };
}
