import { createHash } from "node:crypto";
import { compareText, splitToolId } from "../../domain/ids.js";

/** Longest name: what the narrowest provider takes. */
export const NAME_LENGTH = 64;
/** What every provider takes as a name. */
export const NAME_PATTERN = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

/** Hex digits of a hash behind a name; more only where two names would still be one. */
const HASH_DIGITS = [12, 24, 40] as const;
/** Hex digits of a hash behind a property key: it need only be distinct inside one object. */
const KEY_HASH_DIGITS = [8, 16, 40] as const;
const ENDS_IN_HASH = /_(?:[0-9a-f]{12}|[0-9a-f]{24}|[0-9a-f]{40})$/;
/** What is left of a long server_id, so that the tool's own name keeps the room. */
const SERVER_TEXT = 16;

/**
 * Names for tool_ids, each fit for every provider and no two alike. A name follows from its tool_id alone, so it stays
 * the same when other tools come and go: `server__tool` where that can be read back without doubt, else readable text and
 * a hash of the tool_id. A tool_id that finds no free name is missing in the answer.
 */
export function nameTools(toolIds: readonly string[], reserved: readonly string[] = []): Map<string, string> {
  const taken = new Set(reserved);
  const names = new Map<string, string>();
  // Sorted, so that the rare tie is broken alike wherever the tools stand in the list.
  for (const toolId of [...new Set(toolIds)].sort(compareText)) {
    const name = candidates(toolId).find((candidate) => !taken.has(candidate));
    if (name === undefined) continue;
    taken.add(name);
    names.set(toolId, name);
  }
  return names;
}

function candidates(toolId: string): string[] {
  const hash = hexOf(toolId);
  const hashed = HASH_DIGITS.map((digits) => `${readable(toolId, NAME_LENGTH - digits - 1)}_${hash.slice(0, digits)}`);
  const plain = plainName(toolId);
  return plain === undefined ? hashed : [plain, ...hashed];
}

/**
 * `server__tool`, where the first `__` can only be the joint and no hashed name can look the same; otherwise undefined.
 */
function plainName(toolId: string): string | undefined {
  const parts = splitToolId(toolId);
  if (!parts || parts.toolName === "") return undefined;
  const { serverId, toolName } = parts;
  if (serverId.includes("__") || serverId.endsWith("_")) return undefined;
  const name = `${serverId}__${toolName}`;
  return NAME_PATTERN.test(name) && !ENDS_IN_HASH.test(name) ? name : undefined;
}

/** Text for people and models: the hash behind it tells the tools apart. A long tool name loses its middle, not its end. */
function readable(toolId: string, room: number): string {
  const { serverId, toolName } = splitToolId(toolId) ?? { serverId: "", toolName: toolId };
  const tool = cleaned(toolName);
  const joint = serverId === "" ? "" : "__";
  const server = cleaned(serverId).slice(0, Math.max(SERVER_TEXT, room - tool.length - joint.length));
  const start = server === "" ? "" : startedRight(`${server}${joint}`);
  return startedRight(`${start}${withoutMiddle(tool, room - start.length)}`).slice(0, room);
}

function withoutMiddle(text: string, room: number): string {
  if (text.length <= room) return text;
  const head = Math.ceil((room - 1) / 2);
  return `${text.slice(0, head)}_${text.slice(text.length - (room - 1 - head))}`;
}

function cleaned(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9_-]/g, "_");
}

function startedRight(text: string): string {
  return /^[A-Za-z_]/.test(text) ? text : `_${text}`;
}

/** Which property keys a provider takes. */
export interface KeyRule {
  readonly pattern: RegExp;
  readonly length: number;
}

/**
 * What a provider calls the properties of one object: a key that it takes stays, another one becomes readable text with a
 * hash of the key. No two are alike.
 */
export function nameKeys(keys: Iterable<string>, rule: KeyRule | undefined): Map<string, string> {
  const all = [...new Set(keys)];
  const fits = (key: string) => rule === undefined || (rule.pattern.test(key) && key.length <= rule.length);
  const taken = new Set(all.filter(fits));
  const names = new Map<string, string>();
  for (const key of all) {
    const name = fits(key) ? key : keyAlias(key, rule?.length ?? NAME_LENGTH, taken);
    taken.add(name);
    names.set(key, name);
  }
  return names;
}

function keyAlias(key: string, length: number, taken: ReadonlySet<string>): string {
  const hash = hexOf(key);
  const text = startedRight(key.replaceAll(/[^A-Za-z0-9_]/g, "_"));
  const tries = KEY_HASH_DIGITS.map((n) => `${withoutMiddle(text, length - n - 1)}_${hash.slice(0, n)}`);
  const free = tries.find((name) => !taken.has(name));
  if (free !== undefined) return free;
  for (let i = 2; ; i++) {
    const name = `k${i}_${hash.slice(0, 40)}`;
    if (!taken.has(name)) return name;
  }
}

function hexOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
