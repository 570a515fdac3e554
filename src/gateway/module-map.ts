/** The module map as descriptions carry it: read now and again, the last one kept. */
import type { Catalogue } from "./catalogue.js";
import { isAway } from "./away.js";
import type { RegistryLink } from "./registry.js";
import { GATEWAY } from "./words.js";

/** Registries change all the time; what a prompt says of them need not. */
const FRESH_MS = 10_000;
/** Rules change without a change of the catalogue. */
const OLD_MS = 60_000;
/** Small enough to stand in every prompt. */
const BUDGET_TOKENS = 400;

export class ModuleMap {
  #text = "";
  #included: readonly string[] = [];
  #readAtMs = Number.NEGATIVE_INFINITY;
  #changed = true;
  #reading: Promise<void> | undefined;

  constructor(
    private readonly registry: RegistryLink,
    private readonly nowMs: () => number,
    catalogue: Catalogue,
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

  async #fetch(): Promise<void> {
    this.#changed = false;
    this.#readAtMs = this.nowMs();
    try {
      const { text, leftOut, alwaysIncluded } = await this.registry.moduleMap(GATEWAY, { tokenBudget: BUDGET_TOKENS });
      this.#included = alwaysIncluded;
      this.#text = leftOut === 0 ? text : `${text}\n(and ${leftOut} more; ask for an intent)`;
    } catch (error) {
      this.#changed = true;
      if (!isAway(error)) throw error;
    }
  }
}
