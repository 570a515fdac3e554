import { durationMs } from "@bufbuild/protobuf/wkt";
import { LIMITS } from "../../domain/limits.js";
import {
  type BatchGetFullSchemasResponse,
  Freshness as WireFreshness,
  type FullSchema,
  type SchemaError,
  type SchemaResult,
  SchemaView,
} from "../../gen/toolcrib/v1/registry_service_pb.js";
import { RegistryError, registryError } from "../registry-error.js";
import { hasDigest } from "./definition-store.js";
import { type Brought, type Freshness, missing } from "./load.js";

/** Asks a registry for one batch. Rejects with RegistryError. */
export type AskBatch = (
  request: { readonly toolIds: string[]; readonly view: SchemaView; readonly minRevision: string },
  timeoutMs: number,
) => Promise<BatchGetFullSchemasResponse>;

export interface FetchOptions {
  readonly timeoutMs: number;
  /** Empty: whatever the replica has. */
  readonly minRevision: string;
  readonly now: () => number;
}

const FRESHNESS: Readonly<Record<WireFreshness, Freshness>> = {
  [WireFreshness.UNSPECIFIED]: "cached",
  [WireFreshness.LIVE]: "live",
  [WireFreshness.CACHED]: "cached",
  [WireFreshness.STALE]: "stale",
};

/** Definitions from the registry, all batches at the same time; an answer for every tool, and never a rejection. */
export async function fetchDefinitions(ask: AskBatch, toolIds: readonly string[], options: FetchOptions): Promise<Map<string, Brought>> {
  const batches: string[][] = [];
  for (let at = 0; at < toolIds.length; at += LIMITS.batchTools) batches.push(toolIds.slice(at, at + LIMITS.batchTools));
  const answers = await Promise.all(batches.map((ids) => fetchBatch(ask, ids, options)));
  return new Map(answers.flatMap((answer) => [...answer]));
}

/** One batch, and what did not fit into its answer in another. */
async function fetchBatch(ask: AskBatch, toolIds: readonly string[], options: FetchOptions): Promise<Map<string, Brought>> {
  const { now, minRevision } = options;
  const until = now() + options.timeoutMs;
  const brought = new Map<string, Brought>();
  let left = [...toolIds];
  while (left.length > 0) {
    const timeoutMs = until - now();
    if (timeoutMs <= 0) break;
    const results = await ask({ toolIds: left, view: SchemaView.FULL, minRevision }, timeoutMs).then(
      (answer) => answer.results,
      (error: unknown) => unanswered(left, registryError(error), brought),
    );
    for (const result of results) brought.set(result.toolId, read(result));
    const cut = results.filter(isCut).map((r) => r.toolId);
    // A batch that brought nothing would bring nothing again.
    left = cut.length < left.length ? cut : [];
  }
  for (const id of toolIds) {
    if (!brought.has(id) || left.includes(id)) brought.set(id, missing(id, "late", `the definition of ${id} did not come in time`));
  }
  return brought;
}

function isCut({ result }: SchemaResult): boolean {
  return result.case === "error" && result.value.reason === "QUOTA_EXCEEDED";
}

function unanswered(toolIds: readonly string[], error: RegistryError, into: Map<string, Brought>): SchemaResult[] {
  const why = error.code === "DEADLINE_EXCEEDED" ? "late" : error.transient ? "unreachable" : "failed";
  for (const id of toolIds) {
    into.set(id, missing(id, why, `the definition of ${id} is not here: ${error.message}`, { retryAfterMs: error.retryAfterMs }));
  }
  return [];
}

function read({ toolId, result }: SchemaResult): Brought {
  if (result.case === "schema") return readSchema(toolId, result.value);
  if (result.case === "error") return readError(toolId, result.value);
  return missing(toolId, "failed", `the registry answered neither a definition of ${toolId} nor why there is none`);
}

function readSchema(toolId: string, { definition, digest, freshness }: FullSchema): Brought {
  // What goes into caches under a digest, some of them shared, has to be what the digest says.
  if (!hasDigest(definition, digest)) {
    return missing(toolId, "failed", `what the registry answered for ${toolId} does not have the digest that it names, ${digest}`);
  }
  return { kind: "loaded", tool: { toolId, digest, bytes: definition, freshness: FRESHNESS[freshness] ?? "cached", from: "registry" } };
}

function readError(toolId: string, { reason, message, substitutes, retryAfter }: SchemaError): Brought {
  const why = reason === "NOT_FOUND" ? "gone" : reason === "LOAD_PENDING" ? "late" : "failed";
  return missing(toolId, why, message, { substitutes, ...(retryAfter && { retryAfterMs: durationMs(retryAfter) }) });
}
