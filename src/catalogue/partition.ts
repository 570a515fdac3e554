import { Fault, invalidRequest, type RelistCause, relistRequired } from "../domain/fault.js";
import { LIMITS } from "../domain/limits.js";
import { parseRevision, type Position } from "../domain/revision.js";
import type { WatchCodec } from "./api.js";
import { Growth } from "./growth.js";
import { History } from "./history.js";
import type { Clock, Entry, Logger, PartitionStore, Random, StubCodec } from "./ports.js";
import type { RingLimits } from "./ring.js";
import { WatchHub } from "./watch/hub.js";

/** A history together with those who watch it. */
export interface Fold {
  readonly history: History;
  readonly hub: WatchHub;
}

/** What a partition of this replica is doing. */
export type PartitionState =
  /** `cause`: what the store's connection says, for operators only. */
  | { readonly kind: "starting"; readonly problem: string; readonly cause?: string }
  | { readonly kind: "following"; readonly live: Fold }
  /** The chain broke: `old` serves, stale, while `live` grows beside it. */
  | { readonly kind: "growing"; readonly old: Fold; readonly live: Fold; readonly growth: Growth };

export interface PartitionDeps {
  readonly store: PartitionStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly stubs: StubCodec;
  readonly watch: WatchCodec;
  /** The history that this replica followed is broken. */
  readonly onBroken: (cause: RelistCause) => void;
  readonly ring: RingLimits;
}

/** Entries folded per turn, so that a long catch-up does not hold the thread. */
const POLL_ENTRIES = 256;
const RETRY_MIN_MS = 50;
/** Between two looks for a swap of histories, which wakes nobody. */
const LOOK_AGAIN_MS = 20;
const RETRY_MAX_MS = 1_000;

/** One partition on this replica: follows its log, and knows from what to answer. */
export class Partition {
  #state: PartitionState = { kind: "starting", problem: "the catalogue is being loaded" };
  /** Monotonic ms since when the store does not answer; undefined while it does. */
  #awaySince: number | undefined;
  /** The last outage that ended: how long it took and when it ended. The brake asks. */
  lastOutage: { readonly lastedMs: number; readonly endedAtMs: number } | undefined;
  /** Monotonic ms of the last broken chain. */
  chainBrokenAtMs: number | undefined;
  /** Grows whenever an answer from memory may have become another one. */
  version = 0;
  /** Monotonic ms when the log was last compared with what is folded. */
  comparedAtMs: number | undefined;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  readonly #onEntry = new Set<(entry: Entry) => void>();
  readonly #onHistory = new Set<(fold: Fold, lost: readonly Fold[]) => void>();

  constructor(readonly deps: PartitionDeps) {}

  get index(): number {
    return this.deps.store.partition;
  }

  get state(): PartitionState {
    return this.#state;
  }

  get awaySince(): number | undefined {
    return this.#awaySince;
  }

  /** Hears every entry folded into the live history, after it is folded. */
  onEntry(listener: (entry: Entry) => void): void {
    this.#onEntry.add(listener);
  }

  /** Hears when there is another live history, and when one took over: with those that were lost, the newest first. */
  onHistory(listener: (fold: Fold, lost: readonly Fold[]) => void): void {
    this.#onHistory.add(listener);
  }

