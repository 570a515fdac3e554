/** A run of these is written without spaces; two of them make a word, by and large. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]+/gu;

/** Longest text whose words are looked at, in UTF-16 code units: what is longer says something. */
const READ = 1_000;

/** The words of a text or an identifier in lower case: `listIssues_v2` has list, issues, v, 2. */
export function wordsOf(text: string): string[] {
  const spaced = text
    .slice(0, READ)
    .normalize("NFKC")
    .replace(/(\p{Ll}|\d)(\p{Lu})/gu, "$1 $2")
    .replace(/(\p{L})(\d)/gu, "$1 $2")
    .replace(UNSPACED, (run) => ` ${(run.match(/.{1,2}/gu) ?? []).join(" ")} `);
  return spaced.toLowerCase().match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];
}

const FILLERS: ReadonlySet<string> = new Set(
  "a an the this that tool function method api to for of in on with and it is used use using from by".split(" "),
);

/** Whether the text says nothing that the name does not say. */
export function onlyRepeats(text: string, name: string): boolean {
  const said = new Set(wordsOf(name).map(stem));
  return wordsOf(text).every((word) => FILLERS.has(word) || said.has(stem(word)));
}

/** Forms of one word: "Lists issues" says no more than `list_issue`. */
function stem(word: string): string {
  return word.length > 3 ? word.replace(/(?:ies|es|s|ing|ed|e|y)$/, "") : word;
}
