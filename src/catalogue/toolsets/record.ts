/** A toolset as its note holds it: JSON, with what a newer version added kept as it is. */
import { Fault } from "../../domain/fault.js";

const FORMAT = 1;

export interface ToolsetRecord {
  /** Id of the principal who created it. */
  readonly owner: string;
  readonly toolIds: readonly string[];
  readonly facts: ReadonlyMap<string, string>;
  /** Grows with each change of tools, facts or idle time. */
  readonly changes: number;
  readonly idleMs: number;
  readonly createdAtMs: number;
  /** The store ends it then, by its own clock. */
  readonly expiresAtMs: number;
  /** Where it is counted, and until when: never before it expires. `undefined` for a principal that is not counted. */
  readonly counted: {
    readonly untilMs: number;
    readonly ofPrincipal: number | undefined;
    readonly ofNamespace: number;
  };
  /** Whatever else the note holds. */
  readonly beyond: Readonly<Record<string, unknown>>;
}

export function encodeRecord(record: ToolsetRecord): Uint8Array {
  const { beyond, facts, ...known } = record;
  return new TextEncoder().encode(JSON.stringify({ ...beyond, format: FORMAT, ...known, facts: [...facts] }));
}

/** Throws Fault NOT_READY for a note that only a newer replica can read. */
export function decodeRecord(bytes: Uint8Array): ToolsetRecord {
  const { format, facts, ...rest } = JSON.parse(new TextDecoder().decode(bytes)) as Stored;
  if (format > FORMAT)
    throw new Fault("NOT_READY", `this toolset has format ${format}, and this replica reads format ${FORMAT}: ask a newer one`, { retryAfterMs: 500 });
  const { owner, toolIds, changes, idleMs, createdAtMs, expiresAtMs, counted, ...beyond } = rest;
  return { owner, toolIds, facts: new Map(facts), changes, idleMs, createdAtMs, expiresAtMs, counted, beyond };
}

type Stored = Omit<ToolsetRecord, "facts" | "beyond"> & {
  readonly format: number;
  readonly facts: readonly (readonly [string, string])[];
};
