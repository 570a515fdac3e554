/** Toolsets as transports see them: plain values in and out, `Fault` thrown. */
import type { Principal } from "../../domain/identity.js";

export interface Toolset {
  readonly handle: string;
  readonly toolIds: readonly string[];
  readonly facts: ReadonlyMap<string, string>;
  /** Changes with tools, facts and idle time; not with a mere use. */
  readonly etag: string;
  readonly idleMs: number;
  /** ms since the epoch, as the others. */
  readonly expiresAtMs: number;
  readonly createdAtMs: number;
}

export interface CreateToolset {
  /** Empty = default. */
  readonly namespace: string;
  readonly toolIds: readonly string[];
  readonly facts: ReadonlyMap<string, string>;
  /** Undefined = LIMITS.toolsetIdleDefaultMs. */
  readonly idleMs: number | undefined;
}

export interface ToolsetName {
  /** Empty = default. */
  readonly namespace: string;
  readonly handle: string;
}

export interface UpdateToolset extends ToolsetName {
  /** Empty = whatever is there. */
  readonly etag: string;
  /** Undefined leaves them as they are, as below. */
  readonly toolIds: readonly string[] | undefined;
  readonly setFacts: ReadonlyMap<string, string>;
  readonly removeFacts: readonly string[];
  readonly idleMs: number | undefined;
}

/**
 * All reject with Fault INVALID_REQUEST with every violation, STORE_UNAVAILABLE and STORE_FULL; all but `create` and `remove` with
 * NOT_FOUND, in one text whether the toolset never was, has expired or is another's. Without a caller, the caller is everybody.
 */
export interface ToolsetsApi {
  /** Rejects with Fault QUOTA_EXCEEDED. */
  create(input: CreateToolset, caller?: Principal): Promise<Toolset>;
  /** `touch` counts as a use: its idle time begins anew. */
  get(name: ToolsetName & { readonly touch: boolean }, caller?: Principal): Promise<Toolset>;
  /** Rejects with Fault ETAG_MISMATCH and WRITE_CONFLICT. */
  update(input: UpdateToolset, caller?: Principal): Promise<Toolset>;
  /** Answers whether it was there. Rejects with Fault ETAG_MISMATCH and WRITE_CONFLICT. */
  remove(name: ToolsetName & { readonly etag: string }, caller?: Principal): Promise<boolean>;
}
