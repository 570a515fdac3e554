import { Fault, invalidRequest, type Violation } from "../domain/fault.js";
import { checkIsolation, checkServerName } from "../domain/admission/isolation.js";
import { nameViolations } from "../domain/admission/names.js";
import { type ApproveInput, checkApproval } from "../domain/admission/overlay.js";
import { type ApproveToolInput, checkApproveTool, checkQuarantine, type QuarantineInput } from "../domain/admission/quarantine.js";
import { checkRegister } from "../domain/admission/register.js";
import { EVERYBODY, type Principal } from "../domain/identity.js";
import { DEFAULT_NAMESPACE } from "../domain/ids.js";
import type { OverloadLevel, Sheddable } from "../domain/overload.js";
import { DEFAULT_QUOTAS, type Quotas } from "../domain/quotas.js";
import type {
  IsolateInput,
  LiveHealth,
  Notice,
  RegistryApi,
  SchemaLoader,
  ServerName,
  WatchCodec,
  WatchInput,
  WatchSink,
  WithdrawInput,
} from "./api.js";
import { startBackground } from "./background.js";
import { ConditionPublisher } from "./conditions.js";
import type { Deps } from "./deps.js";
import { deregister } from "./deregister.js";
import { healStanding } from "./heal.js";
import { isolate, type Refresher, refresh, resume } from "./isolation.js";
import { CatalogueListingWriter } from "./listing-writer.js";
import type { RegistryObserver } from "./observer.js";
import type { OverlayOutcomes } from "./overlays/outcomes.js";
import { approve, listOverlays, withdraw } from "./overlays/overlays.js";
import { Partition } from "./partition.js";
import { healQuarantines } from "./quarantine/heal.js";
import { approveTool, quarantine } from "./quarantine/quarantine.js";
import type { QualityBook } from "./quality/book.js";
import { readLint } from "./quality/lint.js";
import { partitionIndex } from "./placement.js";
import type { Clock, Entry, Random, Store } from "./ports.js";
import { openWatch, readServer, readServers, readStubs } from "./reads.js";
import { RegisterPace } from "./register/pace.js";
import { register } from "./register/register.js";
import { renew } from "./renew.js";
import type { RingLimits } from "./ring.js";
import { Shedding } from "./shedding.js";
import { Sweeper } from "./sweep.js";
import { leaving, WatchPlaces } from "./watch/places.js";
import { Writes } from "./writes.js";

export interface RegistryOptions {
  readonly deps: Deps;
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly watchCodec: WatchCodec;
  readonly observer: RegistryObserver;
  readonly ring: RingLimits;
  readonly maxWatchers: number;
  /** How much too much there is to do; nothing is shed if unsaid. */
  readonly pressure?: () => OverloadLevel;
  /** DEFAULT_QUOTAS if unsaid. */
  readonly quotas?: Quotas;
}

interface Part {
  readonly partition: Partition;
  readonly writes: Writes;
  readonly sweeper: Sweeper;
}

/** All partitions of this replica behind the one interface that transports call. */
export class Registry implements RegistryApi {
  readonly partitions: readonly Partition[];
  readonly listings: CatalogueListingWriter;
  readonly #parts: readonly Part[];
  readonly #conditions: ConditionPublisher;
  readonly #quotas: Quotas;
  readonly #shedding: Shedding;
  readonly #pace: RegisterPace;
  readonly #places: WatchPlaces;
  readonly #stop = new AbortController();
  #background: Promise<unknown> = Promise.resolve();
  #loader: SchemaLoader | undefined;
  #refresher: Refresher | undefined;
  #quality: QualityBook | undefined;
  #overlayOutcomes: OverlayOutcomes | undefined;
  #health: RegistryApi["health"] | undefined;
  #notices: RegistryApi["notices"] | undefined;
  #draining: Fault | undefined;

