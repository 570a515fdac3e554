/** The module map as descriptions carry it: read now and again, the last one kept. */
import type { Catalogue } from "./catalogue.js";
import { isAway } from "./away.js";
import type { RegistryLink } from "./registry.js";
import { GATEWAY } from "./words.js";

/** Registries change all the time; what a prompt says of them need not. */
const FRESH_MS = 10_000;
/** Rules change without a change of the catalogue. */
const OLD_MS = 60_000;
/**
 * As the registry estimates them. It stands in every prompt, so it stays far below what it stands for: half a token for each tool, and at
 * most names and counts of some thirty servers with what the large ones are about.
 */
const RESIDENT_MOST = 200;
const residentTokens = (tools: number): number => Math.min(RESIDENT_MOST, Math.ceil(10 + tools / 2));
/** For whoever asks for the map itself. */
const WHOLE_TOKENS = 500;

export class ModuleMap {
  #text = "";
  #included: readonly string[] = [];
  #readAtMs = Number.NEGATIVE_INFINITY;
  #changed = true;
  #reading: Promise<void> | undefined;

  constructor(
    private readonly registry: RegistryLink,
    private readonly nowMs: () => number,
    private readonly catalogue: Catalogue,
    /** tool_ids that the gateway's operator gives to every session. */
    private readonly given: readonly string[],
  ) {
    catalogue.onChange(() => (this.#changed = true));
  }

  /** The last one that was read; empty while there is none. */
  get text(): string {
    return this.#text;
  }

  /** tool_ids that every session sees: the gateway's own, and those that the registry's rules include whatever is asked, as last read. */
  get always(): readonly string[] {
    return [...new Set([...this.given, ...this.#included])];
  }

  /**
   * One line for each module; the last known where the registry is away. Read with the gateway's own rights, so it is for those who
   * have shown that they may read the namespace.
   */
  async read(): Promise<string> {
    const ageMs = this.nowMs() - this.#readAtMs;
    const due = ageMs >= OLD_MS || (this.#changed && ageMs >= FRESH_MS);
    if (due || this.#text === "") {
      this.#reading ??= this.#fetch().finally(() => (this.#reading = undefined));
      await this.#reading;
    }
    return this.#text;
  }

  /** More of it, for an answer instead of a prompt; the short one where the registry is away. */
  async whole(): Promise<string> {
    try {
      return textOf(await this.registry.moduleMap(GATEWAY, { tokenBudget: WHOLE_TOKENS }));
    } catch (error) {
      if (!isAway(error)) throw error;
      return this.read();
    }
  }

  async #fetch(): Promise<void> {
    this.#changed = false;
    this.#readAtMs = this.nowMs();
    try {
      const { length } = this.catalogue.tools();
      const map = await this.registry.moduleMap(GATEWAY, { tokenBudget: length === 0 ? RESIDENT_MOST : residentTokens(length) });
      this.#included = map.alwaysIncluded;
      this.#text = textOf(map);
    } catch (error) {
      this.#changed = true;
      if (!isAway(error)) throw error;
    }
  }
}

function textOf({ text, leftOut }: { readonly text: string; readonly leftOut: number }): string {
  return leftOut === 0 ? text : `${text}\n(and ${leftOut} more; ask for an intent)`;
}
