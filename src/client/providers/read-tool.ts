import { glanceJson } from "../../domain/json.js";
import { LIMITS } from "../../domain/limits.js";
import type { JsonObject } from "./json.js";
import { isObject } from "./json.js";

/** One tool to export: its definition as the registry served it (bytes), or parsed. */
export interface ToolInput {
  /** `server_id/tool_name`: what calls are mapped back to. */
  readonly toolId: string;
  /** The MCP tool object: JSON in UTF-8, or what it parses to. */
  readonly definition: Uint8Array | object;
}

export interface SourceTool {
  readonly toolId: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
}

export type ReadTool =
  | { readonly ok: true; readonly tool: SourceTool }
  | { readonly ok: false; readonly reasons: readonly string[] };

/** Reads what an export needs of a definition. Whatever was given, it never throws. */
export function readTool(input: ToolInput): ReadTool {
  const reasons: string[] = [];
  const refused = (): ReadTool => ({ ok: false, reasons });
  if (typeof input.toolId !== "string" || input.toolId === "") reasons.push("the tool_id is not a text, or empty");
  const read = readDefinition(input.definition);
  if (typeof read === "string") reasons.push(read);
  if (typeof read === "string" || reasons.length > 0) return refused();

  const { title, description, inputSchema } = read;
  if (!isObject(inputSchema)) {
    reasons.push("the definition has no inputSchema that is an object");
    return refused();
  }
  const type = inputSchema["type"];
  if (type !== undefined && type !== "object" && !(Array.isArray(type) && type.includes("object")))
    reasons.push(`the inputSchema takes ${JSON.stringify(type).slice(0, 60)}, but arguments are always an object`);
  if (reasons.length > 0) return refused();
  const text = typeof description === "string" && description !== "" ? description : title;
  return {
    ok: true,
    tool: { toolId: input.toolId, description: typeof text === "string" ? text : "", inputSchema },
  };
}

/** The parsed definition, or the reason why there is none. Objects go through text as well: they may be cyclic or no JSON. */
function readDefinition(given: Uint8Array | object): JsonObject | string {
  try {
    const bytes = given instanceof Uint8Array ? given : Buffer.from(JSON.stringify(given));
    if (bytes.byteLength > LIMITS.definitionBytes)
      return `the definition has ${bytes.byteLength} bytes, the limit is ${LIMITS.definitionBytes}`;
    const { depth } = glanceJson(bytes);
    if (depth > LIMITS.schemaDepth)
      return `the definition nests ${depth} levels deep, the limit is ${LIMITS.schemaDepth}`;
    const parsed: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return isObject(parsed) ? parsed : "the definition is not one JSON object";
  } catch (error) {
    return `the definition cannot be read as JSON: ${error instanceof Error ? error.message.slice(0, 200) : "unknown"}`;
  }
}
