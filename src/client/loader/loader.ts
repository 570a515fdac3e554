import { Availability } from "../../gen/toolcrib/v1/stub_pb.js";
import type { CatalogueChange } from "../follower/state.js";
import type { Timers } from "../timers.js";
import { CheckedStore, type TroubleSink } from "./checked-store.js";
import type { DefinitionStore } from "./definition-store.js";
import { type AskBatch, fetchDefinitions } from "./fetch.js";
import { substitutesOf, withInstead } from "./instead.js";
import { type Brought, type Labels, type Load, type LoadedTool, type LoadOptions, missing } from "./load.js";
import { DefinitionMemory } from "./memory.js";
import { Remembered } from "./remembered.js";
import { within } from "./within.js";

export interface LoaderOptions {
  readonly ask: AskBatch;
  readonly labels: Labels;
  readonly timers: Timers;
  readonly tell: TroubleSink;
  /** Asked before the registry, and given what the registry answers. */
  readonly store?: DefinitionStore;
  /** Definitions in memory, bytes; default 32 MiB. */
  readonly memoryBytes?: number;
  /** Of a turn, ms; default 200. */
  readonly deadlineMs?: number;
}

const MEMORY_BYTES = 32 * 1024 * 1024;
const DEADLINE_MS = 200;
/** Of a turn, the part that a store may take before the registry is asked. */
const STORE_SHARE = 0.25;
/** What came too late for its turn is waited for this long, for the next one. */
const CATCH_UP_MS = 10_000;
const WARM_MS = 10_000;
/** A registry that could not be reached is not asked again for this long where something known will do. */
const AWAY_MS = 1_000;
/** Definitions asked for only to stand in for others. */
const RESERVES = 8;

/** What is known of a tool before anybody is asked. */
interface Known {
  readonly digest: string;
  /** The registry says so now; otherwise it was so when it was last heard of. */
  readonly current: boolean;
  readonly away: boolean;
}

/**
 * Whole definitions for a turn, side by side and within a deadline: from memory, else from a store beside it, else from the
 * registry. Memory is keyed by digest and the digest is the follower's, so a definition that was invalidated is never used
 * again; it is dropped in the very moment the follower hears of it.
 */
export class Loader {
  readonly #ask: AskBatch;
  readonly #labels: Labels;
  readonly #timers: Timers;
  readonly #store: CheckedStore | undefined;
  readonly #memory: DefinitionMemory;
  readonly #deadlineMs: number;
  readonly #tell: TroubleSink;
  readonly #stopListening: () => void;
  /** Loads under way by tool and digest: whoever comes later joins. */
  readonly #underWay = new Map<string, Promise<Brought>>();
  /** The digest of each tool as the registry last answered it, for agents that follow nothing. */
  readonly #answered = new Remembered<string>(10_000);
  /** Digests that some tool had before. */
  readonly #invalidated = new Remembered<true>(10_000);
  readonly #catchingUp = new Set<string>();
  readonly #warm = new Set<string>();
  #awayUntil = Number.NEGATIVE_INFINITY;
  #closed = false;

  constructor(options: LoaderOptions) {
    this.#ask = options.ask;
    this.#labels = options.labels;
    this.#timers = options.timers;
    this.#tell = options.tell;
    this.#store = options.store && new CheckedStore(options.store, options.timers, options.tell);
    this.#memory = new DefinitionMemory(options.memoryBytes ?? MEMORY_BYTES);
    this.#deadlineMs = options.deadlineMs ?? DEADLINE_MS;
    this.#stopListening = options.labels.on("change", (change) => this.#changed(change));
  }

