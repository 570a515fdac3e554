/** One namespace's past, kept in notes and shared by the replicas. */
import type { Clocked, PastStore } from "../ports.js";
import { type Happening, NamespacePast } from "./namespace-past.js";
import { decodeIndex, encodeIndex, type PastIndex } from "./past-index.js";
import { decodeShard, encodeShard, SHARDS, shardOf } from "./shard.js";

export interface SharedPastDeps {
  readonly store: PastStore;
  readonly clock: Clocked;
  readonly retentionMs: number;
  /** 32 hex digits: the key, if the store knows none yet. */
  readonly newKey: string;
}

/** The index as it was found, and the version of its note. */
type Found =
  | { readonly kind: "none"; readonly version: number }
  | { readonly kind: "newer"; readonly version: number }
  | { readonly kind: "index"; readonly index: PastIndex; readonly version: number };

/** Reports that wait for the store; beyond them the oldest count on this replica only, and not for long. */
const PENDING = 4_096;
/** Writers that meet decide again; what is not written then is written the next time. */
const TRIES = 4;
/** Shards read at once. */
const AT_ONCE = 8;

/**
 * What is held in memory is at all times what the notes said when they were last read, and on top of it the reports that
 * are not in them yet. To write a shard is to read it, to put those reports on top again, and to write if nobody else did
 * meanwhile: so no report is lost, and none counts twice. One `sync` at a time.
 */
export class SharedPast {
  private held: NamespacePast;
  private pending: Happening[] = [];
  private readonly dirty = new Set<number>();
  /** Shards that a newer replica wrote in a form that is not known here. */
  private readonly frozen = new Set<number>();
  /** By shard: the version of what is held; 0 = none. */
  private readonly versions = new Array<number>(SHARDS).fill(0);

  constructor(
    private readonly namespace: string,
    private readonly deps: SharedPastDeps,
  ) {
    this.held = new NamespacePast(deps.newKey, deps.retentionMs);
  }

  get past(): NamespacePast {
    return this.held;
  }

  /** Reports that are not in the store yet. */
  get unsaved(): number {
    return this.pending.length;
  }

  get isDirty(): boolean {
    return this.dirty.size > 0;
  }

  /** Answers whether what it says of its intent changed the memory. */
  report(happening: Happening): boolean {
    const changed = this.held.apply(happening, this.now());
    this.pending.push(happening);
    if (this.pending.length > PENDING) this.pending.shift();
    this.dirty.add(shardOf(happening.toolId));
    return changed;
  }

  /** Forgets what is older than the retention, here and, with the next `sync`, in the store. */
  prune(): void {
    for (const shard of this.held.prune(this.now())) this.dirty.add(shard);
  }

  /** Reads what others wrote, and writes what they do not know. Throws Fault STORE_UNAVAILABLE; the next time goes on from there. */
  async sync(): Promise<void> {
    const found = await this.readIndex();
    if (found.kind === "newer") return;
    if (found.kind === "none") this.writeAllAnew();
    else if (found.index.key !== this.held.key) this.begin(found.index.key);
    const wanted = found.kind === "none" ? this.versions : found.index.versions;
    const behind = wanted.flatMap((version, shard) => (version === this.versions[shard] ? [] : [shard]));
    for (let i = 0; i < behind.length; i += AT_ONCE)
      await Promise.all(behind.slice(i, i + AT_ONCE).map((shard) => this.read(shard, wanted[shard] as number)));
    const writing = [...this.dirty].filter((shard) => !this.frozen.has(shard));
    // The key is in the store before anything that was hashed with it.
    if (writing.length > 0 && found.kind === "none" && !(await this.publish())) return;
    for (const shard of writing) await this.write(shard);
    const newer = this.versions.some((version, shard) => version > (wanted[shard] as number));
    if (writing.length > 0 || newer) await this.publish();
  }

  private now(): number {
    return this.deps.clock.now();
  }

  /** The store knows nothing of this namespace, or not any more. */
  private writeAllAnew(): void {
    this.versions.fill(0);
    for (const shard of this.held.shards()) this.dirty.add(shard);
  }

  /** Everything was hashed with a key that is not the namespace's; what was reported here is hashed again. */
  private begin(key: string): void {
    this.held = new NamespacePast(key, this.deps.retentionMs);
    this.versions.fill(0);
    this.frozen.clear();
    for (const happening of this.pending) this.held.apply(happening, this.now());
  }

  private async readIndex(): Promise<Found> {
    const note = await this.deps.store.get(this.namespace, INDEX);
    const decoded = note && decodeIndex(note.bytes);
    const version = note?.version ?? 0;
    if (!decoded || decoded.kind === "unusable") return { kind: "none", version };
    return { ...decoded, version };
  }

  private async read(shard: number, wanted: number): Promise<void> {
    const note = await this.deps.store.get(this.namespace, keyOf(shard));
    if (note) return this.take(shard, note);
    this.versions[shard] = wanted;
    if (this.held.shards().includes(shard)) this.dirty.add(shard);
  }

  private take(shard: number, note: { readonly bytes: Uint8Array; readonly version: number }): void {
    if (note.version === this.versions[shard]) return;
    this.versions[shard] = note.version;
    const decoded = decodeShard(note.bytes, this.held.keyId);
    this.frozen.delete(shard);
    switch (decoded.kind) {
      case "newer":
        this.frozen.add(shard);
        return;
      case "unusable":
        // It is written anew with what is held here.
        this.dirty.add(shard);
        return;
      case "shard":
        this.held.adopt(shard, decoded.tools, this.now());
        for (const happening of this.pendingOf(shard)) this.held.apply(happening, this.now());
    }
  }

  private async write(shard: number): Promise<void> {
    const { store, retentionMs } = this.deps;
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const note = await store.get(this.namespace, keyOf(shard));
      if (note) this.take(shard, note);
      if (this.frozen.has(shard)) return;
      const included = new Set(this.pendingOf(shard));
      const tools = this.held.shard(shard, this.now());
      this.held.adopt(shard, tools, this.now());
      const bytes = encodeShard(tools, this.held.keyId);
      const version = await store.put(this.namespace, keyOf(shard), bytes, retentionMs, note?.version ?? 0);
      if (version === undefined) continue;
      this.versions[shard] = version;
      this.pending = this.pending.filter((happening) => !included.has(happening));
      if (this.pendingOf(shard).length === 0) this.dirty.delete(shard);
      return;
    }
  }

  /** Says which versions there are. False when the namespace has another key by now. */
  private async publish(): Promise<boolean> {
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const found = await this.readIndex();
      if (found.kind === "newer" || (found.kind === "index" && found.index.key !== this.held.key)) return false;
      const before = found.kind === "index" ? found.index.versions : [];
      const versions = this.versions.map((version, shard) => Math.max(version, before[shard] ?? 0));
      const bytes = encodeIndex({ key: this.held.key, versions });
      if ((await this.deps.store.put(this.namespace, INDEX, bytes, this.deps.retentionMs, found.version)) !== undefined) return true;
    }
    return false;
  }

  private pendingOf(shard: number): readonly Happening[] {
    return this.pending.filter(({ toolId }) => shardOf(toolId) === shard);
  }
}

const INDEX = "index";

function keyOf(shard: number): string {
  return String(shard);
}
