import { Fault } from "../domain/fault.js";
import { compareText } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import type { ServerRecord } from "../domain/server.js";
import type { StubCodec } from "./ports.js";
import type { Writes } from "./writes.js";

/** What operators decide for single tools, and how it is kept. */
export interface ShelfKind<T> {
  /** What they are called: the note's key begins with it. */
  readonly name: string;
  /** The quota that a full shelf has reached. */
  readonly quota: string;
  /** What makes room. */
  readonly remedy: string;
  in(record: ServerRecord | undefined): readonly T[];
  encode(codec: StubCodec, all: readonly T[]): Uint8Array;
  decode(codec: StubCodec, bytes: Uint8Array): readonly T[];
}

/** Lost races before a caller is told WRITE_CONFLICT. */
const ATTEMPTS = 16;

/**
 * What an operator decided for the tools of one server, whether they are there now or not, and whether the server is registered or not: a
 * record ends with its server, and what was decided must be there when the server comes back. Kept as one note.
 */
export class ToolShelf<T extends { readonly toolName: string }> {
  private readonly key: string;

  constructor(
    private readonly kind: ShelfKind<T>,
    private readonly writes: Writes,
    private readonly namespace: string,
    private readonly serverId: string,
  ) {
    this.key = `${kind.name}/${namespace}/${serverId}`;
  }

  /** Tool name → what was decided. */
  async read(): Promise<ReadonlyMap<string, T>> {
    return (await this.note()).now;
  }

  /** As `read`, with what a broken log has lost and this replica remembers, which is put back. */
  async readWhole(): Promise<ReadonlyMap<string, T>> {
    const { state } = this.writes.partition;
    const lost = state.kind === "growing" ? state.old.history.server(this.namespace, this.serverId)?.record : undefined;
    return this.putBack(this.kind.in(lost));
  }

  /** Adds what it has nothing for, and answers what it holds then. */
  async putBack(lost: readonly T[]): Promise<ReadonlyMap<string, T>> {
    const kept = await this.read();
    const missing = lost.filter(({ toolName }) => !kept.has(toolName));
    if (missing.length === 0) return kept;
    return this.change((now) => byName([...missing, ...now.values()]));
  }

  /** Changes it by compare-and-set, and answers what it holds then. `change` answers the same map where nothing has to change. */
  async change(change: (now: ReadonlyMap<string, T>) => ReadonlyMap<string, T>): Promise<ReadonlyMap<string, T>> {
    const { clock, random } = this.writes.partition.deps;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const { now, version } = await this.note();
      const next = change(now);
      if (next === now || (await this.put(next, version))) return next;
      await clock.sleep(random.next() * 20 * attempt);
    }
    const message = `others kept changing the ${this.kind.name} of ${this.serverId}; try again`;
    throw new Fault("WRITE_CONFLICT", message, { retryAfterMs: 200 });
  }

  private async note(): Promise<{ readonly now: ReadonlyMap<string, T>; readonly version: number }> {
    const note = await this.notes.get(this.key);
    return { now: byName(note ? this.kind.decode(this.codec, note.bytes) : []), version: note?.version ?? 0 };
  }

  private async put(next: ReadonlyMap<string, T>, version: number): Promise<boolean> {
    if (next.size === 0) return version === 0 || this.notes.remove(this.key, version);
    const bytes = this.kind.encode(this.codec, [...next.values()].sort((a, b) => compareText(a.toolName, b.toolName)));
    if (bytes.byteLength > LIMITS.overlayShelfBytes) throw this.tooMany(bytes.byteLength);
    return (await this.notes.put(this.key, bytes, LIMITS.overlayKeepMs, version)) !== undefined;
  }

  private tooMany(bytes: number): Fault {
    const limit = LIMITS.overlayShelfBytes;
    const { name, quota, remedy } = this.kind;
    const message = `the ${name} of ${this.serverId} would take ${bytes} bytes, the limit is ${limit}: ${remedy}`;
    return new Fault("QUOTA_EXCEEDED", message, { metadata: { quota, limit: String(limit), actual: String(bytes) } });
  }

  private get notes() {
    return this.writes.partition.deps.store.notes;
  }

  private get codec() {
    return this.writes.partition.deps.stubs;
  }
}

function byName<T extends { readonly toolName: string }>(all: readonly T[]): ReadonlyMap<string, T> {
  return new Map(all.map((one) => [one.toolName, one]));
}