  /** Definitions in memory now. */
  get held(): { readonly definitions: number; readonly bytes: number } {
    return { definitions: this.#memory.size, bytes: this.#memory.bytes };
  }

  /** Answers within the deadline, and never rejects: what is not here by then is left out and named. */
  async load(toolIds: readonly string[], options: LoadOptions = {}): Promise<Load> {
    const ids = [...new Set(toolIds)];
    const until = this.#timers.now() + (options.deadlineMs ?? this.#deadlineMs);
    const wanted = this.#bring(ids, until);
    const absent = ids.filter((id) => !this.#inMemory(id));
    const reserves = this.#bring(this.#reservesFor(absent, ids, options.next ?? []), until);
    const got = await this.#settle(wanted, until);
    const tools = ids.flatMap((id) => loadedIn(got.get(id)));
    const lost = ids.flatMap((id) => missingIn(got.get(id)));
    if (lost.length === 0) return { tools, missing: [] };
    const spare = await this.#collect(reserves, until);
    const next = options.next ?? [];
    return {
      tools,
      missing: withInstead(
        lost,
        tools,
        ({ toolId }, substitutes) => [...substitutes, ...substitutesOf(this.#labels.stub(toolId)), ...next],
        (id) => this.#standIn(id, spare.get(id)),
      ),
    };
  }

  /**
   * For what every turn needs: loads it within `timeoutMs` (default 10 s), lets it leave memory last, and loads it anew as soon as
   * it is invalidated.
   */
  async warm(toolIds: readonly string[], { timeoutMs = WARM_MS }: { readonly timeoutMs?: number } = {}): Promise<Load> {
    for (const id of toolIds) this.#warm.add(id);
    return this.load(toolIds, { deadlineMs: timeoutMs });
  }

  /** Once the store has what it was given. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#stopListening();
    await this.#store?.close();
  }

  /** One promise per tool; they fulfil, and some of them only after `until`. */
  #bring(toolIds: readonly string[], until: number): Map<string, Promise<Brought>> {
    const brought = new Map<string, Promise<Brought>>();
    const asked: string[] = [];
    for (const id of toolIds) {
      const here = this.#inMemory(id);
      const underWay = this.#underWay.get(this.#keyOf(id));
      if (here) brought.set(id, Promise.resolve({ kind: "loaded", tool: here }));
      else if (underWay) brought.set(id, underWay);
      else asked.push(id);
    }
    if (asked.length === 0) return brought;
    const together = this.#read(asked, until);
    for (const id of asked) {
      brought.set(id, this.#join(id, together.then((all) => all.get(id) ?? tooLate(id))));
    }
    return brought;
  }

  #join(id: string, load: Promise<Brought>): Promise<Brought> {
    const key = this.#keyOf(id);
    const shared = load.finally(() => {
      if (this.#underWay.get(key) === shared) this.#underWay.delete(key);
    });
    this.#underWay.set(key, shared);
    return shared;
  }

  /** From the store, then from the registry. */
  async #read(toolIds: readonly string[], until: number): Promise<Map<string, Brought>> {
    const brought = await this.#fromStore(toolIds, until);
    const left = toolIds.filter((id) => !brought.has(id));
    for (const [id, one] of await this.#fromRegistry(left, until - this.#timers.now())) brought.set(id, one);
    return brought;
  }

  async #fromStore(toolIds: readonly string[], until: number): Promise<Map<string, Brought>> {
    const brought = new Map<string, Brought>();
    const known = toolIds.flatMap((id) => {
      const facts = this.#known(id);
      return facts ? [{ id, ...facts }] : [];
    });
    const found = await this.#store?.get([...new Set(known.map((k) => k.digest))], (until - this.#timers.now()) * STORE_SHARE);
    for (const [digest, bytes] of found ?? []) this.#memory.put(digest, bytes);
    for (const { id, digest, current, away } of known) {
      const bytes = found?.get(digest);
      if (bytes && current) {
        brought.set(id, { kind: "loaded", tool: { toolId: id, digest, bytes, freshness: away ? "stale" : "cached", from: "store" } });
      }
    }
    return brought;
  }

  async #fromRegistry(toolIds: readonly string[], timeoutMs: number): Promise<Map<string, Brought>> {
    if (toolIds.length === 0) return new Map();
    const { state } = this.#labels;
    const minRevision = state.kind === "live" ? state.revision : "";
    const now = (): number => this.#timers.now();
    const brought = await fetchDefinitions(this.#ask, toolIds, { timeoutMs, minRevision, now });
    const loaded = [...brought.values()].flatMap(loadedIn);
    for (const { toolId, digest, bytes } of loaded) this.#hold(toolId, digest, bytes);
    this.#store?.put(loaded);
    const away = [...brought.values()].some((b) => b.kind === "missing" && b.missing.why === "unreachable");
    if (loaded.length > 0) this.#awayUntil = Number.NEGATIVE_INFINITY;
    else if (away) this.#awayUntil = now() + AWAY_MS;
    return brought;
  }

  #hold(toolId: string, digest: string, bytes: Uint8Array): void {
    this.#memory.put(digest, bytes);
    this.#answered.set(toolId, digest);
    if (this.#warm.has(toolId)) this.#memory.keep(digest);
  }

  /** What came until then. */
  async #collect(promises: ReadonlyMap<string, Promise<Brought>>, until: number): Promise<Map<string, Brought>> {
    const came = new Map<string, Brought>();
    const collecting = Promise.all([...promises].map(async ([id, promise]) => void came.set(id, await promise)));
    await within(this.#timers, until - this.#timers.now(), collecting);
    return new Map(came);
  }

  /** What came until then; for the others the last definition known, marked stale, or why there is none. */
  async #settle(promises: ReadonlyMap<string, Promise<Brought>>, until: number): Promise<Map<string, Brought>> {
    const came = await this.#collect(promises, until);
    return new Map([...promises.keys()].map((id) => [id, this.#judge(id, came.get(id))]));
  }

  #judge(id: string, brought: Brought | undefined): Brought {
    if (brought?.kind === "loaded") return this.#stillGood(id, brought);
    if (brought?.missing.why === "gone") return brought;
    const last = this.#lastKnown(id);
    if (last) return { kind: "loaded", tool: last };
    const late = brought ?? missing(id, "late", `the definition of ${id} did not come within this turn's deadline; it goes on loading`);
    if (late.kind === "missing" && late.missing.why === "late") this.#catchUp(id);
    return late;
  }

  /** A definition may have been invalidated while it was on its way. */
  #stillGood(id: string, brought: Extract<Brought, { kind: "loaded" }>): Brought {
    const { tool } = brought;
    const present = this.#known(id);
    if (!present?.current || present.digest === tool.digest || !this.#invalidated.has(tool.digest)) return brought;
    const here = this.#inMemory(id);
    if (here) return { kind: "loaded", tool: here };
    this.#catchUp(id);
    return missing(id, "late", `the definition of ${id} changed while it was loaded; the new one is not here yet`);
  }

  /** For the next turn: with time for a server that is slow, or a registry that is far away. */
  #catchUp(id: string): void {
    const key = this.#keyOf(id);
    if (this.#closed || this.#catchingUp.has(key)) return;
    this.#catchingUp.add(key);
    const late = this.#underWay.get(key) ?? Promise.resolve(undefined);
    void late
      .then((brought) => {
        if (this.#closed || brought?.kind === "loaded") return;
        const load = this.#fromRegistry([id], CATCH_UP_MS);
        return this.#join(id, load.then((all) => all.get(id) ?? tooLate(id)));
      })
      .finally(() => this.#catchingUp.delete(key));
  }

  /** The definitions of before must not be used again, and those of every turn are wanted again. */
  #changed({ events }: CatalogueChange): void {
    for (const { toolId, stub, oldDigest, newDigest } of events) {
      if (oldDigest !== "" && oldDigest !== newDigest) {
        this.#memory.delete(oldDigest);
        this.#invalidated.set(oldDigest, true);
      }
      if (!stub) this.#answered.delete(toolId);
      else if (this.#warm.has(toolId) && oldDigest !== "" && !this.#closed) {
        void this.load([toolId], { deadlineMs: WARM_MS }).then(({ missing: [lost] }) => {
          if (lost) this.#tell({ what: "warm-failed", message: lost.message });
        });
      }
    }
  }

  /** Tools that may have to stand in for those that are not in memory: substitutes first. */
  #reservesFor(absent: readonly string[], wanted: readonly string[], next: readonly string[]): string[] {
    if (absent.length === 0) return [];
    const substitutes = absent.flatMap((id) => substitutesOf(this.#labels.stub(id)));
    const reserves = new Set([...substitutes, ...next].filter((id) => !wanted.includes(id)));
    return [...reserves].slice(0, RESERVES);
  }

  /** Only what can be called now stands in for another. */
  #standIn(id: string, brought: Brought | undefined): LoadedTool | undefined {
    if (this.#labels.stub(id)?.availability === Availability.UNAVAILABLE) return undefined;
    return brought?.kind === "loaded" ? brought.tool : this.#inMemory(id);
  }

  /** What needs nobody to be asked. */
  #inMemory(id: string): LoadedTool | undefined {
    const known = this.#known(id);
    const bytes = known && this.#memory.get(known.digest);
    if (!bytes) return undefined;
    if (known.current) return fromMemory(id, known.digest, bytes, known.away);
    return this.#timers.now() < this.#awayUntil ? fromMemory(id, known.digest, bytes, true) : undefined;
  }

  #lastKnown(id: string): LoadedTool | undefined {
    const known = this.#known(id);
    const bytes = known && this.#memory.get(known.digest);
    return bytes && fromMemory(id, known.digest, bytes, true);
  }

  #known(id: string): Known | undefined {
    const label = this.#labels.stub(id);
    if (label?.digest) {
      const away = label.availability === Availability.UNAVAILABLE;
      return { digest: label.digest, current: this.#labels.state.kind === "live", away };
    }
    const answered = this.#answered.get(id);
    return answered === undefined ? undefined : { digest: answered, current: false, away: false };
  }

  #keyOf(id: string): string {
    return `${id} ${this.#labels.stub(id)?.digest ?? ""}`;
  }
}

function fromMemory(toolId: string, digest: string, bytes: Uint8Array, stale: boolean): LoadedTool {
  return { toolId, digest, bytes, freshness: stale ? "stale" : "cached", from: "memory" };
}

function tooLate(id: string): Brought {
  return missing(id, "late", `the definition of ${id} did not come in time`);
}

function loadedIn(brought: Brought | undefined): LoadedTool[] {
  return brought?.kind === "loaded" ? [brought.tool] : [];
}

function missingIn(brought: Brought | undefined): Extract<Brought, { kind: "missing" }>[] {
  return brought?.kind === "missing" ? [brought] : [];
}
