/** What a toolset may hold. Its tools need not exist: they come and go while an agent works. */
import type { Violation } from "../fault.js";
import { SLUG_PATTERN, splitToolId } from "../ids.js";
import { LIMITS } from "../limits.js";
import { nameViolations } from "./names.js";
import { quoted } from "./text.js";

export function checkToolIds(field: string, toolIds: readonly string[]): Violation[] {
  const out: Violation[] = [];
  const { toolsetTools: most } = LIMITS;
  if (toolIds.length > most) out.push({ field, description: `a toolset has at most ${most} tools, ${toolIds.length} were sent` });
  const first = new Map<string, number>();
  toolIds.slice(0, most).forEach((id, i) => {
    const path = `${field}[${i}]`;
    const parts = splitToolId(id);
    if (!parts) {
      out.push({ field: path, description: `server_id/tool_name is expected, not ${quoted(id, 80)}` });
      return;
    }
    out.push(...nameViolations("server_id", path, parts.serverId), ...nameViolations("tool_name", path, parts.toolName));
    const before = first.get(id);
    if (before === undefined) first.set(id, i);
    else out.push({ field: path, description: `${quoted(id, 80)} is ${field}[${before}] already: name each tool once` });
  });
  return out;
}

/** Each fact by itself; how many there may be is judged where it is known what comes of a change. */
export function checkFactNames(field: string, names: readonly string[]): Violation[] {
  return names
    .slice(0, LIMITS.toolsetFacts)
    .filter((name) => !SLUG_PATTERN.test(name))
    .map((name) => ({
      field: `${field}[${quoted(name, 40)}]`,
      description: `is no name of a fact: 1 to ${LIMITS.slugLength} characters of a-z 0-9 first, then also . _ -`,
    }));
}

/** Names of facts that are to go. */
export function checkRemoved(names: readonly string[]): Violation[] {
  const { toolsetFacts: most } = LIMITS;
  const field = "remove_facts";
  const count = { field, description: `a toolset has at most ${most} facts, ${names.length} names were sent` };
  return [...(names.length > most ? [count] : []), ...checkFactNames(field, names)];
}

export function checkFacts(field: string, facts: ReadonlyMap<string, string>): Violation[] {
  const out: Violation[] = [];
  const { toolsetFacts: most, toolsetFactBytes: mostBytes } = LIMITS;
  if (facts.size > most) out.push({ field, description: `a toolset has at most ${most} facts, this would make it ${facts.size}` });
  const encoder = new TextEncoder();
  let bytes = 0;
  for (const [name, value] of facts) bytes += encoder.encode(name).byteLength + encoder.encode(value).byteLength;
  if (bytes > mostBytes)
    out.push({ field, description: `names and values together have at most ${mostBytes} bytes, this would make it ${bytes}` });
  return out;
}

/** Undefined is fine: the default, or what it was. */
export function checkIdle(idleMs: number | undefined): Violation[] {
  const { toolsetIdleMinMs: least, toolsetIdleMaxMs: most } = LIMITS;
  if (idleMs === undefined || (idleMs >= least && idleMs <= most)) return [];
  return [{ field: "idle_ttl", description: `${least / 1_000} s to ${most / 1_000} s, ${idleMs / 1_000} s were sent` }];
}

export function checkHandle(handle: string): Violation[] {
  if (handle === "") return [{ field: "handle", description: "is empty: name the toolset by the handle that CreateToolset answered" }];
  if (handle.length <= LIMITS.tokenLength) return [];
  return [{ field: "handle", description: `at most ${LIMITS.tokenLength} characters are taken, ${handle.length} were sent` }];
}

export function checkEtag(etag: string): Violation[] {
  if (etag.length <= LIMITS.tokenLength) return [];
  return [{ field: "etag", description: `at most ${LIMITS.tokenLength} characters are taken, ${etag.length} were sent` }];
}
