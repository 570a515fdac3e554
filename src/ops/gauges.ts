import type { Clock } from "../catalogue/ports.js";
import type { Partition } from "../catalogue/partition.js";
import type { Registry } from "../catalogue/registry.js";
import type { Metrics } from "./metrics.js";

/** How often what can only be looked at is looked at. Scrapes come every 10 to 60 s. */
const LOOK_MS = 1_000;

/** Collapsed tools that are named: an operator looks at a few, and a server that fails whole has hundreds. */
const COLLAPSED_NAMED = 50;

export interface GaugeDeps {
  readonly registry: Registry;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** What the rooms above the catalogue hold: servers looked after, claims of them, definitions in memory, tools in the gate's index. */
  readonly kept: () => {
    readonly kept: number;
    readonly held: number;
    readonly memoryBytes: number;
    readonly findable: number;
    /** Reported outcomes that are not in the store yet, and tools whose calls fail. */
    readonly unsaved: number;
    readonly collapsed: readonly { readonly namespace: string; readonly toolId: string }[];
    readonly unread: number;
    /** Tools by what there is to mend in their descriptions. */
    readonly toMend: ReadonlyMap<string, number>;
  };
  /** Whether a replica that has just started finds what its catalogue holds. */
  readonly firstIndex: { readonly problem: string | undefined; onEnd(listener: () => void): void };
  /** Hears whether this replica has a catalogue to serve from and finds what is in it, each time anew. */
  readonly onReady: (ready: boolean) => void;
}

/** Keeps the gauges at what is; answers how to stop. */
export function keepGauges(deps: GaugeDeps): () => void {
  const stop = new AbortController();
  const loop = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      look(deps);
      for (const partition of deps.registry.partitions) await lookAtTail(deps, partition);
      await deps.clock.sleep(LOOK_MS, stop.signal);
    }
  };
  // A replica that is loading becomes ready within milliseconds; nobody should wait a whole look for it.
  for (const partition of deps.registry.partitions) partition.onHistory(() => look(deps));
  deps.firstIndex.onEnd(() => !stop.signal.aborted && look(deps));
  void loop();
  return () => stop.abort();
}

function look({ registry, metrics, kept: keptNow, firstIndex, onReady }: GaugeDeps): void {
  let tools = 0;
  let withheld = 0;
  let servers = 0;
  let namespaces = 0;
  let unavailable = 0;
  const breakers = { closed: 0, open: 0, isolated: 0 };
  for (const { state } of registry.partitions) {
    if (state.kind === "starting") continue;
    const { history } = state.kind === "growing" ? state.old : state.live;
    tools += history.toolCount;
    withheld += history.withheldCount;
    servers += history.serverCount;
    for (const ns of history.namespaces.values()) {
      if (ns.ordered.length > 0) namespaces++;
      for (const { record } of ns.ordered) {
        breakers[record.header.breaker.kind]++;
        if (record.header.availability === "unavailable") unavailable++;
      }
    }
  }
  for (const [state, count] of Object.entries(breakers)) metrics.breakers.set({ state }, count);
  metrics.serversUnavailable.set(unavailable);
  metrics.catalogueTools.set(tools);
  metrics.quarantinedTools.set(withheld);
  metrics.catalogueServers.set(servers);
  metrics.catalogueNamespaces.set(namespaces);
  metrics.stale.set(registry.partitions.some((p) => p.stale) ? 1 : 0);
  metrics.storeUp.set(registry.partitions.some((p) => p.awaySince !== undefined) ? 0 : 1);
  const { active, lagging } = registry.watchers;
  metrics.watchers.set({ state: "active" }, active);
  metrics.watchers.set({ state: "lagging" }, lagging);
  const { kept, held, memoryBytes, findable, unread, unsaved, collapsed, toMend } = keptNow();
  for (const [kind, count] of toMend) metrics.toolsToMend.set({ kind }, count);
  metrics.serversKept.set({ state: "held" }, held);
  metrics.serversKept.set({ state: "standby" }, kept - held);
  metrics.memoryBlobBytes.set(memoryBytes);
  metrics.gateTools.set(findable);
  metrics.outcomesUnsaved.set(unsaved);
  metrics.toolsCollapsed.set(collapsed.length);
  metrics.toolCollapsed.reset();
  for (const { namespace, toolId } of collapsed.slice(0, COLLAPSED_NAMED)) metrics.toolCollapsed.set({ namespace, tool: toolId }, 1);
  metrics.gateUnread.set(unread);
  onReady(registry.partitions.every((p) => p.state.kind !== "starting") && firstIndex.problem === undefined);
}

async function lookAtTail({ metrics, clock }: GaugeDeps, partition: Partition): Promise<void> {
  if (partition.state.kind === "starting") return;
  const label = { partition: String(partition.index) };
  const folded = partition.live().history.head.revision;
  metrics.logRevision.set(label, folded);
  const sinceMs = clock.monotonic() - (partition.comparedAtMs ?? clock.monotonic());
  // The log is compared about once a second, so less than that is no lag.
  metrics.tailLagSeconds.set(label, sinceMs < 1_500 ? 0 : sinceMs / 1_000);
  if (partition.awaySince !== undefined) return;
  try {
    const head = await partition.deps.store.log.head();
    metrics.tailLagRevisions.set(label, Math.max(0, head.revision - partition.live().history.head.revision));
  } catch {
    // The tail meets the same failure and says so; the gauge keeps its last value meanwhile.
  }
}
