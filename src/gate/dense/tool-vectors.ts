import { createHash } from "node:crypto";
import type { GateClock } from "../ports.js";
import { type DenseObserver, type Embedder, EmbedderError, type VectorShelf } from "./embedder.js";
import { quantise } from "./quantised.js";
import { type ExactSearch, VectorTable } from "./vector-table.js";

export interface ToolVectorsDeps {
  readonly namespace: string;
  readonly embedder: Embedder;
  readonly shelf: VectorShelf;
  readonly exact: ExactSearch | undefined;
  readonly clock: GateClock;
  readonly observer: DenseObserver;
}

/** Texts of one request: what every compatible endpoint takes. */
const BATCH = 64;
/** Texts are looked for on the shelf and asked for after so long: a server's tools come one by one, and shall go in one request. */
const GATHER_MS = 50;
const REQUEST_MS = 30_000;
const PAUSE_MS = { first: 1_000, most: 60_000 } as const;

interface Wanted {
  readonly toolId: string;
  readonly text: string;
  readonly key: string;
}

/** The vectors of the tools of one namespace, made in the background in batches. */
export class ToolVectors {
  /** Known from the first vector on. */
  table: VectorTable | undefined;
  /** What each tool's vector is of, or will be of. */
  private readonly keys = new Map<string, string>();
  private readonly queue = new Map<string, Wanted>();
  private readonly ending = new AbortController();
  private working: Promise<void> | undefined;

  constructor(private readonly deps: ToolVectorsDeps) {}

  /** Tools without a vector yet. */
  get waiting(): number {
    return this.queue.size;
  }

  want(toolId: string, text: string): void {
    const key = createHash("sha256").update(`${this.deps.embedder.model}\0${text}`).digest("base64url");
    if (this.keys.get(toolId) === key) return;
    this.keys.set(toolId, key);
    this.queue.set(toolId, { toolId, text, key });
    this.working ??= this.work().finally(() => (this.working = undefined));
  }

  forget(toolId: string): void {
    this.keys.delete(toolId);
    this.queue.delete(toolId);
    this.table?.delete(toolId);
  }

  /** Forgets all tools that are not among these. */
  retain(has: (toolId: string) => boolean): void {
    for (const toolId of [...this.keys.keys()]) if (!has(toolId)) this.forget(toolId);
  }

  async stop(): Promise<void> {
    this.ending.abort(new Error("the registry stops"));
    this.queue.clear();
    await this.working;
  }

  private async work(): Promise<void> {
    const { clock } = this.deps;
    let pauseMs: number = PAUSE_MS.first;
    let size = BATCH;
    await clock.sleep(GATHER_MS, this.ending.signal);
    while (this.queue.size > 0 && !this.ending.signal.aborted) {
      const batch = [...this.queue.values()].slice(0, size);
      const outcome = await this.fill(batch);
      if (outcome === "away") {
        await clock.sleep(pauseMs, this.ending.signal);
        pauseMs = Math.min(PAUSE_MS.most, 2 * pauseMs);
        continue;
      }
      pauseMs = PAUSE_MS.first;
      // One text that the endpoint will not take must not keep the others out: it is found by halves.
      if (outcome === "refused" && batch.length > 1) size = Math.ceil(batch.length / 2);
      else {
        for (const wanted of batch) if (this.queue.get(wanted.toolId) === wanted) this.queue.delete(wanted.toolId);
        size = Math.min(BATCH, 2 * size);
      }
    }
  }

  private async fill(batch: readonly Wanted[]): Promise<"done" | "refused" | "away"> {
    const { namespace, shelf, embedder, observer } = this.deps;
    const kept = await shelf.get(namespace, batch.map(({ key }) => key));
    const missing = batch.filter((wanted, i) => {
      const bytes = kept[i];
      return !bytes || !this.take(wanted, new Int8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    });
    if (missing.length === 0) return "done";
    try {
      const signal = AbortSignal.any([this.ending.signal, AbortSignal.timeout(REQUEST_MS)]);
      const vectors = await embedder.embed(missing.map(({ text }) => text), signal);
      if (vectors.length !== missing.length) throw new EmbedderError(`${vectors.length} vectors came for ${missing.length} texts`, "away");
      const made = new Map<string, Uint8Array>();
      for (const [i, wanted] of missing.entries()) {
        const quantised = quantise(vectors[i] as ArrayLike<number>, this.table?.dimensions);
        if (!quantised.ok) {
          observer.onError(new Error(`the embedder's vector is none: ${quantised.reason}`), { namespace, what: wanted.toolId });
          continue;
        }
        this.take(wanted, quantised.vector);
        made.set(wanted.key, new Uint8Array(quantised.vector.buffer));
      }
      observer.embedded("tools", "ok");
      await shelf.put(namespace, made);
      return "done";
    } catch (error) {
      if (this.ending.signal.aborted) return "away";
      observer.embedded("tools", "failed");
      const refused = error instanceof EmbedderError && error.kind === "refused";
      if (!refused || missing.length === 1) observer.onError(error, { namespace, what: missing.length === 1 ? (missing[0] as Wanted).toolId : "tools" });
      return refused ? "refused" : "away";
    }
  }

  /** False for a vector of other dimensions than the table's. */
  private take({ toolId, key }: Wanted, vector: Int8Array): boolean {
    this.table ??= new VectorTable(vector.length, this.deps.clock, this.deps.exact);
    if (vector.length !== this.table.dimensions) return false;
    // It may have gone, or be described otherwise, since it was asked for.
    if (this.keys.get(toolId) === key) this.table.set(toolId, vector);
    return true;
  }
}
