import { toolId } from "../../domain/ids.js";
import { WARNING_KINDS, type WarningKind } from "../../domain/quality/warning.js";
import type { StubFields } from "../../domain/stub.js";
import { QualityTally } from "./tally.js";

export interface BookDeps {
  /** The tool's own label now, whatever lies over it; undefined for one that is gone. */
  readonly current: (namespace: string, toolId: string) => StubFields | undefined;
  /** tool_ids of a whole namespace. */
  readonly all: (namespace: string) => Iterable<string>;
  /** Lets others have their turn. */
  readonly pause: () => Promise<void>;
  readonly monotonic: () => number;
  /** A tool could not be judged: a bug, which must not keep the others from being judged. */
  readonly onError: (error: unknown, facts: { readonly namespace: string; readonly tool: string }) => void;
}

/** Judged before others have their turn. */
const SLICE_MS = 3;

/**
 * How well the tools of all namespaces are described, kept at what the catalogue holds. A change only names the tool: what it
 * is now is read when its turn comes, so neither order nor repetition matters.
 */
export class QualityBook {
  private readonly tallies = new Map<string, QualityTally>();
  private readonly changed = new Map<string, Set<string>>();
  private working: Promise<void> | undefined;
  private stopped = false;

  constructor(private readonly deps: BookDeps) {}

  /** These tools of a server are other ones now, or are gone. */
  touch(namespace: string, serverId: string, names: Iterable<string>): void {
    this.queue(namespace, [...names].map((name) => toolId(serverId, name)));
  }

  /** A whole partition's catalogue is another one: these are its namespaces, and of those that were, which `belong` to it. */
  reset(namespaces: Iterable<string>, belongs: (namespace: string) => boolean): void {
    for (const [namespace, tally] of this.tallies) if (belongs(namespace)) this.queue(namespace, tally.ids());
    for (const namespace of namespaces) this.queue(namespace, this.deps.all(namespace));
  }

  /** A definition became known; it counts if the tool still has it. */
  learned(namespace: string, id: string, digest: string, definition: Uint8Array): void {
    const label = this.deps.current(namespace, id);
    if (label && label.digest === digest) this.tallyOf(namespace).put(id, label, definition);
  }

  /** Resolves when every change so far is judged. */
  async caughtUp(): Promise<void> {
    await this.working;
  }

  worst(namespace: string, accept: (serverId: string) => boolean, most: number): ReturnType<QualityTally["worst"]> {
    return (this.tallies.get(namespace) ?? new QualityTally()).worst(accept, most);
  }

  /** Tools of all namespaces with each kind of warning. */
  counts(): ReadonlyMap<WarningKind, number> {
    const sums = new Map<WarningKind, number>(WARNING_KINDS.map((kind) => [kind, 0]));
    for (const { counts } of this.tallies.values())
      for (const [kind, count] of counts) sums.set(kind, (sums.get(kind) ?? 0) + count);
    return sums;
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.working;
  }

  private queue(namespace: string, ids: Iterable<string>): void {
    const changed = this.changed.get(namespace) ?? new Set<string>();
    for (const id of ids) changed.add(id);
    if (changed.size === 0) return;
    this.changed.set(namespace, changed);
    this.working ??= this.work().finally(() => (this.working = undefined));
  }

  /** In slices, beginning in the next turn: a Register of ten thousand tools must not hold up whoever folds it. */
  private async work(): Promise<void> {
    const { pause, monotonic } = this.deps;
    while (this.changed.size > 0 && !this.stopped) {
      await pause();
      const until = monotonic() + SLICE_MS;
      for (const [namespace, ids] of this.changed) {
        for (const id of ids) {
          ids.delete(id);
          this.judge(namespace, id);
          if (monotonic() >= until) break;
        }
        if (ids.size === 0) this.changed.delete(namespace);
        if (monotonic() >= until) break;
      }
    }
  }

  private judge(namespace: string, id: string): void {
    try {
      const label = this.deps.current(namespace, id);
      const tally = this.tallyOf(namespace);
      if (label) tally.put(id, label);
      else tally.remove(id);
      if (tally.size === 0) this.tallies.delete(namespace);
    } catch (error) {
      this.deps.onError(error, { namespace, tool: id });
    }
  }

  private tallyOf(namespace: string): QualityTally {
    const known = this.tallies.get(namespace);
    if (known) return known;
    const made = new QualityTally();
    this.tallies.set(namespace, made);
    return made;
  }
}
