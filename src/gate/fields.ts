import type { ToolDocument } from "./document.js";
import { pairsOf, type Token, tokensOf } from "./text.js";

interface Field {
  /** How much a word counts that stands in it. */
  readonly weight: number;
  /** Words that such a field usually has: in a longer one a word counts less. */
  readonly usual: number;
  /** Words side by side count as one word more. */
  readonly pairs: boolean;
}

/**
 * The fields of a document. Lengths are compared with these fixed numbers and not with the average of the catalogue: then
 * what a word counts in a document depends on that document alone, so other tools that come and go move no score but
 * by the rarity of words.
 */
export const FIELDS = {
  name: { weight: 3, usual: 5, pairs: true },
  /** As much as the name: names have to be ASCII, and in many languages the title is the only name. */
  title: { weight: 3, usual: 5, pairs: true },
  service: { weight: 1, usual: 3, pairs: true },
  description: { weight: 1, usual: 20, pairs: true },
  useWhen: { weight: 1, usual: 20, pairs: true },
  keywords: { weight: 1.5, usual: 10, pairs: true },
  tags: { weight: 1, usual: 2, pairs: false },
  parameterNames: { weight: 0.3, usual: 8, pairs: false },
  parameterTexts: { weight: 0.3, usual: 30, pairs: false },
  parameterValues: { weight: 1, usual: 10, pairs: false },
} as const satisfies Record<string, Field>;

/** How far the length of a field counts: 0 not at all, 1 in proportion. */
const SLOPE = 0.4;
/** Counts are whole numbers of this part, so that they fit into 16 bits and are alike everywhere. */
export const COUNT_UNIT = 1 / 100;
const COUNT_MOST = 65_535;

/** How much each term counts in a document, in units of COUNT_UNIT, at least 1. */
export function countsOf(document: ToolDocument): Map<string, number> {
  const counts = new Map<string, number>();
  const add = (field: Field, texts: readonly string[], but?: ReadonlySet<string>) => {
    const all = texts.flatMap((text) => termsIn(text, field.pairs));
    const tokens = but ? all.filter(({ term }) => !but.has(term)) : all;
    const weight = field.weight / (1 - SLOPE + (SLOPE * tokens.length) / field.usual);
    for (const { term } of tokens) counts.set(term, (counts.get(term) ?? 0) + weight);
  };
  const { parameters } = document;
  add(FIELDS.name, [document.name]);
  // A title that says the name again says nothing new.
  add(FIELDS.title, [document.title], new Set(counts.keys()));
  add(FIELDS.service, [document.service]);
  add(FIELDS.description, [document.description]);
  add(FIELDS.useWhen, [document.useWhen]);
  add(FIELDS.keywords, document.keywords);
  add(FIELDS.tags, document.tags);
  add(FIELDS.parameterNames, parameters.map((p) => p.name));
  add(FIELDS.parameterTexts, parameters.map((p) => p.description));
  add(FIELDS.parameterValues, parameters.flatMap((p) => p.values));
  for (const [term, count] of counts) {
    counts.set(term, Math.min(COUNT_MOST, Math.max(1, Math.round(count / COUNT_UNIT))));
  }
  return counts;
}

function termsIn(text: string, pairs: boolean): Token[] {
  if (text === "") return [];
  const tokens = tokensOf(text);
  return pairs ? [...tokens, ...pairsOf(tokens)] : tokens;
}
