/** Which tools a question may be answered with, and why the others may not. */
import { matchesServer, matchesTool } from "../domain/filter.js";
import { toolId } from "../domain/ids.js";
import { isWithheld, whyWithheld } from "../domain/quarantine.js";
import type { StubFields } from "../domain/stub.js";
import type { FindQuery, SideEffect, WithheldTool } from "./api.js";
import { isIn } from "./modules.js";
import type { Cut, ListedTool } from "./ports.js";
import { Granted, missingWords } from "./preconditions.js";
import type { Rules, Ruling } from "./stages.js";

export interface OfferDeps {
  readonly cut: Cut;
  readonly labelOf: (listed: ListedTool) => StubFields;
  readonly ruling: Ruling;
  /** Members of the declared category that is asked for, if it is one. */
  readonly category: ReturnType<Rules["category"]>;
}

export type Refusal = Omit<WithheldTool, "score">;

export class Offers {
  private readonly granted: Granted;

  constructor(
    private readonly query: FindQuery,
    private readonly deps: OfferDeps,
  ) {
    this.granted = new Granted(query);
  }

  /** The tool if it is asked for. Availability is no matter of the filter: who is unavailable is named as withheld. */
  lookUp(id: string): ListedTool | undefined {
    const listed = this.deps.cut.tool(id);
    return listed && this.wanted(listed) ? listed : undefined;
  }

  mayOffer(id: string): boolean {
    const listed = this.lookUp(id);
    return listed !== undefined && this.isOpen(listed);
  }

  refusal(id: string, listed: ListedTool): Refusal | undefined {
    const { availability, serverId, tool } = listed;
    const denial = isWithheld(tool) || availability === "unavailable" ? undefined : this.deps.ruling.denial(serverId, tool);
    const label = this.deps.labelOf(listed);
    const refused = (cause: Refusal["cause"], why: string): Refusal => {
      const substitutes = label.substitutes.map((name) => (name.includes("/") ? name : toolId(serverId, name)));
      return { toolId: id, cause, why, substitutes };
    };
    if (isWithheld(tool)) return refused("quarantined", whyWithheld(tool));
    if (availability === "unavailable") return refused("unhealthy", `its server ${serverId} is unavailable`);
    if (denial !== undefined) return refused("rule", denial);
    const missing = this.granted.missing(label.requires, serverId);
    if (missing.length === 0) return undefined;
    return refused(missing.some(({ kind }) => kind === "scope") ? "scope" : "precondition", missingWords(missing));
  }

  /** Tools whose success is all that keeps this one from being offered; empty where it is something else, too. */
  neededFirst(id: string): readonly string[] {
    const listed = this.lookUp(id);
    if (!listed || this.refusal(id, listed)?.cause !== "precondition") return [];
    const { serverId } = listed;
    const missing = this.granted.missing(this.deps.labelOf(listed).requires, serverId);
    return missing.flatMap(({ kind, value }) => (kind === "tool" ? [value.includes("/") ? value : toolId(serverId, value)] : []));
  }

  /** As `refusal`, for a great many tools: a label is read only where nothing else tells. */
  private isOpen(listed: ListedTool): boolean {
    const { availability, serverId, tool } = listed;
    if (isWithheld(tool) || availability === "unavailable" || this.deps.ruling.denial(serverId, tool) !== undefined) return false;
    return this.granted.missing(this.deps.labelOf(listed).requires, serverId).length === 0;
  }

  private wanted(listed: ListedTool): boolean {
    const { filter, category } = this.query;
    const { tool, serverId, siblings } = listed;
    if (!matchesServer(filter, filter.namespace, serverId) || !matchesTool(filter, tool)) return false;
    if (category === "") return true;
    const { category: declared } = this.deps;
    return declared ? declared(serverId, tool) : isIn(category, serverId, tool.name, siblings);
  }
}

/** What the annotations say a call may do: `destructive` counts only where it is not read-only, as MCP has it. */
export function sideEffectOf({ hints }: StubFields): SideEffect {
  if (hints.readOnly === true) return "read-only";
  if (hints.destructive === true) return "destructive";
  return hints.destructive === false ? "additive" : "unknown";
}
