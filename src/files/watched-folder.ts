import { readdirSync, readFileSync, statSync } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../catalogue/ports.js";
import { Problems } from "./problems.js";
import { LOOK_EVERY_MS, type Parsed } from "./watched-file.js";

export interface WatchedFolder<T> {
  /** By the name of each file without its ending. */
  readonly value: ReadonlyMap<string, T>;
  /** Everything in the folder is in force as it stands there. */
  readonly valid: boolean;
  /** Hears of every change of the two. */
  onChange(listener: () => void): () => void;
  close(): void;
}

export interface FolderOptions<T> {
  /** For messages, such as `the rules`. */
  readonly what: string;
  readonly path: string;
  /** A file counts whose name ends with one of these; what begins with a dot never does. */
  readonly endings: readonly string[];
  /** What a name may be without its ending, and its words in an error. */
  readonly names: { readonly pattern: RegExp; readonly expected: string };
  readonly maxFiles: number;
  readonly maxBytes: number;
  readonly parse: (name: string, content: Buffer) => Parsed<T>;
  readonly log: Logger;
}

/**
 * Reads the files of a folder now, and again whenever one of them comes, changes or goes. A file that cannot be used leaves what was
 * read of it before in force, a folder that cannot be read leaves everything, and each is told of once.
 * Throws Problems with everything that is wrong where something cannot be used at the start.
 */
export function watchFolder<T>(options: FolderOptions<T>): WatchedFolder<T> {
  return new Watched(options);
}

interface Known<T> {
  readonly content: Buffer;
  readonly value: T;
}

class Watched<T> implements WatchedFolder<T> {
  private known = new Map<string, Known<T>>();
  /** By file; the folder's own under "". */
  private complaints = new Map<string, string>();
  private readonly listeners = new Set<() => void>();
  private timer: NodeJS.Timeout | undefined;
  private closed = false;

  constructor(private readonly options: FolderOptions<T>) {
    const { what, path } = options;
    const problems = new Map<string, readonly string[]>();
    for (const [file, name] of this.filesIn(listed(what, path), problems)) {
      const content = this.contentNow(file);
      const parsed = Buffer.isBuffer(content) ? options.parse(name, content) : content;
      if (parsed.ok) this.known.set(name, { content: content as Buffer, value: parsed.value });
      else problems.set(file, parsed.problems);
    }
    if (problems.size > 0) throw new Problems([...problems].map(([file, texts]) => `${capital(what)} ${join(path, file)} cannot be used: ${texts.join("; ")}.`));
    this.wait();
  }

  get value(): ReadonlyMap<string, T> {
    return new Map([...this.known].map(([name, { value }]) => [name, value]));
  }

  get valid(): boolean {
    return this.complaints.size === 0;
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.listeners.clear();
  }

  private wait(): void {
    this.timer = setTimeout(() => void this.look(), LOOK_EVERY_MS).unref();
  }

  private async look(): Promise<void> {
    const { path, what, log } = this.options;
    const problems = new Map<string, readonly string[]>();
    let changed = false;
    try {
      const files = this.filesIn(await readdir(path), problems);
      const names = new Set([...files].map(([, name]) => name));
      // A name that is a problem now is no name that went.
      for (const name of problems.keys()) names.add(this.nameOf(name) ?? "");
      for (const [file, name] of files) changed = (await this.take(file, name, problems)) || changed;
      for (const name of [...this.known.keys()]) {
        if (this.closed || names.has(name)) continue;
        this.known.delete(name);
        changed = true;
        log.info({ folder: path, name }, `${what} of ${name} went: there are none for it now`);
      }
    } catch (error) {
      problems.set("", [reasonOf(error)]);
    }
    if (this.closed) return;
    const told = this.complain(problems);
    if (changed || told) for (const listener of [...this.listeners]) listener();
    this.wait();
  }

