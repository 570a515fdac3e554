import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Parameter, ToolDocument } from "../../src/gate/document.js";

/** A retrieval set: tools, and queries with the tools that answer them. */
export interface RetrievalSet {
  readonly name: string;
  readonly tools: readonly SetTool[];
  readonly queries: readonly SetQuery[];
}

export interface SetTool {
  readonly id: string;
  readonly name: string;
  readonly description?: string;
  readonly server?: string;
  readonly category?: string;
  readonly inputSchema?: JsonSchema;
}

export interface SetQuery {
  readonly id: string;
  readonly text: string;
  readonly relevant: readonly string[];
  readonly history?: readonly string[];
}

interface JsonSchema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly enum?: readonly unknown[];
}

export const SETS = ["metatool", "livemcpbench", "bfcl-live", "acebench-zh", "acebench-en", "sealtools", "toolbench"] as const;

/** A set under a folder, or why there is none. `queries` replaces its own. */
export function readSet(folder: string, name: string, queries?: string): RetrievalSet | { readonly missing: string } {
  const tools = join(folder, name, "tools.jsonl");
  const own = queries ?? join(folder, name, "queries.dev.jsonl");
  for (const file of [tools, own]) if (!existsSync(file)) return { missing: `${file} is not there` };
  return { name, tools: lines<SetTool>(tools), queries: lines<SetQuery>(own) };
}

function lines<T>(file: string): T[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => JSON.parse(line) as T);
}

export function documentsOf(set: RetrievalSet): ToolDocument[] {
  return set.tools.map((tool) => ({
    toolId: tool.id,
    serverId: tool.server ?? "",
    name: tool.name,
    title: "",
    description: tool.description ?? "",
    useWhen: "",
    keywords: [],
    tags: tool.category === undefined ? [] : [tool.category],
    service: tool.server ?? "",
    parameters: parametersOf(tool.inputSchema),
  }));
}

function parametersOf(schema: JsonSchema | undefined, depth = 0): Parameter[] {
  if (!schema || typeof schema !== "object" || depth >= 4) return [];
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, value]) => [
    { name, description: typeof value?.description === "string" ? value.description : "", values: valuesOf(value) },
    ...parametersOf(value, depth + 1),
  ]);
  return [...own, ...parametersOf(schema.items, depth + 1)];
}

function valuesOf(schema: JsonSchema): string[] {
  const values = schema?.enum ?? schema?.items?.enum ?? [];
  return Array.isArray(values) ? values.slice(0, 64).filter((value) => typeof value === "string") : [];
}
