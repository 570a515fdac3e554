/** The listings of real servers: those of the repository, and the whole corpus where it is at hand. */
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { findNodeAtLocation, type Node, parseTree } from "jsonc-parser";

export const SMALL = fileURLToPath(new URL("../fixtures/corpus", import.meta.url));
export const LARGE = fileURLToPath(new URL("../../../shared/corpus/mcp-servers", import.meta.url));
export interface Sent {
  readonly text: string;
  readonly inputSchema: string;
}

export interface Harvest {
  readonly serverId: string;
  readonly file: string;
  /** name → what the server sends. */
  readonly tools: ReadonlyMap<string, Sent>;
}

export function harvestsIn(folder: string): Harvest[] {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .sort();
  return files.map((name) => readHarvest(join(folder, name)));
}

function readHarvest(file: string): Harvest {
  const text = readFileSync(file, "utf8");
  const slice = (node: Node | undefined): string => (node ? text.slice(node.offset, node.offset + node.length) : "");
  const nodes = findNodeAtLocation(parseTree(text) as Node, ["tools"])?.children ?? [];
  const tools = nodes.map((node): [string, Sent] => {
    const name = findNodeAtLocation(node, ["name"])?.value as string;
    return [name, { text: slice(node), inputSchema: slice(findNodeAtLocation(node, ["inputSchema"])) }];
  });
  return { serverId: basename(file, ".json"), file, tools: new Map(tools) };
}
