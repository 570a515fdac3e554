/** The embedder that an operator named: its key, its way out, and where vectors are kept. */
import { createRequire } from "node:module";
import type { Clock, Logger, Notes, Random } from "./catalogue/ports.js";
import type { Config } from "./config/setting.js";
import { alsoAllowing, type EgressPolicy } from "./domain/admission/egress.js";
import { watchKey } from "./files/api-key.js";
import type { WatchedFiles } from "./files/watched-file.js";
import type { VectorShelf } from "./gate/dense/embedder.js";
import { MeaningArm } from "./gate/dense/meaning.js";
import type { ExactSearch } from "./gate/dense/vector-table.js";
import type { Metrics } from "./ops/metrics.js";
import { createEgress, type Egress, type Resolve } from "./upstream/egress.js";
import { embed } from "./upstream/embedder.js";

/** What has to be opened for an embedder; closing it ends both. */
export interface EmbedderFiles {
  readonly egress: Egress;
  /** Undefined where no key is set. */
  readonly key: WatchedFiles<string> | undefined;
  close(): void;
}

/** Undefined where no embedder is set. Throws an Error when its URL is never dialled, or its key cannot be read. */
export function openEmbedder(config: Config, policy: EgressPolicy, log: Logger, resolve: Resolve | undefined): EmbedderFiles | undefined {
  const { embedder, embedderKeyFile } = config;
  if (embedder === "") return undefined;
  // The operator named it, so its host is allowed, wherever it is; what is never dialled is not dialled for him either.
  const egress = createEgress(alsoAllowing(policy, embedder), resolve);
  try {
    const reason = egress.refusal(embedder);
    if (reason !== undefined) throw new Error(`--embedder (TOOLCRIB_EMBEDDER) cannot be dialled: ${reason}`);
    const key = embedderKeyFile === "" ? undefined : watchKey("the embedder's key", embedderKeyFile, log);
    const close = (): void => {
      key?.close();
      egress.close();
    };
    return { egress, key, close };
  } catch (error) {
    egress.close();
    throw error;
  }
}

export interface MeaningParts {
  readonly config: Config;
  readonly files: EmbedderFiles;
  readonly notesOf: (namespace: string) => Notes;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, "embeddings">;
}

export function assembleMeaning({ config, files, notesOf, clock, random, logger, metrics }: MeaningParts): MeaningArm {
  const { embedder: url, embedderModel: model, embedderBudget: budgetMs } = config;
  return new MeaningArm({
    embedder: {
      model,
      embed: (texts, signal) => embed(files.egress, { url, model, key: files.key?.value ?? "" }, texts, signal),
    },
    shelf: shelfIn(notesOf, logger),
    exact: nativeSearch(logger),
    clock: {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      sleep: (ms, signal) => clock.sleep(ms, signal),
      pause: () => new Promise((resolve) => setImmediate(resolve)),
    },
    random: () => random.next(),
    observer: {
      embedded: (what, result) => metrics.embeddings.inc({ what, result }),
      onError: (err, facts) => logger.warn({ err, ...facts }, "the embedder made no vector; answers are by words"),
    },
    budgetMs,
  });
}

/** A vector that nobody put again for so long is made anew: models and catalogues change. */
const KEPT_MS = 90 * 86_400_000;

function shelfIn(notesOf: (namespace: string) => Notes, logger: Logger): VectorShelf {
  const keyOf = (namespace: string, key: string) => `vector/${namespace}/${key}`;
  return {
    async get(namespace, keys) {
      try {
        const notes = await Promise.all(keys.map((key) => notesOf(namespace).get(keyOf(namespace, key))));
        return notes.map((note) => note?.bytes);
      } catch (err) {
        logger.debug({ err, namespace }, "vectors could not be read from the store; they are made anew");
        return keys.map(() => undefined);
      }
    },
    async put(namespace, vectors) {
      try {
        await Promise.all([...vectors].map(([key, bytes]) => notesOf(namespace).put(keyOf(namespace, key), bytes, KEPT_MS)));
      } catch (err) {
        logger.debug({ err, namespace }, "vectors could not be kept in the store");
      }
    },
  };
}

/** The part of usearch that is used. */
interface Usearch {
  readonly exactSearch: (
    rows: Int8Array,
    query: Int8Array,
    dimensions: number,
    count: number,
    metric: string,
    threads: number,
  ) => { readonly keys: BigUint64Array; readonly distances: Float32Array };
}

/** An optional dependency: where it is not installed, or not for this machine, a loop does the same. */
function nativeSearch(logger: Logger): ExactSearch | undefined {
  try {
    const { exactSearch } = createRequire(import.meta.url)("usearch") as Usearch;
    return (rows, query, dimensions, count) => {
      const { keys, distances } = exactSearch(rows, query, dimensions, count, "cos", 1);
      return Array.from(keys, (row, i) => ({ row: Number(row), similarity: 1 - (distances[i] as number) }));
    };
  } catch (err) {
    logger.info({ err }, "usearch is not installed here: vectors are compared by a loop, at a tenth of the speed");
    return undefined;
  }
}