  constructor(private readonly options: RegistryOptions) {
    const { deps, store, clock, random, watchCodec, observer, ring } = options;
    const openedAtMs = store.kind === "embedded" ? clock.monotonic() : undefined;
    this.#parts = store.partitions.map((partitionStore) => {
      const partition = new Partition({
        store: partitionStore,
        clock,
        random,
        logger: deps.logger,
        stubs: deps.stubs,
        watch: watchCodec,
        onBroken: (cause) => observer.relist(cause),
        ring,
      });
      const writes = new Writes(partition, (result) => observer.commit(result));
      partition.onHistory((_live, lost) => {
        if (partition.state.kind !== "growing") return;
        void healStanding(writes, lost, deps.logger, (n) => observer.restored(n), this.#stop.signal);
        void healQuarantines(writes, lost, deps.logger, this.#stop.signal);
      });
      return { partition, writes, sweeper: new Sweeper(writes, openedAtMs) };
    });
    this.#quotas = options.quotas ?? DEFAULT_QUOTAS;
    this.#shedding = new Shedding(options.pressure ?? (() => 0), random, (what) => observer.shed(what));
    this.#pace = new RegisterPace(this.#quotas.registersPerSecond, clock);
    this.#places = new WatchPlaces({ all: options.maxWatchers, perPrincipal: this.#quotas.watchersPerPrincipal });
    this.partitions = this.#parts.map((p) => p.partition);
    const writesOf = (namespace: string): Writes => this.#part(namespace).writes;
    this.#conditions = new ConditionPublisher(writesOf, clock, deps.logger);
    this.listings = new CatalogueListingWriter(deps, writesOf, this.#conditions);
  }

  /** The loader reads the catalogue, so it can only be made after it. */
  useLoader(loader: SchemaLoader): void {
    this.#loader = loader;
  }

  /** Listings read the catalogue, too. */
  useRefresher(refresher: Refresher): void {
    this.#refresher = refresher;
  }

  /** Who counts outcomes reads the catalogue, too. */
  useOverlayOutcomes(outcomes: OverlayOutcomes): void {
    this.#overlayOutcomes = outcomes;
  }

  /** Who judges descriptions reads the catalogue, too. */
  useQuality(book: QualityBook): void {
    this.#quality = book;
  }

  /** Who looks after servers reads the catalogue, too. */
  useHealth(health: RegistryApi["health"], notices: RegistryApi["notices"]): void {
    this.#health = health;
    this.#notices = notices;
  }

  start(): void {
    for (const { partition } of this.#parts) partition.start();
    this.#background = Promise.all(
      this.#parts.map(({ partition, sweeper }) =>
        startBackground(this.options.deps, partition, sweeper, this.options.observer, this.#stop.signal),
      ),
    );
  }

  /** Refuses new watches and ends the open ones, so that clients go to another replica. */
  drain(): void {
    this.#draining = new Fault("DRAINING", "this replica is stopping; go on at another one", { retryAfterMs: 0 });
    for (const { partition } of this.#parts) partition.failWatches(this.#draining);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#conditions.stop();
    await Promise.all([this.#background, ...this.#parts.map((p) => p.partition.stop())]);
  }

  partitionOf(namespace: string): Partition {
    return this.#part(namespace).partition;
  }

  onEntry(listener: (entry: Entry) => void): void {
    for (const { partition } of this.#parts) partition.onEntry(listener);
  }

  /** Open watches of this replica. */
  get watchers(): { readonly active: number; readonly lagging: number } {
    let all = 0;
    let lagging = 0;
    for (const { partition } of this.#parts) {
      const { state } = partition;
      const folds = state.kind === "starting" ? [] : state.kind === "growing" ? [state.old, state.live] : [state.live];
      for (const { hub } of folds) {
        all += hub.size;
        lagging += hub.lagging;
      }
    }
    return { active: all - lagging, lagging };
  }

  async register(input: Parameters<RegistryApi["register"]>[0], caller: Principal = EVERYBODY) {
    this.#shedding.admit("register");
    this.#pace.admit(caller);
    refuseAny(checkRegister(input));
    const namespace = namespaceOf(input.namespace);
    const { writes } = this.#part(namespace);
    const { outcome, output } = await register(this.options.deps, writes, namespace, input, caller, this.#quotas);
    this.options.observer.registered(outcome);
    return output;
  }

  async renew(
    namespace: string,
    leases: readonly { leaseId: string; setDigest: string }[],
    caller: Principal = EVERYBODY,
  ) {
    const name = namespaceOf(namespace);
    const results = await renew(this.partitionOf(name), name, leases, caller);
    for (const { state } of results) this.options.observer.renewed(state);
    return results;
  }

  async deregister(namespace: string, target: Parameters<RegistryApi["deregister"]>[1], caller: Principal = EVERYBODY) {
    const name = namespaceOf(namespace);
    return deregister(this.#part(name).writes, name, target, caller);
  }

  async isolate(input: IsolateInput, caller: Principal = EVERYBODY) {
    refuseAny(checkIsolation(input));
    const namespace = namespaceOf(input.namespace);
    const { serverId, why } = input;
    const written = await isolate(this.#part(namespace).writes, namespace, serverId, why, caller);
    this.options.deps.logger.info({ namespace, server: serverId, by: caller.id, why }, "a server was isolated");
    return written;
  }

  async resume(name: ServerName, caller: Principal = EVERYBODY) {
    refuseAny(checkServerName(name.namespace, name.serverId));
    const namespace = namespaceOf(name.namespace);
    const { serverId } = name;
    const output = await resume(this.#part(namespace).writes, namespace, serverId);
    if (output.resumed)
      this.options.deps.logger.info({ namespace, server: serverId, by: caller.id }, "a server was resumed");
    return output;
  }

  async refresh(name: ServerName, caller: Principal = EVERYBODY) {
    refuseAny(checkServerName(name.namespace, name.serverId));
    const namespace = namespaceOf(name.namespace);
    const { serverId } = name;
    if (!this.#refresher) throw stillStarting();
    const output = await refresh(this.#part(namespace).writes, namespace, serverId, this.#refresher);
    const { listed, changed } = output;
    const facts = { namespace, server: serverId, by: caller.id, listed, changed };
    this.options.deps.logger.info(facts, "a server was listed because an operator asked");
    return output;
  }

  async approveOverlays(input: ApproveInput, caller: Principal = EVERYBODY) {
    refuseAny(checkApproval(input));
    const namespace = namespaceOf(input.namespace);
    const { serverId, trial } = input;
    const output = await approve(this.#part(namespace).writes, namespace, input, caller);
    if (output.changed > 0)
      this.options.deps.logger.info({ namespace, server: serverId, by: caller.id, tools: output.changed, trial }, "labels were overlaid");
    return output;
  }

  async withdrawOverlays(input: WithdrawInput, caller: Principal = EVERYBODY) {
    refuseAny(checkServerName(input.namespace, input.serverId));
    const namespace = namespaceOf(input.namespace);
    const { serverId, toolNames } = input;
    const output = await withdraw(this.#part(namespace).writes, namespace, serverId, toolNames);
    if (output.toolNames.length > 0)
      this.options.deps.logger.info({ namespace, server: serverId, by: caller.id, tools: output.toolNames.length }, "overlays were withdrawn");
    return output;
  }

  async quarantineTool(input: QuarantineInput, caller: Principal = EVERYBODY) {
    refuseAny(checkQuarantine(input));
    const namespace = namespaceOf(input.namespace);
    const { toolId: tool, reason } = input;
    const output = await quarantine(this.#part(namespace).writes, namespace, input, caller);
    this.options.deps.logger.info({ namespace, tool, by: caller.id, reason, digest: output.tool.digest }, "a tool was quarantined");
    return output;
  }

  async approveTool(input: ApproveToolInput, caller: Principal = EVERYBODY) {
    refuseAny(checkApproveTool(input));
    const namespace = namespaceOf(input.namespace);
    const { toolId: tool, anyDigest } = input;
    const output = await approveTool(this.#part(namespace).writes, namespace, input);
    const { released, approvedDigest } = output;
    if (released || approvedDigest !== "" || anyDigest)
      this.options.deps.logger.info({ namespace, tool, by: caller.id, released, digest: approvedDigest, any: anyDigest }, "a definition of a tool was approved");
    return output;
  }

  async overlays(q: Parameters<RegistryApi["overlays"]>[0]) {
    const namespace = namespaceOf(q.namespace);
    return listOverlays(this.#part(namespace).writes, namespace, q.serverIds, this.#overlayOutcomes);
  }

  get version(): number {
    let sum = 0;
    for (const { partition } of this.#parts) sum += partition.version;
    return sum;
  }

  async stubs(q: Parameters<RegistryApi["stubs"]>[0]) {
    const namespace = namespaceOf(q.filter.namespace);
    return readStubs(this.partitionOf(namespace), { ...q, filter: { ...q.filter, namespace } });
  }

  async servers(q: Parameters<RegistryApi["servers"]>[0]) {
    const namespace = namespaceOf(q.namespace);
    return readServers(this.partitionOf(namespace), { ...q, namespace });
  }

  async server(q: Parameters<RegistryApi["server"]>[0]) {
    const namespace = namespaceOf(q.namespace);
    return readServer(this.partitionOf(namespace), { ...q, namespace });
  }

  async lint(q: Parameters<RegistryApi["lint"]>[0]) {
    const namespace = namespaceOf(q.namespace);
    if (!this.#quality) throw stillStarting();
    return readLint(this.partitionOf(namespace), this.#quality, { ...q, namespace });
  }

  health(namespace: string, serverId: string): LiveHealth | undefined {
    return this.#health?.(namespace, serverId);
  }

  notices(namespace: string): readonly Notice[] {
    return this.#notices?.(namespaceOf(namespace)) ?? [];
  }

  async schema(q: Parameters<RegistryApi["schema"]>[0]) {
    const namespace = namespaceOf(q.namespace);
    const partition = this.partitionOf(namespace);
    // A read in memory waits for nothing, not even for the next turn.
    const { fold, stale } = q.minRevision === "" ? partition.now() : await partition.at(q.minRevision);
    const position = fold.history.head;
    const loader = this.#loading();
    const asked = { ...q, namespace };
    const held = loader.held(asked);
    if (held) return { schema: held, position, stale };
    this.#shedding.admit("load");
    return { schema: await loader.full(asked), position, stale };
  }

  async schemas(q: Parameters<RegistryApi["schemas"]>[0]) {
    const namespace = namespaceOf(q.namespace);
    const { fold, stale } = await this.partitionOf(namespace).at(q.minRevision);
    const position = fold.history.head;
    const refuse = () => this.#shedding.refusal("load");
    return { results: await this.#loading().batch({ ...q, namespace, refuse }), position, stale };
  }

  async watch(input: WatchInput, sink: WatchSink, caller: Principal = EVERYBODY) {
    if (this.#draining) throw this.#draining;
    this.#shedding.admit("watch");
    const namespace = namespaceOf(input.filter.namespace);
    const filter = { ...input.filter, namespace };
    const leave = this.#places.take(caller);
    try {
      const handle = await openWatch(this.partitionOf(namespace), { ...input, filter }, leaving(sink, leave));
      return {
        drained: () => handle.drained(),
        close: () => {
          leave();
          handle.close();
        },
      };
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** Why this is refused at the moment, before anybody reads the request; undefined while it is not. */
  refusal(what: Sheddable): Fault | undefined {
    return this.#shedding.refusal(what);
  }

  #loading(): SchemaLoader {
    if (!this.#loader) throw stillStarting();
    return this.#loader;
  }

  #part(namespace: string): Part {
    return this.#parts[partitionIndex(namespace, this.#parts.length)] as Part;
  }
}

function stillStarting(): Fault {
  return new Fault("NOT_READY", "this replica is still starting", { retryAfterMs: 500 });
}

function refuseAny(violations: readonly Violation[]): void {
  if (violations.length > 0) throw invalidRequest(violations);
}

/** Empty means default; anything else must be a name that a Register could have created. */
function namespaceOf(asked: string): string {
  if (asked === "") return DEFAULT_NAMESPACE;
  refuseAny(nameViolations("namespace", "namespace", asked));
  return asked;
}
