/** A sequence in one line, from the names of its tools: "create the purchase order, then approve it". */
import { takeApart } from "../modules.js";

export interface Step {
  readonly name: string;
  /** Empty where it has none. */
  readonly title: string;
}

interface Phrase {
  readonly text: string;
  readonly verb: string;
  /** What it is done to, in any number; undefined where the name does not say. */
  readonly object: string | undefined;
  readonly plural: boolean;
}

/** Longer titles are cut: a bundle is a line in a prompt. */
const STEP_LENGTH = 80;

export function describeSequence(steps: readonly Step[]): string {
  const phrases = steps.map(phraseOf);
  const texts = phrases.map((phrase, i) => {
    const before = phrases[i - 1];
    const same = phrase.object !== undefined && phrase.object === before?.object;
    return same ? `${phrase.verb} ${phrases[0]?.plural ? "them" : "it"}` : phrase.text;
  });
  return texts.join(", then ");
}

function phraseOf({ name, title }: Step): Phrase {
  const [taken] = takeApart([{ name }]);
  const verb = taken?.verb ?? "";
  const words = (name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+/g) ?? []).map((word) => word.toLowerCase());
  const at = words.indexOf(verb);
  const rest = words.filter((_, i) => i !== at);
  if (verb === "" || rest.length === 0 || /[^\x20-\x7e]/.test(name))
    return { text: (title || name).slice(0, STEP_LENGTH), verb: "", object: undefined, plural: false };
  const nouns = taken?.nouns.join(" ") ?? "";
  return { text: `${verb} the ${rest.join(" ")}`.slice(0, STEP_LENGTH), verb, object: nouns, plural: nouns !== rest.join(" ") && rest.at(-1)?.endsWith("s") === true };
}
