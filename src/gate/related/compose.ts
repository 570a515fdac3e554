import type { Related } from "../stages.js";

/** Several kinds of what goes together as one: whoever comes first says first, and a tool is named once. */
export function composeRelated(all: readonly Related[]): Related {
  return {
    beside(chosen, cut) {
      const named = new Set<string>();
      return all.flatMap((related) => related.beside(chosen, cut)).filter(({ toolId }) => !named.has(toolId) && named.add(toolId));
    },
    sequences: (chosen) => all.flatMap((related) => related.sequences(chosen)),
  };
}
