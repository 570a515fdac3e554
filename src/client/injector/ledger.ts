import type { Stub } from "../../gen/toolcrib/v1/stub_pb.js";
import type { Found } from "../finding.js";
import type { Workbench } from "./material.js";

/** What it would cost to send the whole catalogue. */
export interface Baseline {
  readonly tokens: number;
  /** Tools counted by the tokenizer. */
  readonly counted: number;
  /** Tools estimated as bytes divided by 4: their definitions were never here. */
  readonly estimated: number;
  /** Tools whose definitions nobody saw yet: they count nothing. */
  readonly unknown: number;
}

/** The tokens of one turn. */
export interface TurnTokens {
  /** What the numbers are: `o200k_base` for example, or `bytes/4`. */
  readonly counter: string;
  /** With the whole catalogue in the prompt. */
  readonly baseline: Baseline;
  /** With the tools that the prompt holds. */
  readonly sent: number;
  /** Of `sent`, what stands unchanged where it stood the turn before, so that a provider's prompt cache may have it. */
  readonly unchanged: number;
  /**
   * A turn that the whole catalogue would have spared: the model called what was not loaded, or asked for tools. All that it sends
   * is a cost, so it counts against the savings: `sent`, and `overhead`: the rest of the prompt and what a refusal said.
   */
  readonly extra: boolean;
  readonly overhead: number;
  /** Baseline, but none for an extra turn, less what was sent. May be negative. */
  readonly saved: number;
}

/** All turns of a conversation so far. */
export interface TotalTokens {
  readonly counter: string;
  readonly turns: number;
  readonly extraTurns: number;
  /** Of the turns that were not extra. */
  readonly baseline: number;
  /** Tools and overhead of all turns. */
  readonly sent: number;
  readonly saved: number;
}

export interface TurnCost {
  readonly sent: number;
  readonly unchanged: number;
  readonly extra: boolean;
  /** Of the rest of the prompt; counts where the turn is extra. */
  readonly context: number;
  /** What the model was told because a tool was not there. */
  readonly refusals: readonly string[];
}

/** Keeps the accounts of one conversation. */
export class Ledger {
  readonly #bench: Workbench;
  #turns = 0;
  #extraTurns = 0;
  #baseline = 0;
  #sent = 0;

  constructor(bench: Workbench) {
    this.#bench = bench;
  }

  get totals(): TotalTokens {
    const counter = this.#bench.tokenizer.name;
    const saved = this.#baseline - this.#sent;
    return { counter, turns: this.#turns, extraTurns: this.#extraTurns, baseline: this.#baseline, sent: this.#sent, saved };
  }

  enter(cost: TurnCost, stubs: readonly Stub[], found: Found | undefined): TurnTokens {
    const baseline = this.#baselineOf(stubs, found);
    const said = cost.refusals.reduce((sum, text) => sum + this.#bench.tokenizer.count(text), 0);
    const overhead = said + (cost.extra ? cost.context : 0);
    const spared = cost.extra ? 0 : baseline.tokens;
    this.#turns++;
    if (cost.extra) this.#extraTurns++;
    this.#baseline += spared;
    this.#sent += cost.sent + overhead;
    const { sent, unchanged, extra } = cost;
    const saved = spared - sent - overhead;
    return { counter: this.#bench.tokenizer.name, baseline, sent, unchanged, extra, overhead, saved };
  }

  #baselineOf(stubs: readonly Stub[], found: Found | undefined): Baseline {
    // An agent that follows nothing goes by what the registry says of itself.
    if (stubs.length === 0) return { tokens: found?.catalogueTokens ?? 0, counted: 0, estimated: found?.catalogueTools ?? 0, unknown: 0 };
    const baseline = { tokens: 0, counted: 0, estimated: 0, unknown: 0 };
    for (const { digest, estimatedTokens } of stubs) {
      const counted = this.#bench.counted(digest);
      baseline.tokens += counted ?? estimatedTokens;
      baseline[counted !== undefined ? "counted" : estimatedTokens > 0 ? "estimated" : "unknown"]++;
    }
    return baseline;
  }
}
