import { cleanText, textLength } from "./admission/text.js";
import type { Definition } from "./definition.js";
import { sortedSet } from "./filter.js";
import { LIMITS } from "./limits.js";
import type { StubFields } from "./stub.js";
import { EMPTY_STUB } from "./stub.js";

/** A label before it belongs to a server. */
export type Label = Omit<StubFields, "serverId">;

/** What a registrant says about a tool; the registry adds the size. */
export type DeclaredLabel = Omit<Label, "sizeBytes">;

/** The label of a tool about which nothing but its definition is known. Its texts are cleaned and cut to their limits. */
export function deriveLabel(definition: Definition): Label {
  return {
    ...EMPTY_STUB,
    name: definition.name,
    title: cutText(oneLine(definition.title), LIMITS.titleLength),
    briefDescription: briefOf(definition.description),
    hints: definition.hints,
    digest: definition.digest,
    sizeBytes: definition.sizeBytes,
  };
}

/** What the registrant said, and where it said nothing, what the definition says. */
export function mergeLabel(declared: DeclaredLabel, derived: Label): Label {
  return {
    name: declared.name || derived.name,
    title: declared.title || derived.title,
    briefDescription: declared.briefDescription || derived.briefDescription,
    tags: sortedSet(declared.tags.length > 0 ? declared.tags : derived.tags),
    keywords: declared.keywords.length > 0 ? declared.keywords : derived.keywords,
    useWhen: declared.useWhen || derived.useWhen,
    schemaUri: declared.schemaUri || derived.schemaUri,
    hints: { ...derived.hints, ...givenOnly(declared.hints) },
    requires: declared.requires.length > 0 ? declared.requires : derived.requires,
    substitutes: declared.substitutes.length > 0 ? declared.substitutes : derived.substitutes,
    digest: declared.digest || derived.digest,
    sizeBytes: derived.sizeBytes,
  };
}

/** The label of a tool whose definition nobody has seen yet. */
export function labelWithoutDefinition(declared: DeclaredLabel): Label {
  return mergeLabel(declared, { ...EMPTY_STUB, name: declared.name });
}

/** An undefined hint must not hide the derived one. */
function givenOnly(hints: StubFields["hints"]): StubFields["hints"] {
  return Object.fromEntries(Object.entries(hints).filter(([, value]) => value !== undefined));
}

function oneLine(value: string): string {
  return cleanText(value).replace(/\s+/g, " ").trim();
}

/** Looking for sentences stops here, which bounds the time a hostile text takes; what reaches this far is too long anyway. */
const SENTENCES_WITHIN = 4 * LIMITS.briefLength;

/** The first sentence of the first paragraph, and the second one if both fit; cut at a word where even one is too long. */
export function briefOf(description: string): string {
  const paragraph = firstParagraph(cleanText(description)).slice(0, SENTENCES_WITHIN);
  const [first = "", second = ""] = firstSentences(paragraph);
  const both = `${first}${second}`.trim();
  return textLength(both) <= LIMITS.briefLength ? both : cutText(first.trim(), LIMITS.briefLength);
}

/** The first sentence alone, within a length in characters. */
export function firstSentenceOf(description: string, maxLength: number): string {
  const paragraph = firstParagraph(cleanText(description)).slice(0, SENTENCES_WITHIN);
  return cutText((firstSentences(paragraph)[0] ?? "").trim(), maxLength);
}

/** A blank line ends a paragraph, and so does a line that begins a list, a heading or a table. */
function firstParagraph(text: string): string {
  const lines: string[] = [];
  for (const line of text.split("\n")) {
    const trimmed = line.trim();
    const opens = lines.length > 0 && /^(?:[-*•|#]|\d+[.)]|```)/.test(trimmed);
    if (opens || (trimmed === "" && lines.length > 0)) break;
    if (trimmed !== "") lines.push(trimmed);
  }
  return lines.join(" ").replace(/\s+/g, " ");
}

/** Latin full stops end a sentence before a space, East Asian ones anywhere. A closing quote or bracket belongs to it. */
const SENTENCE_END = /[.!?…]+["')\]»”’]*(?=\s|$)|[。！？｡]+["')\]」』）】”’]*/g;
/** Ends with a dot but ends no sentence: `e.g.`, `vs.`, a single letter, the number before an item of a list. */
const ABBREVIATION = /(?:^|[\s("'[])(?:e\.g|i\.e|etc|vs|approx|incl|resp|cf|[A-Za-z])\.$|^\d+\.$/i;

/** At most two sentences, each with the space behind it. The rest of a text without a full stop is one sentence. */
function firstSentences(text: string): string[] {
  const sentences: string[] = [];
  let start = 0;
  for (const end of text.matchAll(SENTENCE_END)) {
    const until = end.index + end[0].length;
    const sentence = text.slice(start, until);
    if (ABBREVIATION.test(sentence) && until < text.length) continue;
    const space = text[until] === " " ? 1 : 0;
    sentences.push(text.slice(start, until + space));
    start = until + space;
    if (sentences.length === 2) return sentences;
  }
  if (start < text.length) sentences.push(text.slice(start));
  return sentences;
}

/** Cuts to at most `maxLength` code points, behind a whole word where one ends in the second half, and says so with `…`. */
export function cutText(value: string, maxLength: number): string {
  const points = [...value];
  if (points.length <= maxLength) return value;
  let end = maxLength - 1;
  for (let i = end; i > maxLength / 2; i--) {
    if (/[\s,;:，、；：。]/.test(points[i] ?? "")) {
      end = i;
      break;
    }
  }
  // A mark, selector or joiner belongs to the character before it.
  while (end > 1 && (/^[\p{M}\u200d]/u.test(points[end] ?? "") || points[end - 1] === "\u200d")) end--;
  const kept = points
    .slice(0, end)
    .join("")
    .replace(/[\s,;:，、；：]+$/, "");
  return `${kept}…`;
}
