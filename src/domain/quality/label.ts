/** What a label alone shows. */
import { textLength, visible } from "../admission/text.js";
import type { StubFields } from "../stub.js";
import type { QualityWarning } from "./warning.js";
import { onlyRepeats, wordsOf } from "./words.js";

/** The registrant's own label, whatever overlay is laid over it. */
export type JudgedLabel = Pick<StubFields, "name" | "briefDescription" | "useWhen">;

/**
 * A brief description longer than this costs more in every list than it helps to choose. Of 2,914 real tools, whose briefs are the
 * first two sentences of their descriptions, three in a hundred are longer.
 */
const BRIEF_LENGTH = 320;

const PLACEHOLDER =
  /^\W*(?:todo|tbd|fixme|wip|n\/?a|none|null|nil|undefined|unknown|description|no description(?: available| provided)?|insert description.*|a? ?(?:tool|function|test|method|placeholder)|x{2,}|lorem ipsum.*)\W*$/i;

/** What a label says too little or too much of. */
export function judgeLabel(label: JudgedLabel): QualityWarning[] {
  const { name, briefDescription: brief, useWhen } = label;
  const warnings: QualityWarning[] = [];
  const add = (kind: QualityWarning["kind"], message: string) => void warnings.push({ kind, message });
  // Whoever says when to choose the tool has said what it is for.
  const purposeElsewhere = wordsOf(useWhen).length > 2;
  const words = wordsOf(brief);
  if (words.length === 0 || PLACEHOLDER.test(brief)) {
    const what = brief.trim() === "" ? "It has no description" : `Its description is a placeholder ("${visible(brief.trim(), 40)}")`;
    if (!purposeElsewhere) add("no-purpose", `${what}: say in a sentence what it does, to what, and when to choose it.`);
  } else if (words.length === 1) {
    add("one-word", "Its description is a single word: make it a sentence that says what it does, and to what.");
  } else if (!purposeElsewhere && onlyRepeats(brief, name)) {
    add("no-purpose", "Its description says no more than its name: add what it is for, what it works on, or what it answers.");
  }
  const length = textLength(brief);
  if (length > BRIEF_LENGTH)
    add("too-long", `Its brief description has ${length} characters: say in at most ${BRIEF_LENGTH} what it does, and leave details to the definition.`);
  return warnings;
}

/** Equal for labels that say the same; empty for one that says nothing, which is not the same as another. */
export function textKeyOf({ briefDescription, useWhen }: JudgedLabel): string {
  const words = wordsOf(briefDescription);
  return words.length === 0 ? "" : `${words.join(" ")}\n${wordsOf(useWhen).join(" ")}`;
}

/** `others`: tool_ids with the same text, at least one. */
export function duplicateWarning(others: readonly string[]): QualityWarning {
  const [first = ""] = others;
  const more = others.length > 1 ? ` and ${others.length - 1} more` : "";
  return {
    kind: "duplicate-text",
    message: `Its description is word for word that of ${first}${more}: say what sets it apart, or nobody can choose between them.`,
  };
}
