/** The names of things. Patterns are checked in `admission/names.ts`; here are the shapes and their joins. */

export const DEFAULT_NAMESPACE = "default";

/** `[a-z0-9]` then `[a-z0-9._-]`, at most 63 characters: server ids and namespaces. */
export const SLUG_PATTERN = /^[a-z0-9][a-z0-9._-]{0,62}$/;
/** What MCP allows as a tool name. */
export const TOOL_NAME_PATTERN = /^[A-Za-z0-9_.-]{1,128}$/;
/** The registrant's own id of its process. */
export const INSTANCE_ID_PATTERN = /^[A-Za-z0-9._-]{8,64}$/;
export const DIGEST_PATTERN = /^sha256:[0-9a-f]{64}$/;
export const TAG_PATTERN = /^[a-z0-9][a-z0-9._:/-]{0,62}$/;

/** `server_id/tool_name`. A server_id has no slash, so the first slash splits. */
export function toolId(serverId: string, toolName: string): string {
  return `${serverId}/${toolName}`;
}

/** Splits a tool_id; undefined if there is no slash. */
export function splitToolId(id: string): { serverId: string; toolName: string } | undefined {
  const slash = id.indexOf("/");
  if (slash < 1) return undefined;
  return { serverId: id.slice(0, slash), toolName: id.slice(slash + 1) };
}

/** Key of a server inside a partition. Neither part can hold a slash. */
export function serverKey(namespace: string, serverId: string): string {
  return `${namespace}/${serverId}`;
}

/** Compares by UTF-16 code units: the one order of tool_ids, tags and names, the same on every machine. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
