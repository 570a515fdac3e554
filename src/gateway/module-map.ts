/** The module map as descriptions carry it: read now and again, the last one kept. */
import type { Catalogue } from "./catalogue.js";
import { isAway } from "./away.js";
import type { RegistryLink } from "./registry.js";
import { GATEWAY } from "./words.js";

/** Registries change all the time; what a prompt says of them need not. */
const FRESH_MS = 10_000;
/** Small enough to stand in every prompt. */
const BUDGET_TOKENS = 400;

export class ModuleMap {
  #text = "";
  #readAtMs = Number.NEGATIVE_INFINITY;
  #changed = true;
  #reading: Promise<void> | undefined;

  constructor(
    private readonly registry: RegistryLink,
    private readonly nowMs: () => number,
    catalogue: Catalogue,
  ) {
    catalogue.onChange(() => (this.#changed = true));
  }

  /** The last one that was read; empty while there is none. */
  get text(): string {
    return this.#text;
  }

  /**
   * One line for each module; the last known where the registry is away. Read with the gateway's own rights, so it is for those who
   * have shown that they may read the namespace.
   */
  async read(): Promise<string> {
    const due = this.#changed && this.nowMs() - this.#readAtMs >= FRESH_MS;
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
      const { text, leftOut } = await this.registry.moduleMap(GATEWAY, { tokenBudget: BUDGET_TOKENS });
      this.#text = leftOut === 0 ? text : `${text}\n(and ${leftOut} more; ask for an intent)`;
    } catch (error) {
      this.#changed = true;
      if (!isAway(error)) throw error;
    }
  }
}
