import { LIMITS } from "../../src/domain/limits.js";
import type { LoadOutcome } from "../../src/schemas/loader.js";
import { createDefinitions } from "../../src/schemas/definitions.js";
import { createLister } from "../../src/schemas/lister.js";
import { createLoader } from "../../src/schemas/loader.js";
import type { ListingIntake } from "../../src/catalogue/writer-port.js";
import { stubCodec } from "../../src/store/codec/stub.js";
import { MemoryStore } from "../../src/store/memory/memory-store.js";
import { FakeClock, SeededRandom } from "./fake-clock.js";
import { CountedBlobs, HandDirectory, HandUpstream, NAMESPACE, SILENT } from "./records.js";

/** A loader on a memory store, with a hand-made catalogue and hand-made servers. */
export function loaderBench(options: { intake?: Partial<ListingIntake> } = {}) {
  const clock = new FakeClock();
  const store = new MemoryStore(clock, new SeededRandom(1));
  const partition = store.partitions[0];
  if (!partition) throw new Error("a store has a partition");
  const blobs = new CountedBlobs(partition.blobs);
  const directory = new HandDirectory();
  const upstream = new HandUpstream();
  const warnings: string[] = [];
  const logger = { ...SILENT, warn: (_: object, message: string) => void warnings.push(message) };
  const heard: string[] = [];
  const intake: ListingIntake = {
    listed: async (_ns, serverId, _listing, endpoint) => void heard.push(`listed ${serverId} ${endpoint}`),
    failed: async (_ns, serverId, error) => void heard.push(`failed ${serverId} ${error.kind}`),
    ...options.intake,
  };
  const outcomes: LoadOutcome[] = [];
  const definitions = createDefinitions({ blobsOf: () => blobs, clock, logger });
  const lister = createLister({ upstream, directory, intake, definitions, clock, logger });
  const loader = createLoader({ definitions, directory, lister, codec: stubCodec, clock, onLoad: (o) => void outcomes.push(o) });
  const tool = (toolId: string, deadlineMs?: number) =>
    loader.full({ namespace: NAMESPACE, key: { kind: "tool", toolId }, view: "full", deadlineMs: deadlineMs ?? LIMITS.loadCallerMs });
  return { clock, blobs, directory, upstream, warnings, heard, outcomes, definitions, lister, loader, tool };
}