  start(): void {
    this.#running ??= this.#run(this.#stop.signal);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** The store is away or the chain broke: what is served may be out of date (P8). */
  get stale(): boolean {
    return this.#awaySince !== undefined || this.#state.kind === "growing";
  }

  /** What plain reads are answered from. */
  serving(): Fold {
    if (this.#state.kind === "starting") throw this.#notReady(this.#state.problem);
    return this.#state.kind === "growing" ? this.#state.old : this.#state.live;
  }

  /** What writes are decided on. */
  live(): Fold {
    if (this.#state.kind === "starting") throw this.#notReady(this.#state.problem);
    return this.#state.live;
  }

  /** The fold that answers a read without `min_revision`. */
  now(): { fold: Fold; stale: boolean } {
    return { fold: this.serving(), stale: this.stale };
  }

  /** The fold that answers a read with this `min_revision` (empty: none), once it has seen it. */
  async at(minRevision: string): Promise<{ fold: Fold; stale: boolean }> {
    if (minRevision === "") return this.now();
    const wanted = this.#parse(minRevision);
    const until = this.deps.clock.monotonic() + LIMITS.minRevisionWaitMs;
    for (;;) {
      if (this.#state.kind === "growing" && this.#state.old.history.ring.check(wanted) === "ok") {
        return { fold: this.#state.old, stale: true };
      }
      const fold = this.live();
      if (wanted.revision <= fold.history.head.revision) {
        if (fold.history.ring.check(wanted) !== "chain") return { fold, stale: this.#awaySince !== undefined };
        throw new Fault("DEAD_REVISION", "min_revision belongs to a history that is gone; read without it", {
          metadata: { cause: "chain" },
        });
      }
      const left = until - this.deps.clock.monotonic();
      if (left <= 0) {
        throw new Fault(
          "REVISION_NOT_REACHED",
          `this replica has not seen min_revision within ${LIMITS.minRevisionWaitMs} ms`,
          {
            retryAfterMs: 1_000,
          },
        );
      }
      // A swap of histories wakes nobody, so look again at least every second.
      await this.waitFolded(fold, wanted.revision, Math.min(left, 1_000));
    }
  }

  /** Waits until the fold has a revision, at most `ms`. Answers whether it has. */
  async waitFolded(fold: Fold, revision: number, ms: number): Promise<boolean> {
    const { folded, forget } = fold.history.whenFolded(revision);
    const timer = new AbortController();
    await Promise.race([folded, this.deps.clock.sleep(ms, timer.signal)]);
    timer.abort();
    forget();
    return revision <= fold.history.head.revision;
  }

  /** Waits until this replica has folded everything that is in the log now. Throws STORE_UNAVAILABLE. */
  async catchUp(): Promise<void> {
    const head = await this.deps.store.log.head();
    const fold = this.live();
    const { revision, chain } = fold.history.head;
    if (head.revision < revision || (head.revision === revision && head.chain !== chain)) return this.#otherHistory(fold);
    await this.waitFolded(fold, head.revision, LIMITS.foldWaitMs);
  }

  /** The log is another one, and the poll under way will say so: what was decided here would be refused until then. */
  async #otherHistory(fold: Fold): Promise<void> {
    const until = this.deps.clock.monotonic() + LIMITS.foldWaitMs;
    while (this.live() === fold && this.deps.clock.monotonic() < until) await this.deps.clock.sleep(LOOK_AGAIN_MS);
  }

  /** Ends all watches. */
  failWatches(fault: Fault): void {
    if (this.#state.kind === "starting") return;
    this.#state.live.hub.failAll(fault);
    if (this.#state.kind === "growing") this.#state.old.hub.failAll(fault);
  }

  /** Says that everybody is up to date. Called every LIMITS.bookmarkMs. */
  bookmark(): void {
    if (this.#state.kind === "following" && this.#awaySince === undefined) this.#state.live.hub.bookmark();
  }

  #parse(minRevision: string): Position {
    const wanted = parseRevision(minRevision);
    if (wanted && wanted.partition === this.index) return wanted;
    const description = wanted ? "belongs to another partition" : "is not a revision that this registry gave";
    throw invalidRequest([{ field: "min_revision", description }]);
  }

  #notReady(problem: string): Fault {
    return new Fault("NOT_READY", `this replica is not ready: ${problem}`, { retryAfterMs: 500 });
  }

  async #run(signal: AbortSignal): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      try {
        if (this.#state.kind === "starting") await this.#load();
        else await this.#follow(this.#state.live, signal);
        failures = 0;
        this.comparedAtMs = this.deps.clock.monotonic();
        this.#storeAnswered();
      } catch (error) {
        if (signal.aborted) return;
        this.#storeFailed(error);
        const cap = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(failures++, 5));
        await this.deps.clock.sleep(cap * (0.5 + this.deps.random.next() / 2), signal);
      }
    }
  }

  async #load(): Promise<void> {
    const live = await this.#newFold();
    this.#enter({ kind: "following", live });
    this.#announce(live, []);
    this.deps.logger.info(
      { partition: this.index, revision: live.history.head.revision, servers: live.history.serverCount },
      "catalogue loaded",
    );
  }

  async #follow(live: Fold, signal: AbortSignal): Promise<void> {
    const result = await this.deps.store.log.poll(live.history.head, POLL_ENTRIES, signal);
    if (result.kind === "broken") return this.#broken(result.cause);
    if (result.entries.length > 0) {
      for (const entry of result.entries) {
        live.history.apply(entry);
        this.version++;
        for (const listener of this.#onEntry) listener(entry);
      }
      live.hub.advanced();
    }
    this.#swapWhenGrown();
  }

  async #broken(cause: RelistCause): Promise<void> {
    const before = this.#state;
    if (before.kind === "starting") return;
    this.chainBrokenAtMs = this.deps.clock.monotonic();
    this.deps.onBroken(cause);
    this.deps.logger.warn({ partition: this.index, cause }, "the log does not continue what this replica holds");
    // Nobody may be told "you have everything" by a history that is known to be broken.
    before.live.hub.setCurrent(false);
    const live = await this.#newFold();
    if (before.kind === "growing") {
      before.live.hub.failAll(relistRequired("chain"));
      // What the log that broke again had grown is as lost as what was held before it.
      const growth = new Growth([before.old.history, before.live.history], this.deps.clock.monotonic());
      this.#enter({ ...before, live, growth });
      // The newer record of a server is the one to restore.
      this.#announce(live, [before.live, before.old]);
      return;
    }
    const old = before.live;
    if (cause === "compacted") {
      // Nothing was lost: this replica fell behind the window, and the snapshot is complete.
      this.#enter({ kind: "following", live });
      old.hub.failAll(relistRequired(cause));
    } else {
      this.#enter({ kind: "growing", old, live, growth: new Growth([old.history], this.deps.clock.monotonic()) });
    }
    this.#announce(live, [old]);
    this.#swapWhenGrown();
  }

