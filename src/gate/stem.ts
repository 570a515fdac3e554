/**
 * A light English stemmer: it joins the inflections of one word (file, files, filing, filed) and leaves what is derived
 * from it (player, playful) apart. Its stems are keys, not words. Words shorter than four letters and words of other scripts stay.
 */
export function stem(word: string): string {
  const known = STEMS.get(word);
  if (known !== undefined) return known;
  const made = LETTERS.test(word) ? stripped(word) : word;
  if (STEMS.size >= STEMS_KEPT) STEMS.clear();
  STEMS.set(word, made);
  return made;
}

/** Stems of words seen lately: texts repeat their words, and looking one up costs a tenth of making it. */
const STEMS = new Map<string, string>();
const STEMS_KEPT = 20_000;

const LETTERS = /^[a-z]{4,40}$/;
const VOWEL = /[aeiouy]/;
const DOUBLED = /([bdfgmnprt])\1$/;

function stripped(word: string): string {
  return withoutEnding(withoutInflection(withoutPlural(word)));
}

/** Plurals alone; the word stays a word. */
export function singular(word: string): string {
  return LETTERS.test(word) ? withoutPlural(word) : word;
}

function withoutPlural(word: string): string {
  if (!word.endsWith("s") || word.endsWith("ss") || word.endsWith("us") || word.endsWith("is")) return word;
  if (word.endsWith("ies") && word.length > 4) return word.slice(0, -3) + "y";
  if (/(?:[sxz]|[cs]h)es$/.test(word) && word.length > 4) return word.slice(0, -2);
  return word.slice(0, -1);
}

function withoutInflection(word: string): string {
  for (const ending of ["ing", "ed"]) {
    if (!word.endsWith(ending)) continue;
    const rest = word.slice(0, -ending.length);
    if (rest.length < 3 || !VOWEL.test(rest) || rest.endsWith("e")) return word;
    return DOUBLED.test(rest) ? rest.slice(0, -1) : rest;
  }
  return word;
}

function withoutEnding(word: string): string {
  if (word.length > 3 && word.endsWith("e")) return word.slice(0, -1);
  if (word.length > 3 && word.endsWith("y") && !/[aeiou]y$/.test(word)) return word.slice(0, -1) + "i";
  return word;
}
