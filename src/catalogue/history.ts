import { applyChange } from "../domain/change.js";
import { splitToolId } from "../domain/ids.js";
import { type Position, samePosition } from "../domain/revision.js";
import type { ServerRecord } from "../domain/server.js";
import type { Entry, Snapshot, StubCodec } from "./ports.js";
import { Ring, type RingLimits } from "./ring.js";
import { NamespaceState, ServerView } from "./state.js";

/**
 * One log as folded so far: the catalogue it adds up to, and its recent entries. A broken chain begins a new History;
 * an old one is never repaired.
 */
export class History {
  readonly ring: Ring;
  readonly namespaces = new Map<string, NamespaceState>();
  /** lease_id → the server it belongs to. */
  readonly #leases = new Map<string, { namespace: string; serverId: string }>();
  #waiters: { revision: number; wake: () => void }[] = [];
  serverCount = 0;
  /** Listed ones. */
  toolCount = 0;
  /** Tools that are withheld. */
  withheldCount = 0;

  constructor(
    snapshot: Snapshot,
    private readonly codec: StubCodec,
    limits: RingLimits,
  ) {
    this.ring = new Ring(snapshot.base, limits);
    for (const record of snapshot.records) this.#put(record, record.revision);
    for (const entry of snapshot.entries) this.ring.append(entry);
    // Caches are keyed by these; a namespace's state is as new as the snapshot.
    for (const ns of this.namespaces.values()) ns.revision = snapshot.position.revision;
    if (!samePosition(this.ring.head, snapshot.position)) {
      throw new Error(`the snapshot's entries end at ${this.ring.head.revision}, not at ${snapshot.position.revision}`);
    }
  }

  get head(): Position {
    return this.ring.head;
  }

  namespace(name: string): NamespaceState | undefined {
    return this.namespaces.get(name);
  }

  server(namespace: string, serverId: string): ServerView | undefined {
    return this.namespaces.get(namespace)?.servers.get(serverId);
  }

  /** A listed tool and its server, by tool_id. */
  tool(namespace: string, toolId: string) {
    const id = splitToolId(toolId);
    if (!id) return undefined;
    const view = this.server(namespace, id.serverId);
    const tool = view?.tool(id.toolName);
    return view && tool ? { view, tool } : undefined;
  }

  serverOfLease(leaseId: string): { namespace: string; serverId: string } | undefined {
    return this.#leases.get(leaseId);
  }

  /** Folds the entry that directly follows the head. */
  apply(entry: Entry): void {
    this.ring.append(entry);
    const { change, position } = entry;
    const before = this.server(change.namespace, change.serverId)?.record;
    const after = applyChange(before, change, position.revision);
    if (after) this.#put(after, position.revision);
    else this.#remove(change.namespace, change.serverId, position.revision);
    this.#wake();
  }

  /** Resolves when `revision` is folded. The caller bounds it with its own time-out and then calls `forget`. */
  whenFolded(revision: number): { folded: Promise<void>; forget: () => void } {
    if (revision <= this.head.revision) return { folded: Promise.resolve(), forget: () => undefined };
    let forget = () => undefined as void;
    const folded = new Promise<void>((resolve) => {
      const waiter = { revision, wake: resolve };
      this.#waiters.push(waiter);
      forget = () => {
        this.#waiters = this.#waiters.filter((w) => w !== waiter);
      };
    });
    return { folded, forget };
  }

  #put(record: ServerRecord, revision: number): void {
    const { namespace, serverId } = record.header;
    let ns = this.namespaces.get(namespace);
    if (!ns) {
      ns = new NamespaceState();
      this.namespaces.set(namespace, ns);
    }
    const old = ns.servers.get(serverId);
    this.#count(old, -1);
    const view = new ServerView(record, this.codec);
    ns.put(view, revision);
    this.#count(view, 1);
  }

  #remove(namespace: string, serverId: string, revision: number): void {
    const ns = this.namespaces.get(namespace);
    this.#count(ns?.servers.get(serverId), -1);
    ns?.remove(serverId, revision);
  }

  #count(view: ServerView | undefined, sign: 1 | -1): void {
    if (!view) return;
    this.serverCount += sign;
    this.toolCount += sign * view.tools.length;
    this.withheldCount += sign * (view.record.tools.length - view.tools.length);
    const { namespace, serverId, instances } = view.record.header;
    for (const { leaseId } of instances) {
      if (!leaseId) continue;
      if (sign > 0) this.#leases.set(leaseId, { namespace, serverId });
      else this.#leases.delete(leaseId);
    }
  }

  #wake(): void {
    const ready = this.#waiters.filter((w) => w.revision <= this.head.revision);
    if (ready.length === 0) return;
    this.#waiters = this.#waiters.filter((w) => w.revision > this.head.revision);
    for (const w of ready) w.wake();
  }
}
