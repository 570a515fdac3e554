/** The lazy loader: a definition from memory, else from the store, else from its MCP server. */
import type { Freshness, FullSchema, SchemaKey, SchemaLoader, SchemaResult, SchemaView } from "../catalogue/api.js";
import type { Blob, Clock, StubCodec } from "../catalogue/ports.js";
import type { ListedTool } from "../catalogue/upstream-port.js";
import { UpstreamError } from "../catalogue/upstream-port.js";
import { within } from "../catalogue/within.js";
import { compactOf } from "../domain/compact.js";
import { inputSchemaOf } from "../domain/definition.js";
import { Fault, notFound } from "../domain/fault.js";
import { LIMITS } from "../domain/limits.js";
import { admitBatch, cutBatch } from "./batch.js";
import type { Definitions } from "./definitions.js";
import { breakerOpen, disagrees, loadFailed, loadPending, substitutesOf, withheld } from "./faults.js";
import type { Located } from "./find.js";
import { findByName, locate } from "./find.js";
import type { Lister } from "./lister.js";
import type { Directory } from "./ports.js";

export type LoadOutcome = Freshness | "pending" | "failed" | "mismatch" | "not-found";

export interface Loader extends SchemaLoader {
  /** Brings into memory what a Register or a listing has just stored. */
  prime(namespace: string, blobs: readonly Blob[]): void;
}

type Asked = Parameters<SchemaLoader["held"]>[0];

export interface LoaderDeps {
  readonly definitions: Definitions;
  readonly directory: Directory;
  readonly lister: Pick<Lister, "list" | "settled">;
  readonly codec: Pick<StubCodec, "decode">;
  readonly clock: Clock;
  /** Metric hook: once for each definition asked for. */
  readonly onLoad?: (outcome: LoadOutcome) => void;
}

interface Loaded {
  readonly blob: Blob;
  readonly freshness: Freshness;
}

/** What is asked for: a tool's current definition, or a digest that some tool may have. */
interface Wanted {
  readonly namespace: string;
  /** Empty if the tool's definition was never seen. */
  readonly digest: string;
  readonly byDigest: boolean;
  readonly located: Located | undefined;
  /** For messages. */
  readonly what: string;
}

/**
 * Of a caller's deadline, the part kept for telling it that nothing is here yet: whoever has hung up hears neither why nor
 * when to ask again.
 */
const ANSWER_SHARE = 0.2;
const ANSWER_MAX_MS = 500;

function waitFor(deadlineMs: number): number {
  return Math.max(0, deadlineMs - Math.min(ANSWER_MAX_MS, deadlineMs * ANSWER_SHARE));
}

