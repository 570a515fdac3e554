/** Tools that others declare that they need first. */
import type { Beside } from "../stages.js";

/** First steps that an answer shows. */
const STEPS = 3;
/** Steps before the first step: a longer chain is no help for this turn. */
const CHAIN = 4;

export interface Needing {
  mayOffer(toolId: string): boolean;
  /** Tools whose success is all that keeps this one from being offered; empty where it is something else, too. */
  neededFirst(toolId: string): readonly string[];
}

/**
 * What has to be called before the tools that were withheld only for want of another's success: that other one, or what it needs itself.
 * Each stands beside the tool that needs it.
 */
export function firstSteps(withheld: readonly string[], needing: Needing): readonly Beside[] {
  const found = new Map<string, Beside>();
  for (const of of withheld) {
    const seen = new Set([of]);
    let wanting: readonly string[] = [of];
    for (let step = 0; step < CHAIN && wanting.length > 0; step++) {
      const needed = wanting.flatMap((one) => needing.neededFirst(one)).filter((one) => !seen.has(one) && seen.add(one));
      for (const one of needed)
        if (needing.mayOffer(one) && !found.has(one) && found.size < STEPS)
          found.set(one, { toolId: one, reason: { kind: "companion", of } });
      wanting = needed.filter((one) => !needing.mayOffer(one));
    }
  }
  return [...found.values()];
}
