import { bareTool } from "../domain/overlay.js";
import { BREAKER_CLOSED, type ServerRecord, type Tool } from "../domain/server.js";
import type { ConditionPublisher } from "./conditions.js";
import type { Deps } from "./deps.js";
import { asDecided } from "./decided.js";
import type { Blob } from "./ports.js";
import { withKnown } from "./register/known.js";
import { listedSet } from "./register/listed.js";
import { answered, nowListed } from "./register/prepare.js";
import type { Listing } from "./upstream-port.js";
import type { ConditionFact, ListingOutcome, ListingWriter, SeenHealth } from "./writer-port.js";
import type { Decision, WriteResult, Writes } from "./writes.js";

/** Commits what listings say, whichever replica found it, by compare-and-set on the revision they were asked at. */
export class CatalogueListingWriter implements ListingWriter {
  constructor(
    private readonly deps: Deps,
    private readonly writesOf: (namespace: string) => Writes,
    private readonly conditions: ConditionPublisher,
  ) {}

  async commitListing(namespace: string, serverId: string, listing: Listing, basedOn: number): Promise<ListingOutcome> {
    const writes = this.writesOf(namespace);
    const known = writes.partition.live().history.server(namespace, serverId)?.record;
    const set = listedSet(serverId, known?.header.tags ?? [], listing, this.deps.stubs);
    await this.#keepDefinitions(writes, namespace, known, set.blobs);
    return outcomeOf(
      await writes.write(namespace, serverId, async (record): Promise<Decision<ListingOutcome>> => {
        if (record?.header.source !== "introspected") return keep("gone");
        if (record.revision !== basedOn) return keep("conflict");
        const header = {
          ...record.header,
          rejected: set.rejected,
          rejectedCount: set.rejectedCount,
          pending: false,
          ...afterListing(record, this.deps.now()),
          protocolVersion: listing.protocolVersion,
          listedAtMs: listing.receivedAtMs,
        };
        const tools = await asDecided(writes, namespace, serverId, record, withKnown(record, set.tools, this.deps.stubs));
        if (sameListing(record, header, tools)) return keep("unchanged");
        return {
          kind: "commit",
          step: { cause: "listing", next: { header, tools }, leases: [] },
          value: "committed",
        };
      }),
    );
  }

  async learn(namespace: string, serverId: string, listing: Listing, basedOn: number): Promise<ListingOutcome> {
    const writes = this.writesOf(namespace);
    const record = writes.partition.live().history.server(namespace, serverId)?.record;
    if (record?.header.source !== "declared") return "gone";
    const listed = new Map(listing.tools.map((t) => [t.name, t]));
    await this.#keepDefinitions(
      writes,
      namespace,
      record,
      listing.tools.map((t) => ({ digest: t.digest, bytes: t.definition, fetchedAtMs: listing.receivedAtMs })),
    );
    return outcomeOf(
      await writes.write(namespace, serverId, async (now): Promise<Decision<ListingOutcome>> => {
        if (now?.header.source !== "declared") return keep("gone");
        if (now.revision !== basedOn) return keep("conflict");
        const bare = now.tools.map(bareTool);
        const learned = bare.map((tool) => this.#learned(tool, listed));
        if (learned.every((tool, i) => tool === bare[i])) return keep("unchanged");
        const tools = await asDecided(writes, namespace, serverId, now, learned);
        return {
          kind: "commit",
          step: { cause: "learned", next: { header: now.header, tools }, leases: [] },
          value: "committed",
        };
      }),
    );
  }

  listed(namespace: string, serverId: string, fact: ConditionFact): void {
    this.conditions.publish(namespace, serverId, { listed: fact });
  }

  health(namespace: string, serverId: string, seen: SeenHealth): void {
    this.conditions.publish(namespace, serverId, { health: seen });
  }

  /** Fills in what the registrant did not say: the digest and the size, never its words. */
  #learned(tool: Tool, listed: ReadonlyMap<string, Listing["tools"][number]>): Tool {
    const found = listed.get(tool.name);
    const other = found?.digest !== tool.digest;
    if (!found || (other && tool.digestDeclared)) return tool;
    const label = this.deps.stubs.decode(tool.stub);
    if (!other && label.sizeBytes > 0) return tool;
    return this.deps.stubs.encode(
      { ...label, digest: found.digest, sizeBytes: found.definition.byteLength },
      tool.digestDeclared,
    );
  }

  /** Before the commit that names them. Those that the server's record names already were kept before that one. */
  async #keepDefinitions(
    writes: Writes,
    namespace: string,
    record: ServerRecord | undefined,
    blobs: readonly Blob[],
  ): Promise<void> {
    const named = new Set(record?.tools.map((t) => t.digest));
    const fresh = blobs.filter((b) => !named.has(b.digest));
    if (fresh.length === 0) return;
    await writes.partition.deps.store.blobs.put(namespace, fresh);
    this.deps.onDefinitions(namespace, fresh);
  }
}

/**
 * A list shows that the server is there, which counts for one that was never seen; whether one that was down is up again is for
 * its probes to say.
 */
function afterListing(record: ServerRecord, nowMs: number) {
  const { header } = record;
  if (!header.pending || header.breaker.kind === "isolated") return { conditions: nowListed(header.conditions, nowMs) };
  return { availability: "available" as const, breaker: BREAKER_CLOSED, conditions: answered(record, nowMs) };
}

function keep(value: ListingOutcome): Decision<ListingOutcome> {
  return { kind: "keep", value };
}

function outcomeOf(result: WriteResult<ListingOutcome>): ListingOutcome {
  if (result.kind === "not-due") throw new Error("a listing requires no lease to be due");
  return result.value;
}

/**
 * Whether the listing says what the catalogue says. That the server answers again is not for here: conditions have a pace of
 * their own, so that a flapping server yields few revisions.
 */
function sameListing(record: ServerRecord, header: ServerRecord["header"], tools: readonly Tool[]): boolean {
  const { header: before } = record;
  return (
    !before.pending &&
    before.protocolVersion === header.protocolVersion &&
    JSON.stringify(before.rejected) === JSON.stringify(header.rejected) &&
    record.tools.length === tools.length &&
    record.tools.every((t, i) => Buffer.compare(t.stub, (tools[i] as Tool).stub) === 0)
  );
}