  #swapWhenGrown(): void {
    if (this.#state.kind !== "growing") return;
    const { old, live, growth } = this.#state;
    if (!growth.complete(live.history, this.deps.clock.monotonic())) return;
    this.#enter({ kind: "following", live });
    old.hub.failAll(relistRequired("chain"));
    this.#announce(live, []);
    this.deps.logger.info({ partition: this.index, servers: live.history.serverCount }, "the new catalogue took over");
  }

  async #newFold(): Promise<Fold> {
    const history = new History(await this.deps.store.log.snapshot(), this.deps.stubs, this.deps.ring);
    return { history, hub: new WatchHub(history, this.deps.watch) };
  }

  #enter(state: PartitionState): void {
    this.version++;
    this.#state = state;
  }

  #announce(live: Fold, lost: readonly Fold[]): void {
    for (const listener of this.#onHistory) listener(live, lost);
  }

  #storeAnswered(): void {
    if (this.#awaySince === undefined) return;
    const now = this.deps.clock.monotonic();
    this.lastOutage = { lastedMs: now - this.#awaySince, endedAtMs: now };
    this.#awaySince = undefined;
    this.version++;
    if (this.#state.kind !== "starting") this.#state.live.hub.setCurrent(true);
    this.deps.logger.info(
      { partition: this.index, away_ms: Math.round(this.lastOutage.lastedMs) },
      "the store is back",
    );
  }

  #storeFailed(error: unknown): void {
    const text = error instanceof Error ? error.message : String(error);
    // A store that is away is expected and told in a word; anything else is a bug and is told with its stack.
    const away = error instanceof Fault && error.reason === "STORE_UNAVAILABLE";
    const cause = away && error.cause instanceof Error ? error.cause.message : text;
    if (this.#state.kind === "starting") this.#state = { kind: "starting", problem: text, ...(away && { cause }) };
    else this.#state.live.hub.setCurrent(false);
    if (this.#awaySince !== undefined) return;
    this.#awaySince = this.deps.clock.monotonic();
    this.version++;
    const facts = away ? { partition: this.index, reason: cause } : { partition: this.index, err: error };
    const then = this.#state.kind === "starting" ? "waiting for it" : "serving from memory";
    this.deps.logger.warn(facts, `${away ? "the store does not answer" : "the log cannot be read"}; ${then}`);
  }
}
