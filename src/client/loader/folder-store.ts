import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DIGEST_PATTERN } from "../../domain/ids.js";
import type { DefinitionStore, StoredDefinition } from "./definition-store.js";

export interface FolderStoreOptions {
  /** Made if it is not there. */
  readonly folder: string;
  /** What all definitions may have together, bytes; default 64 MiB. The least recently used leave first. */
  readonly maxBytes?: number;
}

const DEFAULT_BYTES = 64 * 1024 * 1024;
/** What a process left behind that ended while it wrote. */
const LEFTOVER_MS = 60_000;
const SUFFIX = ".json";

/**
 * Definitions as files of one folder, `<hex of the digest>.json`. A file appears whole or not at all; what a crash damaged
 * nevertheless is found by its digest when it is read. Several processes may share a folder.
 */
export function folderStore(options: FolderStoreOptions): DefinitionStore {
  return new FolderStore(options);
}

class FolderStore implements DefinitionStore {
  readonly #folder: string;
  readonly #maxBytes: number;
  /** Digest → bytes, the least recently used first. */
  readonly #sizes = new Map<string, number>();
  #bytes = 0;
  #opened: Promise<void> | undefined;

  constructor({ folder, maxBytes = DEFAULT_BYTES }: FolderStoreOptions) {
    this.#folder = folder;
    this.#maxBytes = maxBytes;
  }

  async get(digests: readonly string[]): Promise<(Uint8Array | undefined)[]> {
    await this.#open();
    return Promise.all(digests.map((digest) => this.#read(digest)));
  }

  async put(definitions: readonly StoredDefinition[]): Promise<void> {
    await this.#open();
    for (const { digest, bytes } of definitions) {
      if (bytes.byteLength > this.#maxBytes || this.#sizes.has(digest)) continue;
      const path = this.#path(digest);
      const unfinished = join(this.#folder, `.${randomUUID()}.tmp`);
      try {
        await writeFile(unfinished, bytes, { mode: 0o600 });
        await rename(unfinished, path);
      } catch (error) {
        await rm(unfinished, { force: true });
        throw error;
      }
      this.#count(digest, bytes.byteLength);
    }
    await this.#makeRoom();
  }

  async drop(digest: string): Promise<void> {
    await rm(this.#path(digest), { force: true });
    this.#forget(digest);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #read(digest: string): Promise<Uint8Array | undefined> {
    const path = this.#path(digest);
    try {
      const bytes = await readFile(path);
      this.#count(digest, bytes.byteLength);
      // The next process knows from it what was used last.
      const now = new Date();
      await utimes(path, now, now);
      return bytes;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      this.#forget(digest); // Another process may have taken it away.
      return undefined;
    }
  }

  #path(digest: string): string {
    // A digest becomes a file name, so nothing else may pass.
    if (!DIGEST_PATTERN.test(digest)) throw new TypeError(`"${digest}" is not a digest`);
    return join(this.#folder, digest.slice("sha256:".length) + SUFFIX);
  }

  #count(digest: string, bytes: number): void {
    this.#bytes += bytes - (this.#sizes.get(digest) ?? 0);
    this.#sizes.delete(digest);
    this.#sizes.set(digest, bytes);
  }

  #forget(digest: string): void {
    this.#bytes -= this.#sizes.get(digest) ?? 0;
    this.#sizes.delete(digest);
  }

  async #makeRoom(): Promise<void> {
    for (const digest of [...this.#sizes.keys()]) {
      if (this.#bytes <= this.#maxBytes) return;
      await this.drop(digest);
    }
  }

  /** A failure is tried again by the next call. */
  #open(): Promise<void> {
    this.#opened ??= this.#scan().catch((error: unknown) => {
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }

  async #scan(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const files: { digest: string; bytes: number; usedMs: number }[] = [];
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name);
      const facts = await stat(path).catch(() => undefined); // Another process may just have taken it away.
      if (!facts?.isFile()) continue;
      const digest = `sha256:${name.slice(0, -SUFFIX.length)}`;
      if (name.endsWith(SUFFIX) && DIGEST_PATTERN.test(digest)) {
        files.push({ digest, bytes: facts.size, usedMs: facts.mtimeMs });
      } else if (/^\.[0-9a-f-]{36}\.tmp$/.test(name) && Date.now() - facts.mtimeMs > LEFTOVER_MS) {
        await rm(path, { force: true });
      }
    }
    for (const { digest, bytes } of files.sort((a, b) => a.usedMs - b.usedMs)) this.#count(digest, bytes);
    await this.#makeRoom();
  }
}
