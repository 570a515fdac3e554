import type { ErrorReasonName, StatusName } from "./reasons.js";
import { STATUS_OF } from "./reasons.js";

/** One violated rule of a request: the field's path, and a sentence naming limit and actual value. */
export interface Violation {
  readonly field: string;
  readonly description: string;
}

export interface FaultFacts {
  readonly metadata?: Readonly<Record<string, string>>;
  readonly violations?: readonly Violation[];
  readonly retryAfterMs?: number;
  readonly substitutes?: readonly string[];
  readonly cause?: unknown;
}

/**
 * A failure that a caller is told about. It alone knows its reason, status and facts; transports only translate it.
 * `message` is for the caller; `cause` is for the log and never reaches the wire.
 */
export class Fault extends Error {
  readonly reason: ErrorReasonName;
  readonly status: StatusName;
  readonly metadata: Readonly<Record<string, string>>;
  readonly violations: readonly Violation[];
  readonly retryAfterMs: number | undefined;
  readonly substitutes: readonly string[];

  constructor(reason: ErrorReasonName, message: string, facts: FaultFacts = {}) {
    super(message, { cause: facts.cause });
    this.name = "Fault";
    this.reason = reason;
    this.status = STATUS_OF[reason];
    this.metadata = facts.metadata ?? {};
    this.violations = facts.violations ?? [];
    this.retryAfterMs = facts.retryAfterMs;
    this.substitutes = facts.substitutes ?? [];
  }
}

/** INVALID_ARGUMENT with all violations at once. */
export function invalidRequest(violations: readonly Violation[]): Fault {
  const first = violations[0];
  const more = violations.length > 1 ? ` (and ${violations.length - 1} more)` : "";
  const text = first ? `${first.field}: ${first.description}${more}` : "the request is invalid";
  return new Fault("INVALID_REQUEST", text, { violations });
}

/** The store cannot be reached; nothing was promised. */
export function storeUnavailable(cause: unknown): Fault {
  return new Fault("STORE_UNAVAILABLE", "the store cannot be reached; try again", { retryAfterMs: 1_000, cause });
}

/** Absent, or another tenant's: the same text for both. */
export function notFound(what: "tool" | "server" | "digest", id: string): Fault {
  return new Fault("NOT_FOUND", `no such ${what} in this namespace: ${id}`, { metadata: { [what]: id } });
}

/**
 * One text for a toolset that never was, has expired, is another's or another tenant's. It leaves the handle out: a log holds
 * what callers are told, and a handle may be the only right to its toolset.
 */
export function noSuchToolset(): Fault {
  return new Fault("NOT_FOUND", "no such toolset in this namespace: create one and go on with its handle");
}

/** Why a watcher or token must start over from a snapshot. */
export type RelistCause = "compacted" | "chain" | "ahead";

export function relistRequired(cause: RelistCause): Fault {
  const why = {
    compacted: "the history this token needs is no longer kept",
    chain: "the history this token belongs to is gone",
    ahead: "this token is ahead of the log",
  }[cause];
  return new Fault("RELIST_REQUIRED", `${why}: start again from a snapshot`, { metadata: { cause } });
}
