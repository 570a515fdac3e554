import type { ToolDocument } from "./document.js";
import { GrowingSegment } from "./growing.js";
import { type Intent, nameKey } from "./intent.js";
import { Searcher, type SearchOptions, type SearchResult } from "./search.js";
import { type PreparedTool, prepare, ServiceTable } from "./segment.js";
import { type Snapshot, SnapshotBuilder } from "./snapshot.js";

/** How long work is done in slices: a monotonic clock in milliseconds, and a way to let others run. */
export interface Pace {
  monotonic(): number;
  /** Resolves when whatever waits on this thread had its turn. */
  pause(): Promise<void>;
}

/** A slice ends here; a search that waits for it waits no longer. */
const SLICE_MS = 3;
/** The delta is merged when it is larger than this, and than its share of the snapshot. */
const DELTA = 2_048;
const DELTA_SHARE = 0.15;

/**
 * The index of one namespace: a large snapshot, and a small delta that takes changes at once. Rebuilds run in slices
 * beside the serving of searches and are swapped in one step; changes that come meanwhile are kept and applied after it.
 * Scores depend on the set of documents alone, not on where they lie or when they came. All methods but `load` and `settle` are
 * synchronous, so a search sees a change whole or not at all.
 */
export class LiveIndex {
  private snapshot: Snapshot;
  private delta: GrowingSegment;
  private services = new ServiceTable();
  private readonly searcher = new Searcher();
  /** Changes since a rebuild began; absent when none runs. */
  private journal: Map<string, PreparedTool | undefined> | undefined;
  private merging: Promise<void> | undefined;

  constructor(private readonly pace: Pace) {
    this.snapshot = emptySnapshot(this.services);
    this.delta = new GrowingSegment(this.services);
  }

  get size(): number {
    return this.snapshot.live + this.delta.live;
  }

  /** Bytes of the snapshot's arrays. */
  get arrayBytes(): number {
    return this.snapshot.arrayBytes;
  }

  has(toolId: string): boolean {
    return this.snapshot.find(toolId) !== undefined || this.delta.find(toolId) !== undefined;
  }

  /** tool_ids of tools with this very name, on any server. */
  *named(name: string): Generator<string> {
    const key = nameKey(name);
    for (const segment of [this.snapshot, this.delta]) {
      for (const doc of segment.named(key)) {
        const tool = segment.tool(doc);
        if (segment.gone[doc] === 0 && tool.name === name) yield tool.toolId;
      }
    }
  }

  upsert(document: ToolDocument): void {
    const tool = prepare(document);
    this.journal?.set(document.toolId, tool);
    this.put(document.toolId, tool);
    this.mergeWhenLarge();
  }

  /** False when there was no such tool. */
  remove(toolId: string): boolean {
    const known = this.has(toolId);
    if (!known) return false;
    this.journal?.set(toolId, undefined);
    this.put(toolId, undefined);
    this.mergeWhenLarge();
    return true;
  }

  search(intent: Intent, options: SearchOptions): SearchResult {
    return this.searcher.search([this.snapshot, this.delta], this.services.size, intent, options);
  }

  /**
   * Replaces all documents in one step, once all are read (a later one of the same tool wins). Changes made meanwhile hold. Throws
   * the signal's reason when it aborts, and then nothing has changed. One load at a time.
   */
  async load(documents: Iterable<ToolDocument>, signal?: AbortSignal): Promise<void> {
    await this.merging;
    signal?.throwIfAborted();
    const slice = new Slice(this.pace, signal);
    await this.rebuild(async (builder) => {
      const prepared = new Map<string, PreparedTool>();
      for (const document of documents) {
        prepared.set(document.toolId, prepare(document));
        if (slice.over()) await slice.pause();
      }
      const sorted = [...prepared.values()].sort((a, b) => (a.tool.toolId < b.tool.toolId ? -1 : 1));
      for (const tool of sorted) {
        builder.add(tool);
        if (slice.over()) await slice.pause();
      }
    }, slice);
  }

  /** Resolves when no rebuild runs. */
  async settle(): Promise<void> {
    await this.merging;
  }

  private put(toolId: string, tool: PreparedTool | undefined): void {
    const inSnapshot = this.snapshot.find(toolId);
    if (inSnapshot !== undefined) this.snapshot.remove(inSnapshot);
    const inDelta = this.delta.find(toolId);
    if (inDelta !== undefined) this.delta.remove(inDelta);
    if (tool) this.delta.add(tool);
  }

  private mergeWhenLarge(): void {
    // A tool that changed is gone from the one and new in the other.
    const changed = Math.max(this.delta.size, this.snapshot.size - this.snapshot.live);
    if (this.journal || changed <= Math.max(DELTA, this.snapshot.size * DELTA_SHARE)) return;
    this.merging = this.merge().finally(() => (this.merging = undefined));
  }

  private async merge(): Promise<void> {
    const slice = new Slice(this.pace);
    const { snapshot } = this;
    const gone = snapshot.gone.slice();
    const added = this.delta.sorted();
    await this.rebuild(async (builder) => {
      let next = 0;
      const before = (toolId: string | undefined) => {
        const tool = added[next];
        return tool && (toolId === undefined || tool.tool.toolId < toolId) ? tool : undefined;
      };
      for (let doc = 0; doc <= snapshot.size; doc++) {
        const old = doc < snapshot.size ? snapshot.tool(doc).toolId : undefined;
        for (let tool = before(old); tool; tool = before(old)) {
          builder.add(tool);
          next++;
          if (slice.over()) await slice.pause();
        }
        if (old !== undefined && gone[doc] === 0) snapshot.copy(doc, builder);
        if (slice.over()) await slice.pause();
      }
    }, slice);
  }

  private async rebuild(fill: (builder: SnapshotBuilder) => Promise<void>, slice: Slice): Promise<void> {
    if (this.journal) throw new Error("a rebuild of the index is already under way");
    const journal = new Map<string, PreparedTool | undefined>();
    this.journal = journal;
    try {
      const services = new ServiceTable();
      const builder = new SnapshotBuilder(services);
      await fill(builder);
      const steps = builder.finish();
      let step = steps.next();
      while (!step.done) {
        if (slice.over()) await slice.pause();
        step = steps.next();
      }
      slice.throwIfAborted();
      this.services = services;
      this.snapshot = step.value;
      this.delta = new GrowingSegment(services);
      for (const [toolId, tool] of journal) this.put(toolId, tool);
    } finally {
      this.journal = undefined;
    }
  }
}

/** An index that holds these documents. */
export async function indexOf(documents: Iterable<ToolDocument>, pace: Pace): Promise<LiveIndex> {
  const index = new LiveIndex(pace);
  await index.load(documents);
  return index;
}

function emptySnapshot(services: ServiceTable): Snapshot {
  const steps = new SnapshotBuilder(services).finish();
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}

/** Work of a few milliseconds, then a pause. */
class Slice {
  private began: number;

  constructor(
    private readonly pace: Pace,
    private readonly signal?: AbortSignal,
  ) {
    this.began = pace.monotonic();
  }

  over(): boolean {
    return this.pace.monotonic() - this.began >= SLICE_MS;
  }

  throwIfAborted(): void {
    this.signal?.throwIfAborted();
  }

  async pause(): Promise<void> {
    this.throwIfAborted();
    await this.pace.pause();
    this.throwIfAborted();
    this.began = this.pace.monotonic();
  }
}
