/** What was found, as a model reads it. */
import { Reason_Kind, SideEffect, WithheldTool_Cause, type FindToolsResponse, type RankedTool } from "../../client/index.js";
import type { Catalogue } from "../catalogue.js";
import type { Found } from "./finding.js";

/** How a tool is named to this client. */
export type NameOf = (toolId: string) => string;

/** Of each tool its name with what it does, or, where the client's own list says that, its name alone. */
export type Detail = "labels" | "names";

/** Of a name that is told again, in characters. */
const SHOWN_NAME = 100;

/** The tools line by line, who was withheld, and what that means. */
export function foundText(found: Found, catalogue: Catalogue, nameOf: NameOf, detail: Detail): string {
  const line = (toolId: string): string => labelLine(toolId, catalogue, nameOf, detail);
  switch (found.kind) {
    case "ranked":
      return [rankedText(found.answer, found.toolIds, line, nameOf, detail), ...(found.fallback === "" ? [] : [`(${found.fallback})`])].join("\n");
    case "category":
      return [`Category ${found.category}:`, ...found.toolIds.map(line), ...staleLine(found.stale)].join("\n");
    case "large":
      return `Category ${found.category} has ${found.tools} tools, too many at once. Say an intent as well, or name one of these as the category:\n${found.map}`;
    case "no-category":
      return `There is no category ${JSON.stringify(found.category.slice(0, SHOWN_NAME))}. Call find_tools without arguments for the categories, or leave it out and say an intent.`;
    case "nothing-asked":
      return "";
  }
}

function rankedText(answer: FindToolsResponse, toolIds: readonly string[], line: (toolId: string) => string, nameOf: NameOf, detail: Detail): string {
  const ranked = new Map(answer.tools.map((tool) => [tool.stub?.toolId ?? "", tool]));
  const head = toolIds.length === 0 ? ["No tool fits. Say it in other words, or name a category."] : answer.weak ? ["Nothing really fits; the nearest are:"] : [];
  const lines = toolIds.map((id) => {
    const tool = ranked.get(id);
    return tool ? `${line(id)}${beside(tool, nameOf, detail)}` : line(id);
  });
  const bundles = answer.bundles.map((b) => `Often used one after the other: ${b.toolIds.map(nameOf).join(" → ")}${b.description ? ` (${b.description})` : ""}`);
  const withheld = answer.withheld.slice(0, 5).map(({ toolId, cause, why, substitutes }) => {
    const instead = substitutes.length > 0 ? `; instead: ${substitutes.join(", ")}` : "";
    return `Not offered: ${toolId} (${(WithheldTool_Cause[cause] ?? "").toLowerCase()}: ${why}${instead})`;
  });
  return [...head, ...lines, ...bundles, ...withheld, ...staleLine(answer.stale)].join("\n");
}

function labelLine(toolId: string, catalogue: Catalogue, nameOf: NameOf, detail: Detail): string {
  const tool = catalogue.tool(toolId);
  const says = detail === "names" ? "" : tool?.briefDescription || tool?.title || "";
  const destructive = tool?.hints?.destructive === true && tool.hints.readOnly !== true ? " [may destroy data]" : "";
  return `- ${nameOf(toolId)}${says === "" ? "" : `: ${says.replace(/\s+/g, " ")}`}${destructive}`;
}

/** Why a tool is here that was not looked for. That it changes nothing is in the list's annotations, too. */
function beside({ reasons, sideEffect }: RankedTool, nameOf: NameOf, detail: Detail): string {
  const notes = reasons.flatMap(({ kind, detail }) => {
    if (kind === Reason_Kind.SIBLING) return [`do not confuse it with ${nameOf(detail)}`];
    if (kind === Reason_Kind.COMPANION) return [`goes with ${nameOf(detail)}`];
    if (kind === Reason_Kind.RULE) return [`rule ${detail}`];
    return [];
  });
  if (sideEffect === SideEffect.READ_ONLY && detail === "labels") notes.push("changes nothing");
  return notes.length === 0 ? "" : ` (${notes.join("; ")})`;
}

function staleLine(stale: boolean): string[] {
  return stale ? ["The registry cannot reach its store, so this may be out of date (stale)."] : [];
}
