import { Fault } from "../../domain/fault.js";
import { compareText } from "../../domain/ids.js";
import { LIMITS } from "../../domain/limits.js";
import type { Overlay } from "../../domain/overlay.js";
import type { ServerRecord } from "../../domain/server.js";
import type { Writes } from "../writes.js";

/** Tool name → overlay. */
export type Overlays = ReadonlyMap<string, Overlay>;

/** Lost races before a caller is told WRITE_CONFLICT. */
const ATTEMPTS = 16;

/**
 * What an operator approved for the tools of one server, whether it fits now or not, and whether the server is registered or not: a
 * record ends with its server, and what was approved must be there when the server comes back. Kept as one note.
 */
export class Shelf {
  private readonly key: string;

  constructor(
    private readonly writes: Writes,
    private readonly namespace: string,
    private readonly serverId: string,
  ) {
    this.key = `overlays/${namespace}/${serverId}`;
  }

  async read(): Promise<Overlays> {
    const note = await this.notes.get(this.key);
    return byName(note ? this.codec.decodeShelf(note.bytes) : []);
  }

  /** As `read`, with what a broken log has lost and this replica remembers, which is put back. */
  async readWhole(): Promise<Overlays> {
    const { state } = this.writes.partition;
    const lost = state.kind === "growing" ? state.old.history.server(this.namespace, this.serverId)?.record : undefined;
    const kept = await this.read();
    const missing = overlaysIn(lost).filter(({ toolName }) => !kept.has(toolName));
    if (missing.length === 0) return kept;
    return this.change((now) => byName([...missing, ...now.values()]));
  }

  /** Changes it by compare-and-set, and answers what it holds then. `change` answers the same map where nothing has to change. */
  async change(change: (now: Overlays) => Overlays): Promise<Overlays> {
    const { clock, random } = this.writes.partition.deps;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const note = await this.notes.get(this.key);
      const now = byName(note ? this.codec.decodeShelf(note.bytes) : []);
      const next = change(now);
      if (next === now || (await this.put(next, note?.version ?? 0))) return next;
      await clock.sleep(random.next() * 20 * attempt);
    }
    const message = `others kept changing the overlays of ${this.serverId}; try again`;
    throw new Fault("WRITE_CONFLICT", message, { retryAfterMs: 200 });
  }

  private async put(next: Overlays, version: number): Promise<boolean> {
    if (next.size === 0) return version === 0 || this.notes.remove(this.key, version);
    const bytes = this.codec.encodeShelf([...next.values()].sort((a, b) => compareText(a.toolName, b.toolName)));
    if (bytes.byteLength > LIMITS.overlayShelfBytes) throw tooMany(this.serverId, bytes.byteLength);
    return (await this.notes.put(this.key, bytes, LIMITS.overlayKeepMs, version)) !== undefined;
  }

  private get notes() {
    return this.writes.partition.deps.store.notes;
  }

  private get codec() {
    return this.writes.partition.deps.stubs.overlays;
  }
}

export function overlaysIn(record: ServerRecord | undefined): readonly Overlay[] {
  return (record?.tools ?? []).flatMap(({ overlay }) => overlay?.overlay ?? []);
}

export function byName(overlays: readonly Overlay[]): Overlays {
  return new Map(overlays.map((overlay) => [overlay.toolName, overlay]));
}

function tooMany(serverId: string, bytes: number): Fault {
  const limit = LIMITS.overlayShelfBytes;
  const message = `the overlays of ${serverId} would take ${bytes} bytes, the limit is ${limit}: withdraw what is inactive, or shorten some`;
  return new Fault("QUOTA_EXCEEDED", message, { metadata: { quota: "overlay_bytes", limit: String(limit), actual: String(bytes) } });
}
