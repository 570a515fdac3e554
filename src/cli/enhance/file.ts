/** The file of proposed labels: written by `propose`, read and edited by an operator, approved from it. */
import { readFileSync, statSync } from "node:fs";
import { parse, stringify } from "yaml";
import { textsViolations } from "../../domain/admission/overlay.js";
import { DIGEST_PATTERN, splitToolId } from "../../domain/ids.js";
import type { LabelTexts } from "../../domain/overlay.js";
import { CommandError } from "../io.js";

export interface Proposal {
  readonly toolId: string;
  readonly texts: LabelTexts;
  readonly digest: string;
  readonly madeFor: LabelTexts;
}

/** Larger than a thousand labels of the longest kind. */
const FILE_BYTES = 16 * 1024 * 1024;
const SHOWN_PROBLEMS = 20;

export function formatProposals(proposals: readonly Proposal[], { model, namespace, at }: { model: string; namespace: string; at: string }): string {
  const head = [
    `Labels proposed by ${JSON.stringify(model)} at ${at}. Nothing of it is in force.`,
    "Read each one, change what is wrong, delete what you do not want; leave made_for as it is. Then:",
    `  toolcrib enhance approve FILE${namespace === "" ? "" : ` --namespace ${namespace}`}            shown to everybody`,
    `  toolcrib enhance approve FILE${namespace === "" ? "" : ` --namespace ${namespace}`} --trial    shown to half of the callers of FindTools`,
  ].map((text) => `# ${text}\n`);
  const overlays = proposals.map(({ toolId, texts, digest, madeFor }) => ({ tool: toolId, ...wire(texts), made_for: { digest, ...wire(madeFor) } }));
  return `${head.join("")}${stringify({ overlays }, { lineWidth: 100 })}`;
}

function wire({ briefDescription, keywords, useWhen }: LabelTexts) {
  return { brief_description: briefDescription, keywords: [...keywords], use_when: useWhen };
}

/** Throws CommandError with every problem of the file. */
export function readProposals(path: string): readonly Proposal[] {
  const problems: string[] = [];
  const root = rootOf(path);
  const list = (root as { readonly overlays?: unknown } | null)?.overlays;
  if (!Array.isArray(list)) throw new CommandError(`${path} is no file of labels: it needs a list "overlays"`);
  const seen = new Set<string>();
  const proposals = list.map((item: unknown, i) => {
    const proposal = proposalOf(item, `overlays[${i}]`, problems);
    if (seen.has(proposal.toolId)) problems.push(`overlays[${i}].tool: ${proposal.toolId} stands here twice`);
    seen.add(proposal.toolId);
    return proposal;
  });
  if (problems.length === 0) return proposals;
  const more = problems.length - SHOWN_PROBLEMS;
  const shown = problems.slice(0, SHOWN_PROBLEMS).map((problem) => `  ${problem}`);
  throw new CommandError([`${path} cannot be taken; nothing was changed:`, ...shown, ...(more > 0 ? [`  and ${more} more`] : [])].join("\n"));
}

function rootOf(path: string): unknown {
  try {
    if (statSync(path).size > FILE_BYTES) throw new CommandError(`${path} has more than ${FILE_BYTES} bytes: split it`);
    return parse(readFileSync(path, "utf8"));
  } catch (error) {
    if (error instanceof CommandError) throw error;
    const why = error instanceof Error ? error.message.split("\n")[0] : String(error);
    throw new CommandError(`${path} cannot be read: ${why}`);
  }
}

function proposalOf(item: unknown, field: string, problems: string[]): Proposal {
  const entry = objectOf(item, field, problems);
  const madeFor = objectOf(entry["made_for"], `${field}.made_for`, problems);
  const toolId = textIn(entry, "tool", field, problems);
  if (!splitToolId(toolId)) problems.push(`${field}.tool: a tool_id is expected, such as memory/create_entities`);
  const digest = textIn(madeFor, "digest", `${field}.made_for`, problems);
  if (!DIGEST_PATTERN.test(digest)) problems.push(`${field}.made_for.digest: leave it as it was proposed`);
  const texts = textsIn(entry, field, problems);
  for (const { field: where, description } of textsViolations(field, texts)) problems.push(`${where}: ${description}`);
  return { toolId, texts, digest, madeFor: textsIn(madeFor, `${field}.made_for`, problems) };
}

function textsIn(entry: Readonly<Record<string, unknown>>, field: string, problems: string[]): LabelTexts {
  const keywords = entry["keywords"] ?? [];
  const words = Array.isArray(keywords) && keywords.every((word): word is string => typeof word === "string") ? keywords : undefined;
  if (!words) problems.push(`${field}.keywords: a list of texts is expected`);
  return {
    briefDescription: textIn(entry, "brief_description", field, problems),
    keywords: words ?? [],
    useWhen: textIn(entry, "use_when", field, problems),
  };
}

function textIn(entry: Readonly<Record<string, unknown>>, key: string, field: string, problems: string[]): string {
  const value = entry[key] ?? "";
  if (typeof value === "string") return value;
  problems.push(`${field}.${key}: a text is expected; put it in quotes`);
  return "";
}

function objectOf(value: unknown, field: string, problems: string[]): Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  problems.push(`${field}: an object is expected`);
  return {};
}
