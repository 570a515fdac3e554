/** Definitions at hand: by digest, within a number of bytes, loaded together. */
import type { Catalogue } from "./catalogue.js";
import { isAway } from "./away.js";
import type { RegistryLink } from "./registry.js";
import type { Caller } from "./words.js";

/** A few thousand definitions of the usual size. */
const KEPT_BYTES = 32 * 1024 * 1024;
/** What BatchGetFullSchemas takes. */
const BATCH = 100;
/** A list waits this long for definitions that nobody has yet; the registry goes on loading. */
const LOAD_MS = 1_500;

export interface Definition {
  readonly digest: string;
  /** The JSON text of the tool object, as its server sent it. */
  readonly text: string;
  readonly freshness: "current" | "stale";
}

/** Why a tool's definition is not here; a sentence. */
export interface Missing {
  readonly why: string;
  readonly substitutes: readonly string[];
}

export type Loaded = Definition | Missing;

export function isDefinition(loaded: Loaded | undefined): loaded is Definition {
  return loaded !== undefined && "text" in loaded;
}

export class Definitions {
  /** The longest unused first. */
  readonly #byDigest = new Map<string, string>();
  #bytes = 0;

  constructor(
    private readonly registry: RegistryLink,
    private readonly catalogue: Catalogue,
  ) {}

  /** One for each tool, in the order asked. Never rejects: what cannot be had says why. */
  async load(caller: Caller, toolIds: readonly string[]): Promise<ReadonlyMap<string, Loaded>> {
    const loaded = new Map<string, Loaded>(toolIds.map((id) => [id, this.#held(id) ?? MISSING]));
    const wanted = toolIds.filter((id) => loaded.get(id) === MISSING);
    const batches: string[][] = [];
    for (let at = 0; at < wanted.length; at += BATCH) batches.push(wanted.slice(at, at + BATCH));
    for (const answers of await Promise.all(batches.map((ids) => this.#fetch(caller, ids))))
      for (const [id, one] of answers) loaded.set(id, one);
    return loaded;
  }

  /** By the catalogue's digest, without asking anybody. */
  #held(toolId: string): Definition | undefined {
    const digest = this.catalogue.tool(toolId)?.digest ?? "";
    const text = this.#byDigest.get(digest);
    if (text === undefined) return undefined;
    this.#byDigest.delete(digest);
    this.#byDigest.set(digest, text);
    return { digest, text, freshness: this.catalogue.stale === "" ? "current" : "stale" };
  }

  async #fetch(caller: Caller, toolIds: readonly string[]): Promise<Map<string, Loaded>> {
    try {
      const { results } = await this.registry.schemas(caller, toolIds, LOAD_MS);
      return new Map(
        results.map(({ toolId, result }): [string, Loaded] => {
          if (result.case === "schema") return [toolId, this.#keep(result.value.digest, result.value.definition)];
          const { message = "it could not be loaded", substitutes = [] } = result.value ?? {};
          return [toolId, { why: message, substitutes }];
        }),
      );
    } catch (error) {
      const why = isAway(error) ? "the registry is away" : error instanceof Error ? error.message : String(error);
      return new Map(toolIds.map((id) => [id, { why, substitutes: [] }]));
    }
  }

  #keep(digest: string, bytes: Uint8Array): Definition {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
    if (!this.#byDigest.has(digest)) {
      this.#byDigest.set(digest, text);
      this.#bytes += text.length;
    }
    for (const [oldest, old] of this.#byDigest) {
      if (this.#bytes <= KEPT_BYTES) break;
      this.#byDigest.delete(oldest);
      this.#bytes -= old.length;
    }
    return { digest, text, freshness: "current" };
  }
}

const MISSING: Missing = { why: "it could not be loaded", substitutes: [] };
