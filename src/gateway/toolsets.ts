/** Toolsets as the gateway reads and changes them. They live in ToolsetService; what stands here only bridges a registry that is away. */
import { createHash } from "node:crypto";
import { RegistryError } from "../client/index.js";
import { isAway } from "./away.js";
import type { GatewayObserver } from "./observer.js";
import type { RegistryLink } from "./registry.js";
import { type Caller, FACTS, type Toolset } from "./words.js";

/** What is remembered for the time when the registry is away. */
const REMEMBERED = 2_000;
/** After the registry was away, remembered toolsets are answered without waiting for it again. */
const AWAY_MS = 1_000;
const TRIES = 4;

/** A toolset, and whether the registry was away so that this is the last that is known of it. */
export interface Seen {
  readonly toolset: Toolset;
  readonly stale: boolean;
}

export interface ToolsetChange {
  readonly toolIds?: readonly string[];
  readonly setFacts?: Readonly<Record<string, string>>;
}

interface Remembered {
  readonly toolset: Toolset;
  readonly usedAtMs: number;
}

export class Toolsets {
  /** By caller and handle, the longest unused first. */
  readonly #remembered = new Map<string, Remembered>();
  readonly #listeners = new Map<string, Set<(toolset: Toolset | undefined) => void>>();
  #awayUntilMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly registry: RegistryLink,
    private readonly idleTtlMs: number,
    private readonly nowMs: () => number,
    private readonly observer: GatewayObserver,
  ) {}

  /** How many are held for a registry that is away. */
  get remembered(): number {
    return this.#remembered.size;
  }

  /** Throws RegistryError. */
  async create(caller: Caller, facts: Readonly<Record<string, string>>, toolIds: readonly string[] = []): Promise<Toolset> {
    const idleTtl = { seconds: BigInt(Math.ceil(this.idleTtlMs / 1_000)), nanos: 0 };
    const { toolset } = await this.registry.createToolset(caller, { toolIds: [...toolIds], facts: { ...facts }, idleTtl });
    this.observer.created(facts[FACTS.mode] === undefined ? "toolset" : "session");
    // Sessions that were begun and left alone leave nothing here.
    return toolIds.length > 0 ? this.#keep(caller, stated(toolset)) : stated(toolset);
  }

  /** Counts as a use. Undefined where it is not there: expired, never was, or another's. Throws RegistryError otherwise. */
  async read(caller: Caller, handle: string): Promise<Seen | undefined> {
    if (!isHandle(handle)) return undefined;
    const known = this.#last(caller, handle);
    if (known && this.nowMs() < this.#awayUntilMs) return { toolset: this.#keep(caller, known), stale: true };
    try {
      const { toolset } = await this.registry.getToolset(caller, handle);
      return { toolset: this.#keep(caller, stated(toolset)), stale: false };
    } catch (error) {
      if (isAway(error) && known) {
        this.#awayUntilMs = this.nowMs() + AWAY_MS;
        return { toolset: this.#keep(caller, known), stale: true };
      }
      return this.#gone(caller, handle, error);
    }
  }

  /**
   * Makes of the toolset what `change` says of its newest state; others may change it meanwhile. Undefined where it is not there. Throws
   * RegistryError.
   */
  async change(caller: Caller, handle: string, change: (now: Toolset) => ToolsetChange): Promise<Toolset | undefined> {
    let seen = await this.read(caller, handle);
    for (let tries = 1; seen; tries++) {
      const { toolIds, setFacts = {} } = change(seen.toolset);
      const request = { handle, etag: seen.toolset.etag, setFacts: { ...setFacts }, ...(toolIds && { tools: { toolIds: [...toolIds] } }) };
      try {
        const { toolset } = await this.registry.updateToolset(caller, request);
        const changed = this.#keep(caller, stated(toolset));
        this.#tell(changed.handle, changed);
        return changed;
      } catch (error) {
        if (!(error instanceof RegistryError) || error.reason !== "ETAG_MISMATCH" || tries === TRIES) return this.#gone(caller, handle, error);
        seen = await this.read(caller, handle);
      }
    }
    return undefined;
  }

  async remove(caller: Caller, handle: string): Promise<void> {
    if (!isHandle(handle)) return;
    await this.registry.deleteToolset(caller, handle);
    this.#remembered.delete(keyOf(caller, handle));
    this.#tell(handle, undefined);
  }

  /** Hears of changes that this process makes; undefined: it is gone. Returns how to take the listener back. */
  on(handle: string, listener: (toolset: Toolset | undefined) => void): () => void {
    const listeners = this.#listeners.get(handle) ?? new Set();
    this.#listeners.set(handle, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(handle);
    };
  }

  #tell(handle: string, toolset: Toolset | undefined): void {
    for (const listener of [...(this.#listeners.get(handle) ?? [])]) listener(toolset);
  }

  /** Forgets what nobody used for the idle time: the registry has ended it as well. */
  forgetIdle(): void {
    for (const [key, { usedAtMs }] of this.#remembered) {
      if (this.nowMs() - usedAtMs < this.idleTtlMs) return;
      this.#remembered.delete(key);
    }
  }

  #last(caller: Caller, handle: string): Toolset | undefined {
    this.forgetIdle();
    return this.#remembered.get(keyOf(caller, handle))?.toolset;
  }

  #keep(caller: Caller, toolset: Toolset): Toolset {
    const key = keyOf(caller, toolset.handle);
    this.#remembered.delete(key);
    this.#remembered.set(key, { toolset, usedAtMs: this.nowMs() });
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > REMEMBERED && oldest !== undefined) this.#remembered.delete(oldest);
    return toolset;
  }

  #gone(caller: Caller, handle: string, error: unknown): undefined {
    if (!(error instanceof RegistryError) || error.reason !== "NOT_FOUND") throw error;
    this.#remembered.delete(keyOf(caller, handle));
    this.#tell(handle, undefined);
    return undefined;
  }
}

function stated(given: Given | undefined): Toolset {
  if (!given) throw new RegistryError("the registry answered without a toolset", { code: "INTERNAL" });
  const { handle, toolIds, facts, etag } = given;
  return { handle, toolIds, facts, etag };
}

type Given = Pick<Toolset, "handle" | "etag"> & { readonly toolIds: string[]; readonly facts: { [name: string]: string } };

/** What cannot be a handle is nobody's, and is not asked for. */
function isHandle(text: string): boolean {
  return /^[\x21-\x7e]{1,64}$/.test(text);
}

/** Tokens are not kept. */
function keyOf({ token = "" }: Caller, handle: string): string {
  return `${createHash("sha256").update(token).digest("base64")} ${handle}`;
}
