import { compareText, splitToolId } from "../domain/ids.js";
import type { ServerRecord, Tool } from "../domain/server.js";
import type { Directory } from "./ports.js";

/** Finds by name in a list that is in name order. */
export function findByName<T extends { readonly name: string }>(list: readonly T[], name: string): T | undefined {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const item = list[middle];
    if (!item) return undefined;
    const order = compareText(item.name, name);
    if (order === 0) return item;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return undefined;
}

export interface Located {
  readonly record: ServerRecord;
  readonly tool: Tool;
}

/** Also a tool that is withheld. */
export function locate(directory: Directory, namespace: string, toolId: string): Located | undefined {
  const parts = splitToolId(toolId);
  const record = parts && directory.server(namespace, parts.serverId);
  const tool = record && findByName(record.tools, parts.toolName);
  return tool && { record, tool };
}
