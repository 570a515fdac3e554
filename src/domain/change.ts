import type { Availability, ServerHeader, ServerRecord, Tool } from "./server.js";
import { compareText } from "./ids.js";
import { sameOverlay } from "./overlay.js";
import { sameQuarantine } from "./quarantine.js";

/** Why a revision was made. */
export type Cause =
  | "register"
  | "deregister"
  | "expire"
  | "listing"
  | "condition"
  | "learned"
  | "isolate"
  | "resume"
  | "overlay"
  | "quarantine"
  | "approve";

/** What one revision did to one tool. Whole values, so that events need no other state (P4). */
export interface ToolChange {
  readonly name: string;
  readonly before?: Tool;
  readonly after?: Tool;
}

/** The body of one log entry: one server's step from one state to the next. */
export interface Change {
  readonly namespace: string;
  readonly serverId: string;
  readonly cause: Cause;
  /** After; null when the server is gone. */
  readonly header: ServerHeader | null;
  /** In name order. */
  readonly tools: readonly ToolChange[];
  readonly availabilityBefore: Availability | null;
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.byteLength === b.byteLength && Buffer.compare(a, b) === 0;
}

export function sameTool(a: Tool, b: Tool): boolean {
  return sameListed(a, b) && sameOverlay(a.overlay?.overlay, b.overlay?.overlay) && sameQuarantine(a.quarantine, b.quarantine);
}

/** Whether lists and watches show the same of tools that they show: a trial of another label shows in neither. */
export function sameListed(a: Tool, b: Tool): boolean {
  return sameBytes(a.stub, b.stub) && a.digestDeclared === b.digestDeclared;
}

/** Tool changes between two name-ordered lists, in name order. */
export function diffTools(before: readonly Tool[], after: readonly Tool[]): ToolChange[] {
  const out: ToolChange[] = [];
  let i = 0;
  let j = 0;
  while (i < before.length || j < after.length) {
    const a = before[i];
    const b = after[j];
    const order = a && b ? compareText(a.name, b.name) : a ? -1 : 1;
    if (order < 0 && a) {
      out.push({ name: a.name, before: a });
      i++;
    } else if (order > 0 && b) {
      out.push({ name: b.name, after: b });
      j++;
    } else if (a && b) {
      if (!sameTool(a, b)) out.push({ name: a.name, before: a, after: b });
      i++;
      j++;
    }
  }
  return out;
}

/** Applies tool changes to a name-ordered list. */
export function applyTools(tools: readonly Tool[], changes: readonly ToolChange[]): readonly Tool[] {
  if (changes.length === 0) return tools;
  const out: Tool[] = [];
  let j = 0;
  for (const tool of tools) {
    for (let c = changes[j]; c && compareText(c.name, tool.name) < 0; c = changes[++j]) if (c.after) out.push(c.after);
    const c = changes[j];
    if (c && c.name === tool.name) {
      if (c.after) out.push(c.after);
      j++;
    } else out.push(tool);
  }
  for (let c = changes[j]; c; c = changes[++j]) if (c.after) out.push(c.after);
  return out;
}

/** The record after a change at a revision; undefined when the server is gone. */
export function applyChange(
  record: ServerRecord | undefined,
  change: Change,
  revision: number,
): ServerRecord | undefined {
  if (!change.header) return undefined;
  return {
    revision,
    header: stampInstances(change.header, revision),
    tools: applyTools(record?.tools ?? [], change.tools),
  };
}

/** An instance whose revision is 0 was registered by the change that carries it. */
export function stampInstances(header: ServerHeader, revision: number): ServerHeader {
  if (header.instances.every((i) => i.revision !== 0)) return header;
  return { ...header, instances: header.instances.map((i) => (i.revision === 0 ? { ...i, revision } : i)) };
}
