import { compareText, splitToolId, toolId as toolIdOf } from "../../domain/ids.js";
import { LIMITS } from "../../domain/limits.js";
import { type Overlay, versionOf } from "../../domain/overlay.js";
import type { Clock, Logger, Notes, OverlayCodec, OverlayOutcome } from "../ports.js";

export interface OutcomesDeps {
  readonly notesOf: (namespace: string) => Notes;
  /** The overlay that is on trial or shown for a tool now. */
  readonly overlayOf: (namespace: string, toolId: string) => Overlay | undefined;
  readonly codec: OverlayCodec;
  readonly clock: Clock;
  readonly logger: Logger;
}

export type Counted = Omit<OverlayOutcome, "toolName" | "version">;

/** What is counted here goes to the store after this: replicas add to the same note. */
const FLUSH_MS = 2_000;
/** Lost races before what was counted waits for the next time. */
const ATTEMPTS = 8;

const NOTHING: Counted = { overlaySuccesses: 0, overlayFailures: 0, ownSuccesses: 0, ownFailures: 0 };

/** What came of calls, for each version of an overlay: counted in memory, added up in the store, the same for all replicas. */
export class OverlayOutcomes {
  /** namespace → server → tool and version → what is not in the store yet. */
  private readonly pending = new Map<string, Map<string, Map<string, OverlayOutcome>>>();
  private flushing: Promise<void> | undefined;
  private readonly stopping = new AbortController();

  constructor(private readonly deps: OutcomesDeps) {}

  /**
   * A call to a tool of which an agent was shown the label of this version; empty: its registrant's own. That one is compared only
   * while both are shown. Reports of other versions come from before: they say nothing of what is shown now.
   */
  count(namespace: string, toolId: string, labelVersion: string, success: boolean): void {
    const id = splitToolId(toolId);
    const overlay = this.deps.overlayOf(namespace, toolId);
    if (!id || !overlay) return;
    const version = versionOf(overlay);
    const shown = labelVersion === version;
    if (!shown && (labelVersion !== "" || !overlay.trial)) return;
    const one = { ...NOTHING, [shown ? (success ? "overlaySuccesses" : "overlayFailures") : success ? "ownSuccesses" : "ownFailures"]: 1 };
    this.add(namespace, id.serverId, { toolName: id.toolName, version, ...one });
    this.flushing ??= this.flushLater().finally(() => (this.flushing = undefined));
  }

  /** Of one server: tool_id and version → counts, as far as this replica and the store know. */
  async of(namespace: string, serverId: string): Promise<(toolId: string, version: string) => Counted> {
    const note = await this.deps.notesOf(namespace).get(keyOf(namespace, serverId));
    const kept = note ? this.deps.codec.decodeOutcomes(note.bytes) : [];
    const all = new Map(merged(kept, [...(this.pending.get(namespace)?.get(serverId)?.values() ?? [])]).map((one) => [keyOfOne(one), one]));
    return (toolId, version) => all.get(keyOfOne({ toolName: splitToolId(toolId)?.toolName ?? "", version })) ?? NOTHING;
  }

  /** Puts into the store what is not there yet. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.flushing;
  }

  private async flushLater(): Promise<void> {
    while (this.pending.size > 0) {
      await this.deps.clock.sleep(FLUSH_MS, this.stopping.signal);
      await this.flush();
      if (this.stopping.signal.aborted) return;
    }
  }

  private async flush(): Promise<void> {
    for (const [namespace, servers] of [...this.pending]) {
      this.pending.delete(namespace);
      for (const [serverId, counted] of servers) {
        const fresh = [...counted.values()];
        try {
          if (await this.put(namespace, serverId, fresh)) continue;
        } catch (err) {
          // The store's absence is told elsewhere; what was counted is kept for its return.
          this.deps.logger.debug({ err, namespace, server: serverId }, "outcomes of overlays could not be stored yet");
        }
        for (const one of fresh) this.add(namespace, serverId, one);
      }
    }
  }

  private async put(namespace: string, serverId: string, fresh: readonly OverlayOutcome[]): Promise<boolean> {
    const notes = this.deps.notesOf(namespace);
    const key = keyOf(namespace, serverId);
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const note = await notes.get(key);
      const kept = note ? this.deps.codec.decodeOutcomes(note.bytes) : [];
      const next = merged(kept, fresh).filter((one) => this.stillCounts(namespace, serverId, one));
      if (next.length === 0) return true;
      if ((await notes.put(key, this.deps.codec.encodeOutcomes(next), LIMITS.overlayKeepMs, note?.version ?? 0)) !== undefined) return true;
    }
    return false;
  }

  /** Of a tool with an overlay now, only that version is ever looked at again. */
  private stillCounts(namespace: string, serverId: string, { toolName, version }: OverlayOutcome): boolean {
    const overlay = this.deps.overlayOf(namespace, toolIdOf(serverId, toolName));
    return !overlay || versionOf(overlay) === version;
  }

  private add(namespace: string, serverId: string, one: OverlayOutcome): void {
    const servers = this.pending.get(namespace) ?? new Map<string, Map<string, OverlayOutcome>>();
    this.pending.set(namespace, servers);
    const counted = servers.get(serverId) ?? new Map<string, OverlayOutcome>();
    servers.set(serverId, counted);
    const key = keyOfOne(one);
    counted.set(key, sum(counted.get(key), one));
  }
}

function merged(a: readonly OverlayOutcome[], b: readonly OverlayOutcome[]): OverlayOutcome[] {
  const all = new Map<string, OverlayOutcome>();
  for (const one of [...a, ...b]) all.set(keyOfOne(one), sum(all.get(keyOfOne(one)), one));
  return [...all.values()].sort((x, y) => compareText(keyOfOne(x), keyOfOne(y)));
}

function sum(a: OverlayOutcome | undefined, b: OverlayOutcome): OverlayOutcome {
  if (!a) return b;
  return {
    ...b,
    overlaySuccesses: a.overlaySuccesses + b.overlaySuccesses,
    overlayFailures: a.overlayFailures + b.overlayFailures,
    ownSuccesses: a.ownSuccesses + b.ownSuccesses,
    ownFailures: a.ownFailures + b.ownFailures,
  };
}

function keyOf(namespace: string, serverId: string): string {
  return `overlay-outcomes/${namespace}/${serverId}`;
}

function keyOfOne({ toolName, version }: Pick<OverlayOutcome, "toolName" | "version">): string {
  return `${toolName} ${version}`;
}
