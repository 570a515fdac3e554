/** The module map as descriptions carry it: read now and again, the last one kept. */
import { compareText } from "../domain/ids.js";
import type { Catalogue } from "./catalogue.js";
import { isAway } from "./away.js";
import type { RegistryLink } from "./registry.js";
import { GATEWAY, type KnownTool } from "./words.js";

/** Registries change all the time; what a prompt says of them need not. */
const FRESH_MS = 10_000;
/** Rules change without a change of the catalogue. */
const OLD_MS = 60_000;
/** As the registry estimates them. The map stands in every prompt: some for each server, for its name, its tools' number and what they are about. */
const RESIDENT_MOST = 200;
const residentTokens = (servers: number): number => Math.min(RESIDENT_MOST, 36 + 6 * servers);
/** For whoever asks for the map itself. */
const WHOLE_TOKENS = 500;

export class ModuleMap {
  #text = "";
  #included: readonly string[] = [];
  #facts: readonly string[] = [];
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

  /** Facts of the agent's state that rules look at or tools need, as last read; sorted. */
  get facts(): readonly string[] {
    return this.#facts;
  }

  /** Differs where what a prompt says of the catalogue differs. */
  get mark(): string {
    return `${this.#text}\n${this.#facts.join("\n")}`;
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
      const tools = this.catalogue.tools();
      const servers = new Set(tools.map(({ serverId }) => serverId)).size;
      const map = await this.registry.moduleMap(GATEWAY, { tokenBudget: servers === 0 ? RESIDENT_MOST : residentTokens(servers) });
      this.#included = map.alwaysIncluded;
      this.#facts = [...new Set([...map.stateFacts, ...tools.flatMap(factsOf)])].sort(compareText);
      this.#text = textOf(map);
    } catch (error) {
      this.#changed = true;
      if (!isAway(error)) throw error;
    }
  }
}

function factsOf({ requires }: KnownTool): string[] {
  return requires.flatMap(({ kind }) => (kind.case === "state" ? [kind.value] : []));
}

function textOf({ text, leftOut }: { readonly text: string; readonly leftOut: number }): string {
  return leftOut === 0 ? text : `${text}\n(and ${leftOut} more; ask for an intent)`;
}
