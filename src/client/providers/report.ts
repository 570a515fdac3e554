/**
 * What an export changed: `wider` accepts more than the tool does, `narrower` less, `text` is something the model no longer
 * reads.
 */
export type Effect = "wider" | "narrower" | "text";

export interface Loss {
  /** JSON pointer inside the tool's inputSchema; empty for the tool as a whole. */
  readonly at: string;
  readonly what: string;
  readonly effect: Effect;
}

/** What became of one tool. */
export type ToolReport =
  | ({ readonly outcome: "exact" } & Exported)
  | ({ readonly outcome: "lossy"; readonly losses: readonly Loss[] } & Exported)
  | { readonly outcome: "refused"; readonly toolId: string; readonly reasons: readonly string[] };

interface Exported {
  readonly toolId: string;
  /** The name that the provider sees. */
  readonly name: string;
  /** Whether the provider is asked to hold the model to the schema. */
  readonly strict: boolean;
  /** Why it is not, where that was wanted. */
  readonly notStrict: readonly string[];
}

export interface ExportReport {
  /** In the order in which the tools were given. */
  readonly tools: readonly ToolReport[];
  readonly exact: number;
  readonly lossy: number;
  readonly refused: number;
}

export function reportOf(tools: readonly ToolReport[]): ExportReport {
  const count = (outcome: ToolReport["outcome"]) => tools.filter((tool) => tool.outcome === outcome).length;
  return { tools, exact: count("exact"), lossy: count("lossy"), refused: count("refused") };
}

/** Losses named one by one; the rest is only counted. */
const NAMED = 50;

/** Collects what one tool loses, each thing once. */
export class Losses {
  readonly #seen = new Map<string, Loss>();
  #unnamed = 0;

  add(at: string, what: string, effect: Effect): void {
    const key = `${at}\n${what}`;
    if (this.#seen.has(key)) return;
    if (this.#seen.size < NAMED) this.#seen.set(key, { at, what, effect });
    else this.#unnamed++;
  }

  done(): Loss[] {
    const rest = this.#unnamed;
    const losses = [...this.#seen.values()];
    return rest === 0 ? losses : [...losses, { at: "", what: `and ${rest} more`, effect: "wider" }];
  }
}
