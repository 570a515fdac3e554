/** Words of rules, made of the same terms as intents: inflections, case and scripts count as they do in a search. */
import type { Intent } from "../intent.js";
import { tokensOf } from "../text.js";

/** Terms that an intent must all have; empty where no word says anything. */
export type Phrase = readonly string[];

export function phraseOf(text: string): Phrase {
  // A whole is a word beside its pieces: the pieces alone are found in every way of writing it.
  const tokens = tokensOf(text.toLowerCase()).filter(({ kind }) => kind !== "whole");
  const pairs = new Set(tokens.filter(({ kind, word }) => kind === "signs" && signsOf(word) === 2).flatMap(({ word }) => [...word]));
  // 导出 is more than 导 and 出 somewhere: a sign counts by itself only where no pair holds it.
  const kept = tokens.filter(({ kind, word }) => kind === "word" || signsOf(word) === 2 || !pairs.has(word));
  return [...new Set(kept.map(({ term }) => term))];
}

function signsOf(word: string): number {
  return [...word].length;
}

/** What was said now, not in an earlier turn: what an agent carries from turn to turn is its state. */
export function saidIn({ terms }: Intent): ReadonlySet<string> {
  return new Set(terms.filter(({ own }) => own).map(({ term }) => term));
}

export function says(said: ReadonlySet<string>, phrase: Phrase): boolean {
  return phrase.length > 0 && phrase.every((term) => said.has(term));
}
