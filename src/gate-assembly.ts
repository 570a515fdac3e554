/** The gate of a replica: follows the catalogue, reads definitions from the store, and loads schemas as everybody does. */
import type { Entry, Logger } from "./catalogue/ports.js";
import type { Fold, Partition } from "./catalogue/partition.js";
import type { Registry } from "./catalogue/registry.js";
import { splitToolId } from "./domain/ids.js";
import type { GateRules } from "./gate-rules.js";
import { laid } from "./catalogue/overlays/lay.js";
import type { ServerView } from "./catalogue/state.js";
import { isWithheld } from "./domain/quarantine.js";
import type { Tool } from "./domain/server.js";
import type { MeaningArm } from "./gate/dense/meaning.js";
import { Gate, type GateDeps } from "./gate/gate.js";
import type { Outcomes } from "./gate/outcomes/outcomes.js";
import type { Cut, GateCatalogue, GateClock, ListedTool } from "./gate/ports.js";
import type { Metrics } from "./ops/metrics.js";
import { findByName } from "./schemas/find.js";
import { stubCodec } from "./store/codec/stub.js";

export interface GateParts {
  readonly registry: Registry;
  readonly clock: Omit<GateClock, "pause">;
  readonly logger: Logger;
  readonly onDefinition?: GateDeps["onDefinition"];
  readonly onReport?: GateDeps["onReport"];
  readonly metrics: Pick<Metrics, "finds" | "findDuration" | "findWithheld" | "gateRulesValid">;
  readonly rules: GateRules;
  /** Undefined where no embedder is set. */
  readonly meaning?: MeaningArm | undefined;
  /** Undefined where nothing is to be remembered. */
  readonly outcomes?: Outcomes | undefined;
}

export function assembleGate({ registry, clock, logger, metrics, rules, onDefinition, onReport, meaning, outcomes }: GateParts): Gate {
  const tellRules = (): void => metrics.gateRulesValid.set(rules.valid ? 1 : 0);
  rules.onChange(tellRules);
  tellRules();
  const gate = new Gate({
    rules: (namespace) => rules.of(namespace),
    meaning,
    outcomes,
    ...(onDefinition && { onDefinition }),
    ...(onReport && { onReport }),
    asTried: triedTools(),
    catalogue: catalogueOf(registry, logger),
    load: async (namespace, toolIds, view, deadlineMs) => {
      const { results } = await registry.schemas({ namespace, toolIds, view, minRevision: "", deadlineMs });
      return results;
    },
    decode: (stub) => stubCodec.decode(stub),
    clock: {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      sleep: (ms, signal) => clock.sleep(ms, signal),
      pause: () => new Promise((resolve) => setImmediate(resolve)),
    },
    observer: {
      found: (fit, ms) => {
        metrics.finds.inc({ fit });
        metrics.findDuration.observe(ms / 1_000);
      },
      withheld: (cause) => metrics.findWithheld.inc({ cause }),
    },
    onError: (err, facts) => logger.error({ err, ...facts }, "a tool could not be put into the gate's index"),
  });
  registry.onEntry(({ change }: Entry) => {
    const { namespace, serverId, header, tools } = change;
    const service = header ? header.title || serverId : undefined;
    const all = (): string[] => (viewOf(registry, namespace, serverId)?.record.tools ?? []).map(({ name }) => name);
    const tried = tools.some(({ after }) => after?.overlay?.overlay.trial === true);
    gate.changed(namespace, serverId, service, tools.map(({ name }) => name), all, tried);
  });
  for (const partition of registry.partitions) {
    partition.onHistory(() => {
      const names = foldsOf(partition).flatMap(({ history }) => [...history.namespaces.keys()]);
      gate.reset(names, (namespace) => registry.partitionOf(namespace) === partition);
    });
  }
  return gate;
}

/** Made once for each tool on trial: the gate knows labels by the tool that has them. */
function triedTools(): (tool: Tool) => Tool {
  const made = new WeakMap<Tool, Tool>();
  return (tool) => {
    if (!tool.overlay?.overlay.trial) return tool;
    const known = made.get(tool) ?? laid(tool, { ...tool.overlay.overlay, trial: false }, stubCodec);
    made.set(tool, known);
    return known;
  };
}

/**
 * While a new catalogue grows beside the old one, reads are answered from the old one and those with a new `min_revision`
 * from the new one: the index holds the tools of both, and each answer only those of its own.
 */
function foldsOf({ state }: Partition): readonly Fold[] {
  if (state.kind === "starting") return [];
  return state.kind === "growing" ? [state.live, state.old] : [state.live];
}

function viewOf(registry: Registry, namespace: string, serverId: string): ServerView | undefined {
  for (const { history } of foldsOf(registry.partitionOf(namespace))) {
    const view = history.server(namespace, serverId);
    if (view) return view;
  }
  return undefined;
}

function catalogueOf(registry: Registry, logger: Logger): GateCatalogue {
  return {
    async at(namespace, minRevision): Promise<Cut> {
      const { fold, stale } = await registry.partitionOf(namespace).at(minRevision);
      const ns = fold.history.namespace(namespace);
      return {
        position: fold.history.head,
        stale,
        tool: (id) => {
          const parts = splitToolId(id);
          const view = parts && ns?.servers.get(parts.serverId);
          return view && held(view, parts?.toolName ?? "");
        },
        server: (serverId) => ns?.servers.get(serverId)?.tools,
        servers: () => (ns?.ordered ?? []).map(({ serverId, tools }) => ({ serverId, names: tools })),
      };
    },
    current(namespace, id) {
      const parts = splitToolId(id);
      const view = parts && viewOf(registry, namespace, parts.serverId);
      return view && held(view, parts.toolName);
    },
    all: (namespace) => allOf(registry, namespace),
    async definitions(namespace, digests) {
      try {
        const blobs = await registry.partitionOf(namespace).deps.store.blobs.get(namespace, digests);
        return blobs.map((blob) => blob?.bytes);
      } catch (err) {
        // The store's absence is told elsewhere; what could not be read is asked for again.
        logger.debug({ err, namespace }, "definitions for the gate's index could not be read");
        return digests.map(() => undefined);
      }
    },
  };
}

/** Views are immutable, and the list of them is copied: reading it takes many turns. */
function* allOf(registry: Registry, namespace: string): Generator<ListedTool> {
  const views = new Map<string, ServerView>();
  for (const { history } of foldsOf(registry.partitionOf(namespace)))
    for (const view of history.namespace(namespace)?.ordered ?? []) if (!views.has(view.serverId)) views.set(view.serverId, view);
  for (const view of views.values()) for (const tool of view.record.tools) yield listed(view, tool);
}

function held(view: ServerView, name: string): ListedTool | undefined {
  const tool = findByName(view.record.tools, name);
  return tool && listed(view, tool);
}

/** A withheld tool is known to the gate, so that it can be named; to others it is no sibling. */
function listed({ record, tools }: ServerView, tool: Tool): ListedTool {
  const { serverId, title, availability } = record.header;
  const siblings = isWithheld(tool) ? record.tools : tools;
  return { tool, serverId, service: title || serverId, availability, siblings };
}
