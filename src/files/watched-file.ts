import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { Logger } from "../catalogue/ports.js";

/** How often a file is looked at: seldom enough to cost nothing, often enough that a revocation takes hold at once. */
export const LOOK_EVERY_MS = 1_000;

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  /** One sentence each; never a secret. */
  | { readonly ok: false; readonly problems: readonly string[] };

export interface WatchedFiles<T> {
  readonly value: T;
  onChange(listener: (value: T) => void): () => void;
  close(): void;
}

export interface WatchOptions<T> {
  /** For messages, such as `the tokens file`. */
  readonly what: string;
  readonly paths: readonly string[];
  /** Gets the content of each path, in order. */
  readonly parse: (contents: readonly Buffer[]) => Parsed<T>;
  readonly log: Logger;
}

/**
 * Reads files now, and again whenever their content changes. Content is compared, not dates, because mounted secrets are
 * replaced by moving links. Files that cannot be used leave what was read before in force, and are told of once.
 * Throws an Error with every problem when they cannot be used at the start.
 */
export function watchFiles<T>(options: WatchOptions<T>): WatchedFiles<T> {
  return new Watched(options);
}

class Watched<T> implements WatchedFiles<T> {
  value: T;
  private seen: readonly Buffer[];
  private complaint = "";
  private readonly listeners = new Set<(value: T) => void>();
  private timer: NodeJS.Timeout | undefined;
  private closed = false;

  constructor(private readonly options: WatchOptions<T>) {
    const { what, paths, parse } = options;
    try {
      this.seen = paths.map((path) => readFileSync(path));
    } catch (error) {
      throw new Error(`${capital(what)} cannot be read: ${reasonOf(error)}.`, { cause: error });
    }
    const parsed = parse(this.seen);
    if (!parsed.ok) throw new Error(`${capital(what)} ${paths.join(", ")} cannot be used: ${parsed.problems.join("; ")}.`);
    this.value = parsed.value;
    this.wait();
  }

  onChange(listener: (value: T) => void): () => void {
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
    const { paths } = this.options;
    try {
      const contents = await Promise.all(paths.map((path) => readFile(path)));
      if (this.closed) return;
      if (contents.some((content, i) => !this.seen[i]?.equals(content))) this.take(contents);
      else this.complaint = "";
    } catch (error) {
      this.complain([reasonOf(error)]);
    }
    if (!this.closed) this.wait();
  }

  private take(contents: readonly Buffer[]): void {
    const { what, paths, parse, log } = this.options;
    const parsed = parse(contents);
    if (!parsed.ok) return this.complain(parsed.problems);
    this.seen = contents;
    this.complaint = "";
    this.value = parsed.value;
    log.info({ files: paths }, `${what} changed and is in force`);
    for (const listener of [...this.listeners]) listener(parsed.value);
  }

  /** Once for each new problem: a broken file is looked at every second. */
  private complain(problems: readonly string[]): void {
    const text = problems.join("; ");
    if (text === this.complaint) return;
    this.complaint = text;
    const { what, paths, log } = this.options;
    log.error({ files: paths, problems }, `${what} cannot be used: what was read before stays in force`);
  }
}

/** The system's word alone: a message of the file system may hold more than a log should. */
function reasonOf(error: unknown): string {
  const { code, path } = error as NodeJS.ErrnoException;
  return `${path ?? "a file"}: ${code ?? "unreadable"}`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
