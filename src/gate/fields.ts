import type { ToolDocument } from "./document.js";
import { tokensOf } from "./text.js";

/**
 * How much a word counts by where it stands, in tenths. Whole numbers, so that sums over any set of documents are exact
 * and do not depend on the order in which documents came.
 */
export const WEIGHTS = {
  name: 30,
  title: 15,
  service: 10,
  description: 10,
  useWhen: 10,
  keywords: 15,
  tags: 10,
  parameters: 3,
} as const;

/** How often each term stands in a document, weighted, in tenths; and the sum of it. */
export interface WeightedTerms {
  readonly counts: ReadonlyMap<string, number>;
  readonly length: number;
}

export function weightedTerms(document: ToolDocument): WeightedTerms {
  const counts = new Map<string, number>();
  let length = 0;
  const add = (text: string, weight: number) => {
    if (text === "") return;
    for (const { term } of tokensOf(text)) {
      const count = Math.min((counts.get(term) ?? 0) + weight, MOST);
      counts.set(term, count);
      length += weight;
    }
  };
  add(document.name, WEIGHTS.name);
  if (document.title !== document.name) add(document.title, WEIGHTS.title);
  add(document.service, WEIGHTS.service);
  add(document.description, WEIGHTS.description);
  add(document.useWhen, WEIGHTS.useWhen);
  add(document.keywords.join("\n"), WEIGHTS.keywords);
  add(document.tags.join("\n"), WEIGHTS.tags);
  for (const parameter of document.parameters) {
    add(parameter.name, WEIGHTS.parameters);
    add(parameter.description, WEIGHTS.parameters);
  }
  return { counts, length };
}

/** A count is kept in 16 bits. */
const MOST = 65_535;
