import type { CallReading, RawCall } from "./calls.js";
import { readCall } from "./calls.js";
import type { ExportedTool, Form } from "./export-tool.js";
import { exportTool } from "./export-tool.js";
import type { Json, JsonObject } from "./json.js";
import { nameTools } from "./names.js";
import type { ReadTool, ToolInput } from "./read-tool.js";
import { readTool } from "./read-tool.js";
import type { ExportReport, ToolReport } from "./report.js";
import { reportOf } from "./report.js";

/** What every export may be told. */
export interface ExportOptions {
  /** Names that the caller gives to tools of its own: no exported tool takes one of them. */
  readonly reserved?: readonly string[];
  /** Most tools to export; later ones are refused. The default is what the provider takes in one request. */
  readonly most?: number;
  /** Longest description of a tool, in UTF-16 code units. The default is what the provider takes. */
  readonly descriptionLength?: number;
}

/** What a provider takes. */
export interface Takes {
  readonly form: Form;
  readonly most: number;
  readonly descriptionLength: number;
}

/** A set of tools in one provider's terms, and the way back. */
export class Toolbox {
  /** In the order given, without those refused. */
  readonly exported: readonly ExportedTool[];
  readonly report: ExportReport;
  readonly #byName: ReadonlyMap<string, ExportedTool>;
  readonly #byId: ReadonlyMap<string, ExportedTool>;

  constructor(inputs: readonly ToolInput[], takes: Takes, options: ExportOptions) {
    const read = inputs.map(readTool);
    const ids = read.flatMap((r) => (r.ok ? [r.tool.toolId] : []));
    const names = nameTools(ids, options.reserved);
    const exported: ExportedTool[] = [];
    const done = new Set<string>();
    const most = options.most ?? takes.most;
    const length = options.descriptionLength ?? takes.descriptionLength;

    const one = (input: ToolInput, source: ReadTool): ToolReport => {
      const refused = (reasons: readonly string[]): ToolReport => ({
        outcome: "refused",
        toolId: String(input.toolId).slice(0, 256),
        reasons,
      });
      if (!source.ok) return refused(source.reasons);
      const { tool } = source;
      if (done.has(tool.toolId)) return refused(["another tool of this set has the same tool_id"]);
      const name = names.get(tool.toolId);
      if (name === undefined) return refused(["no free name was found for it"]);
      if (exported.length >= most)
        return refused([`one request takes ${most} tools, and so many stand before it: offer fewer`]);
      const result = exportTool(tool, name, takes.form, length);
      if (!result.ok) return refused(result.reasons);
      done.add(tool.toolId);
      exported.push(result.tool);
      return reported(result.tool);
    };
    this.report = reportOf(inputs.map((input, i) => one(input, read[i] as ReadTool)));
    this.exported = exported;
    this.#byName = new Map(exported.map((tool) => [tool.name, tool]));
    this.#byId = new Map(exported.map((tool) => [tool.toolId, tool]));
  }

  /** The name that the provider sees; undefined for a tool that is not exported. */
  nameOf(toolId: string): string | undefined {
    return this.#byId.get(toolId)?.name;
  }

  toolIdOf(name: string): string | undefined {
    return this.#byName.get(name)?.toolId;
  }

  /** Arguments of a tool as the model would have written them, for a conversation that is played back. */
  argumentsFor(toolId: string, args: JsonObject): JsonObject | undefined {
    const tool = this.#byId.get(toolId);
    return tool && (tool.translator.fromTool(args as Json) as JsonObject);
  }

  /** The exported tools among these, in the order asked for. */
  pick(toolIds: readonly string[]): ExportedTool[] {
    return toolIds.flatMap((toolId) => this.#byId.get(toolId) ?? []);
  }

  read(raw: RawCall): CallReading {
    return readCall(raw, this.#byName);
  }
}

function reported(tool: ExportedTool): ToolReport {
  const { toolId, name, strict, notStrict, losses } = tool;
  const facts = { toolId, name, strict, notStrict };
  return losses.length === 0 ? { outcome: "exact", ...facts } : { outcome: "lossy", ...facts, losses };
}
