/** The book of quality of a replica: follows the catalogue, and hears of definitions from whoever reads them. */
import { OverlayOutcomes } from "./catalogue/overlays/outcomes.js";
import type { Clock, Logger } from "./catalogue/ports.js";
import { QualityBook } from "./catalogue/quality/book.js";
import type { Registry } from "./catalogue/registry.js";
import { toolId } from "./domain/ids.js";
import { ownStubOf } from "./domain/overlay.js";
import { stubCodec } from "./store/codec/stub.js";

export interface QualityParts {
  readonly registry: Registry;
  readonly monotonic: () => number;
  readonly logger: Logger;
}

export function assembleQuality({ registry, monotonic, logger }: QualityParts): QualityBook {
  const book: QualityBook = new QualityBook({
    current: (namespace, id) => {
      for (const history of historiesOf(registry, namespace)) {
        const found = history.tool(namespace, id);
        if (found) return stubCodec.decode(ownStubOf(found.tool));
      }
      return undefined;
    },
    *all(namespace) {
      for (const history of historiesOf(registry, namespace))
        for (const { serverId, record } of history.namespace(namespace)?.ordered ?? [])
          for (const { name } of record.tools) yield toolId(serverId, name);
    },
    pause: () => new Promise((resolve) => setImmediate(resolve)),
    monotonic,
    onError: (err, facts) => logger.error({ err, ...facts }, "a tool's description could not be judged"),
  });
  registry.onEntry(({ change }) => book.touch(change.namespace, change.serverId, change.tools.map(({ name }) => name)));
  for (const partition of registry.partitions) {
    partition.onHistory(() => {
      const { state } = partition;
      const namespaces = state.kind === "starting" ? [] : [...state.live.history.namespaces.keys()];
      book.reset(namespaces, (namespace) => registry.partitionOf(namespace) === partition);
    });
  }
  registry.useQuality(book);
  return book;
}

/** Counts what came of calls, by the labels that agents were shown. */
export function assembleOverlayOutcomes({ registry, clock, logger }: { readonly registry: Registry; readonly clock: Clock; readonly logger: Logger }): OverlayOutcomes {
  const outcomes = new OverlayOutcomes({
    notesOf: (namespace) => registry.partitionOf(namespace).deps.store.notes,
    overlayOf: (namespace, id) => {
      const found = historiesOf(registry, namespace).map((history) => history.tool(namespace, id));
      return found.find((tool) => tool !== undefined)?.tool.overlay?.overlay;
    },
    codec: stubCodec.overlays,
    clock,
    logger,
  });
  registry.useOverlayOutcomes(outcomes);
  return outcomes;
}

/** While a new catalogue grows beside the old one, tools of both are judged. */
function historiesOf(registry: Registry, namespace: string) {
  const { state } = registry.partitionOf(namespace);
  if (state.kind === "starting") return [];
  return state.kind === "growing" ? [state.live.history, state.old.history] : [state.live.history];
}
