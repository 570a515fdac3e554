/** What shows only once a tool's definition is known. */
import { textLength, visible } from "../admission/text.js";
import { member, parseJson } from "../json.js";
import { type Leaf, leavesOf, stringOf } from "./parameters.js";
import type { QualityWarning } from "./warning.js";

/** About 300 tokens. Of 2,914 real descriptions one in a hundred is longer than 1,300 characters. */
const DESCRIPTION_LENGTH = 1_200;
/** Parameters that a sentence names. */
const NAMED = 5;
/** Of optional parameters some may go without a word; where more than half do, nobody can use them. */
const UNDESCRIBED_SHARE = 0.5;

/** Formats that every model writes right. */
const USUAL_FORMATS: ReadonlySet<string> = new Set(
  "date date-time time email idn-email uri url iri uri-reference uuid hostname ipv4 ipv6 int32 int64 uint32 uint64 float double byte binary password json".split(" "),
);
/** One class of characters, repeated: its description says as much. */
const PLAIN_PATTERN = /^\^?(?:\\[dwS]|\[[^\]]*\]|\.)(?:[+*]|\{\d+(?:,\d*)?\})?\$?$|^\^?\[[^\]]*\]\[[^\]]*\][+*]\$?$/;
/** Small languages and notations that a value has to be written in. */
const NOTATION =
  /\b(?:cron(?:tab)? (?:expression|syntax|format|schedule|string)|crontab|regex|regexp|regular expression|jql|jmespath|jsonpath|json path|xpath|graphql|rrule|css selector|glob pattern|strftime|iso ?8601 duration|(?:odata|lucene) (?:filter|query|expression|syntax)|kql|promql|logql|cql|soql)\b|正则|表达式/i;
/** Something that is given as an example: a word that announces it, a quotation, or a mask such as YYYY-MM-DD. */
const EXAMPLE =
  /\be\.?g\b|\bex(?:ample|emple|\.|:)|\bsuch as\b|\bfor instance\b|\blike\b|\bi\.e\b|\bz\. ?b\b|例|比如|形如|格式|[`"“”'«「][^`"“”'»」]{2,}[`"“”'»」]|\b[YMDHhms]{2,4}[-/:.T][YMDHhms]{2,4}\b|\(\s*[^()\s]+[:/=*][^()]*\)/i;

/** `definition` are the bytes of an admitted definition; bytes that do not parse are not judged. */
export function judgeDefinition(definition: Uint8Array): QualityWarning[] {
  const parsed = parseJson(new TextDecoder().decode(definition));
  if (!parsed.ok || parsed.root.kind !== "object") return [];
  const description = stringOf(parsed.root, "description");
  const schema = member(parsed.root, "inputSchema");
  const leaves = schema?.kind === "object" ? leavesOf(schema) : [];
  return [...undescribed(leaves), ...withoutExample(leaves, description), ...tooLong(description)];
}

/** A value that is shown needs no words; a required one that is not must have some. */
function undescribed(leaves: readonly Leaf[]): QualityWarning[] {
  const silent = leaves.filter(({ description, shown }) => description.trim() === "" && !shown);
  const required = silent.filter((leaf) => leaf.required);
  if (required.length === 0 && silent.length <= leaves.length * UNDESCRIBED_SHARE) return [];
  const named = [...required, ...silent.filter((leaf) => !leaf.required)];
  const count = silent.length === leaves.length ? (leaves.length === 1 ? "Its parameter" : "All of its parameters") : `${silent.length} of ${leaves.length} parameters`;
  const verb = silent.length === 1 ? "has" : "have";
  const message = `${count} ${verb} no description (${namesOf(named)}): say what each means, its unit and its default.`;
  return [{ kind: "undescribed-parameters", message }];
}

function withoutExample(leaves: readonly Leaf[], description: string): QualityWarning[] {
  const bare = leaves.filter((leaf) => isUnusual(leaf) && !leaf.shown && !EXAMPLE.test(leaf.description));
  if (bare.length === 0 || /\bexamples?\b|例如|示例/i.test(description)) return [];
  const one = bare.length === 1;
  const what = one ? "A parameter has" : `${bare.length} parameters have`;
  const message = `${what} an unusual format and no example (${namesOf(bare)}): give one in \`examples\` or in the description.`;
  return [{ kind: "no-example", message }];
}

function isUnusual({ name, text, pattern, format, description }: Leaf): boolean {
  if (!text || USUAL_FORMATS.has(format)) return false;
  if (pattern !== "" && !PLAIN_PATTERN.test(pattern)) return true;
  if (format !== "") return true;
  return NOTATION.test(description.slice(0, 500)) || NOTATION.test(name.replace(/[._]/g, " "));
}

function tooLong(description: string): QualityWarning[] {
  const length = textLength(description);
  if (length <= DESCRIPTION_LENGTH) return [];
  const message = `Its description has ${length} characters, and every call pays for them: keep what is needed to call it, in at most ${DESCRIPTION_LENGTH}.`;
  return [{ kind: "too-long", message }];
}

function namesOf(leaves: readonly Leaf[]): string {
  const names = leaves.slice(0, NAMED).map(({ name }) => visible(name, 48));
  return leaves.length > NAMED ? `${names.join(", ")} and ${leaves.length - NAMED} more` : names.join(", ");
}
