import type { Definition } from "../definition.js";
import { readDefinition } from "../definition.js";
import { DIGEST_PATTERN, splitToolId } from "../ids.js";
import { glanceJson } from "../json.js";
import type { DeclaredLabel, Label } from "../label.js";
import { deriveLabel, labelWithoutDefinition, mergeLabel } from "../label.js";
import { LIMITS } from "../limits.js";
import { schemaUriReasons } from "./endpoint.js";
import { keywordReasons, nameReasons, oneLineReasons } from "./names.js";
import { ReasonList } from "./reasons.js";
import { quoted, textReasons, visible } from "./text.js";

/** One tool as its registrant declares it; at least one of the two parts belongs there. */
export interface DeclaredToolShape {
  readonly label: DeclaredLabel | undefined;
  /** Whole definition; undefined when it is to be fetched from the server. */
  readonly definition: Uint8Array | undefined;
  /** What was wrong with it already as it was sent, as a predicate. */
  readonly wireProblem?: string;
}

export type AdmittedTool =
  | { readonly ok: true; readonly label: Label; readonly definition: Definition | undefined }
  /** `name` is fit for a message; it may be empty. */
  | { readonly ok: false; readonly name: string; readonly reasons: string[] };

/** Judges one declared tool, and merges its label with what its definition says. A fault rejects this tool alone (P9). */
export function admitDeclaredTool(tool: DeclaredToolShape, index: number): AdmittedTool {
  const field = `declared.tools[${index}]`;
  const reasons = new ReasonList();
  const read = tool.definition ? readDefinition(tool.definition) : undefined;
  const definition = read?.ok ? read.definition : undefined;
  if (tool.wireProblem !== undefined) reasons.add(`${field} ${tool.wireProblem}`);
  if (!tool.label && !tool.definition) reasons.add(`${field} holds neither stub nor definition: give at least one`);
  if (tool.label) judgeLabel(tool.label, tool.definition !== undefined, `${field}.stub`, reasons);
  // Not through the list, which would count again what is counted already.
  const inDefinition = read && !read.ok ? read.reasons.map((reason) => `${field}.definition: ${reason}`) : [];
  if (tool.label && definition) compare(tool.label, definition, `${field}.stub`, reasons);

  const fine = reasons.empty && inDefinition.length === 0;
  const label = fine ? labelOf(tool.label, definition) : undefined;
  const size = label ? stubSize(label) : 0;
  if (size > LIMITS.stubBytes)
    reasons.add(`${field}.stub has about ${size} bytes, the limit is ${LIMITS.stubBytes}: shorten its texts and lists`);
  if (label && reasons.empty) return { ok: true, label, definition };
  return { ok: false, name: visible(declaredName(tool)), reasons: [...reasons.done(), ...inDefinition] };
}

/** Why one declared tool is rejected; empty if it is fine. */
export function checkDeclaredTool(tool: DeclaredToolShape, index: number): string[] {
  const admitted = admitDeclaredTool(tool, index);
  return admitted.ok ? [] : admitted.reasons;
}

/** The name a declared tool goes by: its label's, else its definition's as far as it can be read; empty if there is none. */
export function declaredName(tool: DeclaredToolShape): string {
  if (tool.label?.name) return tool.label.name;
  return tool.definition ? glanceJson(tool.definition).name : "";
}

function labelOf(label: DeclaredLabel | undefined, definition: Definition | undefined): Label | undefined {
  if (!definition) return label && labelWithoutDefinition(label);
  const derived = deriveLabel(definition);
  return label ? mergeLabel(label, derived) : derived;
}

function compare(label: DeclaredLabel, definition: Definition, field: string, reasons: ReasonList): void {
  if (label.name !== "" && label.name !== definition.name)
    reasons.add(`${field}.name is ${quoted(label.name)}, but the definition is of ${quoted(definition.name)}: use one name`);
  if (label.digest !== "" && label.digest !== definition.digest)
    reasons.add(
      `${field}.digest is ${quoted(label.digest, 80)}, but the definition sent along has ${definition.digest}: leave it out, or send the matching definition`,
    );
}

/** A name may be left out where a definition names the tool. Each reason begins with its field. */
export function judgeLabel(label: DeclaredLabel, hasDefinition: boolean, field: string, reasons: ReasonList): void {
  const each = (part: string, found: readonly string[]): void => {
    for (const reason of found) reasons.add(`${field}.${part} ${reason}`);
  };
  if (label.name !== "" || !hasDefinition) each("name", nameReasons("tool_name", label.name));
  each("title", textReasons(label.title, LIMITS.titleLength));
  each("brief_description", textReasons(label.briefDescription, LIMITS.briefLength));
  each("use_when", textReasons(label.useWhen, LIMITS.useWhenLength));
  if (label.schemaUri !== "") each("schema_uri", schemaUriReasons(label.schemaUri));
  if (label.digest !== "" && !DIGEST_PATTERN.test(label.digest))
    each("digest", [`is ${quoted(label.digest, 80)}, a digest is sha256: and 64 lower-case hex digits`]);

  const list = <T>(part: string, items: readonly T[], limit: number, judge: (item: T) => string[]): void => {
    if (items.length > limit) each(part, [`holds ${items.length} entries, the limit is ${limit}: send fewer`]);
    else for (const [i, item] of items.entries()) each(`${part}[${i}]`, judge(item));
  };
  list("tags", label.tags, LIMITS.tags, (tag) => nameReasons("tag", tag));
  list("keywords", label.keywords, LIMITS.keywords, keywordReasons);
  list("requires", label.requires, LIMITS.requires, (required) =>
    required.kind === "tool"
      ? toolReferenceReasons(required.value)
      : oneLineReasons(required.value, LIMITS.requireLength, `a required ${required.kind}`),
  );
  list("substitutes", label.substitutes, LIMITS.substitutes, toolReferenceReasons);
}

/** A tool_id, or the name of a tool of the same server. */
function toolReferenceReasons(reference: string): string[] {
  const split = splitToolId(reference);
  if (!split) return nameReasons("tool_name", reference);
  return [...nameReasons("server_id", split.serverId), ...nameReasons("tool_name", split.toolName)];
}

/** Bytes of a label's texts and a few for each field: a little more than its encoding takes. */
export function stubSize(label: Label): number {
  const texts = [
    label.title,
    label.briefDescription,
    label.useWhen,
    label.schemaUri,
    label.digest,
    ...label.tags,
    ...label.keywords,
    ...label.substitutes,
    ...label.requires.flatMap((required) => [required.value, ""]),
  ];
  const ids = 2 * LIMITS.slugLength + 2 * Buffer.byteLength(label.name);
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text) + 4, ids + 64);
}