export function createLoader({ definitions, directory, lister, codec, clock, onLoad }: LoaderDeps): Loader {
  // Made on first use, and kept as long as the definition is held.
  const views = {
    "input-only": { cut: inputSchemaOf, made: new WeakMap<Uint8Array, Uint8Array>() },
    compact: { cut: compactOf, made: new WeakMap<Uint8Array, Uint8Array>() },
  };

  const substitutes = (located: Located | undefined): readonly string[] =>
    located ? substitutesOf(directory, codec, located) : [];

  function want(namespace: string, key: SchemaKey): Wanted {
    if (key.kind === "tool") {
      const located = locate(directory, namespace, key.toolId);
      if (!located) throw notFound("tool", key.toolId);
      const kept = withheld(located, substitutes(located));
      if (kept) throw kept;
      return {
        namespace,
        located,
        byDigest: false,
        digest: located.tool.digest,
        what: `the definition of ${key.toolId}`,
      };
    }
    const holder = directory.holderOf(namespace, key.digest);
    const tool = holder && findByName(holder.record.tools, holder.toolName);
    const located = holder && tool && { record: holder.record, tool };
    return { namespace, located, byDigest: true, digest: key.digest, what: `the definition ${key.digest}` };
  }

  /** Bytes under the current digest are right; STALE says that nobody could look whether the digest still is. */
  function kept({ namespace, located }: Wanted, blob: Blob): Loaded {
    const away = located?.record.header.availability === "unavailable";
    return { blob, freshness: away || directory.stale(namespace) ? "stale" : "cached" };
  }

  async function live(namespace: string, listed: ListedTool, fetchedAtMs: number): Promise<Loaded> {
    // The store may have had other bytes under this digest before; what memory had no room for is read from there (P10).
    const [first] = await definitions.fetch(namespace, [listed.digest]);
    const bytes = first?.bytes ?? listed.definition;
    return { freshness: "live", blob: { digest: listed.digest, bytes, fetchedAtMs } };
  }

  async function load(wanted: Wanted): Promise<Loaded> {
    const { namespace, digest, located } = wanted;
    if (digest !== "") {
      const [blob] = await definitions.fetch(namespace, [digest]);
      if (blob) return kept(wanted, blob);
    }
    if (!located) throw notFound("digest", digest);
    const loaded = await fromServer(namespace, located, digest);
    // Whoever asks by digest wants that one, whatever the tool has become.
    if (wanted.byDigest && loaded.blob.digest !== digest) throw notFound("digest", digest);
    return loaded;
  }

  async function fromServer(namespace: string, located: Located, digest: string): Promise<Loaded> {
    const { serverId } = located.record.header;
    const down = breakerOpen(located, clock.now(), substitutes(located));
    if (down) throw down;
    const listing = await lister.list(namespace, serverId).catch((err: unknown) => {
      if (err instanceof UpstreamError) throw loadFailed(located, err, substitutes(located));
      throw err;
    });
    const listed = findByName(listing.tools, located.tool.name);
    if (listed && (digest === "" || listed.digest === digest)) return live(namespace, listed, listing.receivedAtMs);

    // The server's list is not what the catalogue said. What the catalogue makes of it decides what may be served.
    await lister.settled(namespace, serverId);
    const record = directory.server(namespace, serverId);
    const tool = record && findByName(record.tools, located.tool.name);
    if (!tool) throw notFound("tool", `${serverId}/${located.tool.name}`);
    const now = { record, tool };
    if (listed && listed.digest === tool.digest) return live(namespace, listed, listing.receivedAtMs);
    const [stored] = tool.digest === "" ? [] : await definitions.fetch(namespace, [tool.digest]);
    if (stored) return { blob: stored, freshness: "stale" };
    throw disagrees(now, listing, substitutes(now));
  }

  /** From memory alone. */
  function inMemory(wanted: Wanted): Loaded | undefined {
    const held = wanted.digest === "" ? undefined : definitions.held(wanted.namespace, wanted.digest);
    return held && kept(wanted, held);
  }

  /** The load goes on when its caller leaves: neither the store's read nor the listing belongs to one caller. */
  async function loadInTime(wanted: Wanted, deadlineMs: number | undefined): Promise<Loaded> {
    const waitMs = deadlineMs === undefined ? LIMITS.loadCallerMs : Math.min(waitFor(deadlineMs), LIMITS.loadMs);
    const result = await within(clock, waitMs, load(wanted));
    if (result.kind === "done") return result.value;
    throw loadPending(wanted.what, waitMs, substitutes(wanted.located));
  }

  function view(bytes: Uint8Array, wanted: SchemaView): Uint8Array {
    if (wanted === "full") return bytes;
    const { cut, made } = views[wanted];
    const known = made.get(bytes);
    if (known) return known;
    const part = cut(bytes);
    made.set(bytes, part);
    return part;
  }

  function answer(q: Asked, { blob, freshness }: Loaded): FullSchema {
    const definition = view(blob.bytes, q.view);
    onLoad?.(freshness);
    const toolId = q.key.kind === "tool" ? q.key.toolId : "";
    return { toolId, definition, digest: blob.digest, freshness, fetchedAtMs: blob.fetchedAtMs };
  }

  function refused(err: unknown): never {
    if (err instanceof Fault) onLoad?.(outcomeOf(err));
    throw err;
  }

  const held: Loader["held"] = (q) => {
    try {
      const loaded = inMemory(want(q.namespace, q.key));
      return loaded && answer(q, loaded);
    } catch (err) {
      return refused(err);
    }
  };

  const full: Loader["full"] = async (q) => {
    try {
      const wanted = want(q.namespace, q.key);
      return answer(q, inMemory(wanted) ?? (await loadInTime(wanted, q.deadlineMs)));
    } catch (err) {
      return refused(err);
    }
  };

  const batch: Loader["batch"] = async ({ namespace, toolIds, view: wanted, deadlineMs, refuse = () => undefined }) => {
    admitBatch(toolIds);
    const asked = toolIds.map((toolId) => ({ namespace, key: { kind: "tool", toolId } as const, view: wanted, deadlineMs }));
    const known = asked.map((q) => atOnce(() => held(q)) ?? faultResult(refuse()));
    const missing = toolIds.filter((_, i) => !known[i]);
    const digests = missing.map((id) => locate(directory, namespace, id)?.tool.digest ?? "").filter((d) => d !== "");
    // One store call for the whole batch; each tool's own load then joins it.
    if (digests.length > 0) void definitions.fetch(namespace, digests);
    const results = asked.map((q, i) => known[i] ?? full(q).then(schemaResult, thrownResult));
    return cutBatch(toolIds, await Promise.all(results));
  };

  return { held, full, batch, prime: definitions.prime };
}

function schemaResult(schema: FullSchema): SchemaResult {
  return { kind: "schema", schema };
}

function faultResult(fault: Fault | undefined): SchemaResult | undefined {
  return fault && { kind: "fault", fault };
}

function thrownResult(err: unknown): SchemaResult {
  if (err instanceof Fault) return { kind: "fault", fault: err };
  throw err;
}

/** What needs no waiting: undefined when that is nothing. */
function atOnce(look: () => FullSchema | undefined): SchemaResult | undefined {
  try {
    const schema = look();
    return schema && schemaResult(schema);
  } catch (err) {
    return thrownResult(err);
  }
}

function outcomeOf(fault: Fault): LoadOutcome {
  if (fault.reason === "LOAD_PENDING") return "pending";
  if (fault.reason === "DIGEST_MISMATCH") return "mismatch";
  return fault.reason === "NOT_FOUND" ? "not-found" : "failed";
}