  /** True where it is in force now and was not before. */
  private async take(file: string, name: string, problems: Map<string, readonly string[]>): Promise<boolean> {
    const { parse, path, what, log } = this.options;
    const content = await this.contentOf(file);
    if (!Buffer.isBuffer(content)) {
      // Between the list and the reading it went: the next look finds it gone.
      if (content.problems.length > 0) problems.set(file, content.problems);
      return false;
    }
    if (this.known.get(name)?.content.equals(content)) return false;
    const parsed = parse(name, content);
    if (!parsed.ok) {
      problems.set(file, parsed.problems);
      return false;
    }
    this.known.set(name, { content, value: parsed.value });
    log.info({ file: join(path, file) }, `${what} changed and are in force`);
    return true;
  }

  /** Once for each new problem; answers whether there is something else to complain of than before. */
  private complain(problems: ReadonlyMap<string, readonly string[]>): boolean {
    const { path, what, log } = this.options;
    const now = new Map([...problems].map(([file, texts]) => [file, texts.join("; ")]));
    let other = now.size !== this.complaints.size;
    for (const [file, text] of now) {
      if (this.complaints.get(file) === text) continue;
      other = true;
      log.error({ file: join(path, file), problems: problems.get(file) }, `${what} cannot be used: what was read before stays in force`);
    }
    this.complaints = now;
    return other;
  }

  /** File → name, in the order of names. */
  private filesIn(all: readonly string[], problems: Map<string, readonly string[]>): ReadonlyMap<string, string> {
    const { names, maxFiles } = this.options;
    const files = new Map<string, string>();
    const taken = new Map<string, string>();
    for (const file of [...all].sort()) {
      const name = this.nameOf(file);
      if (name === undefined) continue;
      const before = taken.get(name);
      if (!names.pattern.test(name)) problems.set(file, [`its name must be ${names.expected}`]);
      else if (before !== undefined) {
        // Which of them is meant is nobody's to guess.
        files.delete(before);
        problems.set(file, [`${before} is for ${name} as well`]);
      } else if (files.size >= maxFiles) problems.set(file, [`the folder has more than ${maxFiles} files`]);
      else files.set(file, name);
      taken.set(name, file);
    }
    return files;
  }

  private nameOf(file: string): string | undefined {
    const ending = this.options.endings.find((one) => file.endsWith(one));
    return ending === undefined || file.startsWith(".") ? undefined : file.slice(0, -ending.length);
  }

  private contentNow(file: string): Buffer | { readonly ok: false; readonly problems: readonly string[] } {
    const path = join(this.options.path, file);
    try {
      return this.unfit(statSync(path)) ?? readFileSync(path);
    } catch (error) {
      return { ok: false, problems: [reasonOf(error)] };
    }
  }

  private async contentOf(file: string): Promise<Buffer | { readonly ok: false; readonly problems: readonly string[] }> {
    const path = join(this.options.path, file);
    try {
      return this.unfit(await stat(path)) ?? (await readFile(path));
    } catch (error) {
      const gone = (error as NodeJS.ErrnoException).code === "ENOENT";
      return { ok: false, problems: gone ? [] : [reasonOf(error)] };
    }
  }

  /** A pipe would never be read to its end, and a huge file only to say that it is huge. */
  private unfit(stats: { isFile(): boolean; readonly size: number }): { readonly ok: false; readonly problems: readonly string[] } | undefined {
    const { maxBytes } = this.options;
    if (!stats.isFile()) return { ok: false, problems: ["it is no file"] };
    if (stats.size > maxBytes) return { ok: false, problems: [`it has ${stats.size} bytes, at most ${maxBytes} are taken`] };
    return undefined;
  }
}

function listed(what: string, path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    throw new Problems([`The folder of ${what} ${path} cannot be read: ${(error as NodeJS.ErrnoException).code ?? "unreadable"}.`]);
  }
}

function reasonOf(error: unknown): string {
  return `it cannot be read (${(error as NodeJS.ErrnoException).code ?? "unreadable"})`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
