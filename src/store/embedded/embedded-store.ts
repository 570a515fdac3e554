/** The default store: LevelDB in a folder of this machine, for one process. An acknowledged commit is on the disk. */
import { mkdir, realpath } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { ClassicLevel } from "classic-level";
import type { Clock, Logger, PartitionStore, Random, Store } from "../../catalogue/ports.js";
import { PartitionEngine } from "../memory/engine.js";
import { enginePartition } from "../memory/partition.js";
import { DEFAULT_WINDOW } from "../memory/memory-store.js";
import type { Window } from "../prepare.js";
import type { Database, DatabaseHolder } from "./journal.js";
import { LevelJournal } from "./journal.js";

export interface EmbeddedOptions {
  /** Folder of the registry's data; created if absent. The database is its subfolder `store`. */
  readonly dataDir: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Fixed when the folder is first used; what the folder has if unsaid, 1 for a new one. */
  readonly partitions?: number | undefined;
  /** LIMITS.windowRevisions and LIMITS.windowBytes if unsaid. */
  readonly window?: Window;
}

/** What the folder says of itself. A newer format is refused: it may mean what this version would misread. */
const FORMAT = 1;
const META_KEY = "meta";

/** Throws an Error whose message says in one sentence what is wrong with the folder. */
export async function openEmbeddedStore(options: EmbeddedOptions): Promise<Store> {
  const { dataDir, window = DEFAULT_WINDOW, clock, random, logger } = options;
  const holder = await openDatabase(dataDir);
  try {
    const count = await partitionsOf(holder.current, dataDir, options.partitions);
    const engines: PartitionEngine[] = [];
    for (let partition = 0; partition < count; partition++) {
      const journal = new LevelJournal(holder, partition);
      const tables = await journal.read();
      engines.push(new PartitionEngine({ partition, journal, clock, random, window, logger }, tables));
    }
    return storeOf(engines, holder);
  } catch (error) {
    await holder.close();
    throw explain(dataDir, error);
  }
}

function storeOf(engines: readonly PartitionEngine[], holder: DatabaseHolder): Store {
  const closed = new AbortController();
  const partitions: readonly PartitionStore[] = engines.map((engine) => enginePartition(engine, closed.signal));
  return {
    kind: "embedded",
    partitions,
    async close() {
      if (closed.signal.aborted) return;
      closed.abort();
      await Promise.all(engines.map((engine) => engine.idle()));
      await holder.close();
    },
  };
}

/**
 * Folders open in this process. LevelDB must not be asked twice: refusing the second open, it would close the lock file,
 * and with that the system drops the lock of the first, so that another process could come in.
 */
const openHere = new Set<string>();

async function openDatabase(dataDir: string): Promise<DatabaseHolder> {
  let location: string;
  try {
    // Registrants' endpoints and definitions are in it: nobody else's to read.
    await makeFolder(join(resolve(dataDir), "store"));
    location = await realpath(join(dataDir, "store"));
  } catch (error) {
    throw explain(dataDir, error);
  }
  if (openHere.has(location)) throw inUse(dataDir);
  openHere.add(location);
  const open = async (): Promise<Database> => {
    const database: Database = new ClassicLevel(location, { keyEncoding: "utf8", valueEncoding: "view" });
    await database.open();
    return database;
  };
  let current: Database;
  try {
    current = await open();
  } catch (error) {
    openHere.delete(location);
    throw explain(dataDir, error);
  }
  return {
    get current() {
      return current;
    },
    async reopen() {
      await current.close();
      current = await open();
    },
    async close() {
      await current.close();
      openHere.delete(location);
    },
  };
}

/** Node's own recursive `mkdir` never ends where a parent is there and takes no folders, as in /proc. */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return;
    if (code !== "ENOENT" || dirname(path) === path) throw error;
    await makeFolder(dirname(path));
    await mkdir(path, { mode: 0o700 });
  }
}

function inUse(dataDir: string, cause?: unknown): Error {
  return new FolderError(
    `the data folder ${resolve(dataDir)} is in use by another registry: stop that one, or give this one its own with --data-dir (TOOLCRIB_DATA_DIR)`,
    { cause },
  );
}

async function partitionsOf(database: Database, dataDir: string, wanted: number | undefined): Promise<number> {
  const bytes = await database.get(META_KEY);
  if (!bytes) {
    const partitions = wanted ?? 1;
    const meta = JSON.stringify({ format: FORMAT, partitions });
    await database.put(META_KEY, Buffer.from(meta), { sync: true });
    return partitions;
  }
  const meta = JSON.parse(Buffer.from(bytes).toString("utf8")) as { format?: unknown; partitions?: unknown };
  if (meta.format !== FORMAT)
    throw new FolderError(
      `the data folder ${dataDir} has format ${String(meta.format)}, and this version reads format ${FORMAT}: use the version that wrote it, or another folder`,
    );
  if (wanted !== undefined && meta.partitions !== wanted)
    throw new FolderError(
      `the data folder ${dataDir} was created with ${String(meta.partitions)} partitions, and ${wanted} were asked for: the number is fixed when a store is created`,
    );
  return Number(meta.partitions);
}

/** Already a sentence for the operator. */
class FolderError extends Error {}

function explain(dataDir: string, error: unknown): Error {
  if (error instanceof FolderError) return error;
  const cause = rootOf(error);
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  const text = cause instanceof Error ? cause.message : String(cause);
  if (code === "LEVEL_LOCKED") return inUse(dataDir, error);
  const sentence =
    code === "LEVEL_CORRUPTION" || code === ""
      ? `the data folder ${dataDir} is damaged (${text}): restore it from a copy, or start with another folder`
      : `the data folder ${dataDir} cannot be used (${text}): check that it is a folder this user may read and write`;
  return new FolderError(sentence, { cause: error });
}

function rootOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? rootOf(error.cause) : error;
}
