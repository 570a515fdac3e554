/** Selectors as they are written in rule files, and the tools that they select. */
import { SLUG_PATTERN, TAG_PATTERN, toolId } from "../../domain/ids.js";
import type { Selector } from "./model.js";
import { nearest } from "./nearest.js";

export type ReadSelector =
  | { readonly ok: true; readonly selector: Selector }
  | { readonly ok: false; readonly problem: string };

const SERVER_GLOB = /^[a-z0-9*][a-z0-9._*-]{0,62}$/;
const TOOL_GLOB = /^[A-Za-z0-9_.*-]{1,128}$/;
const PREFIXES = ["server", "tag", "category"];
const EXPECTED = "a tool (close_order, erp/close_order, erp/*), server:erp, tag:network or category:files";

export function readSelector(text: string): ReadSelector {
  const colon = text.indexOf(":");
  const wrong = (why: string): ReadSelector => ({ ok: false, problem: `${shown(text)} ${why}` });
  if (colon < 0) {
    const slash = text.indexOf("/");
    const server = slash < 0 ? "*" : text.slice(0, slash);
    const tool = text.slice(slash + 1);
    if (SERVER_GLOB.test(server) && TOOL_GLOB.test(tool)) return { ok: true, selector: { kind: "tool", server, tool, text } };
    return wrong(`is no selector; one is ${EXPECTED}`);
  }
  const value = text.slice(colon + 1);
  switch (text.slice(0, colon)) {
    case "server":
      return SERVER_GLOB.test(value)
        ? { ok: true, selector: { kind: "server", server: value, text } }
        : wrong("names no server: a server_id, in which * stands for any characters");
    case "tag":
      return TAG_PATTERN.test(value) ? { ok: true, selector: { kind: "tag", tag: value, text } } : wrong("names no tag");
    case "category":
      return SLUG_PATTERN.test(value)
        ? { ok: true, selector: { kind: "category", category: value, text } }
        : wrong("names no category");
    default:
      return wrong(`is no selector; one is ${EXPECTED}${nearest(text.slice(0, colon), PREFIXES)}`);
  }
}

function shown(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

/** What selectors look at. */
export interface Selectable {
  readonly name: string;
  /** Of its server and its own. */
  readonly tags: readonly string[];
}

export type Selects = (serverId: string, tool: Selectable) => boolean;

/** Whether any of them selects a tool; `categories` are the declared ones that they may name. */
export function selects(selectors: readonly Selector[], categories: ReadonlyMap<string, Selects> = new Map()): Selects {
  const ids = new Set<string>();
  const names = new Set<string>();
  const servers = new Set<string>();
  const tags = new Set<string>();
  const others: Selects[] = [];
  for (const selector of selectors) {
    if (selector.kind === "tag") tags.add(selector.tag);
    else if (selector.kind === "category") others.push(categories.get(selector.category) ?? (() => false));
    else if (selector.kind === "server") addServer(selector.server, servers, others);
    else if (selector.tool === "*") addServer(selector.server, servers, others);
    else if (isPlain(selector.tool) && isPlain(selector.server)) ids.add(toolId(selector.server, selector.tool));
    else if (isPlain(selector.tool) && selector.server === "*") names.add(selector.tool);
    else {
      const server = glob(selector.server);
      const tool = glob(selector.tool);
      others.push((serverId, { name }) => server(serverId) && tool(name));
    }
  }
  return (serverId, tool) =>
    servers.has(serverId) ||
    names.has(tool.name) ||
    (tags.size > 0 && tool.tags.some((tag) => tags.has(tag))) ||
    (ids.size > 0 && ids.has(toolId(serverId, tool.name))) ||
    others.some((other) => other(serverId, tool));
}

function addServer(server: string, servers: Set<string>, others: Selects[]): void {
  if (isPlain(server)) return void servers.add(server);
  const matches = glob(server);
  others.push((serverId) => matches(serverId));
}

export function isPlain(pattern: string): boolean {
  return !pattern.includes("*");
}

/** Whether a text fits a pattern in which each `*` stands for any characters: in steps ≤ text × pattern, whatever they are. */
export function glob(pattern: string): (text: string) => boolean {
  if (isPlain(pattern)) return (text) => text === pattern;
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop() ?? "";
  const middle = rest.filter((part) => part !== "");
  return (text) => {
    if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
    let at = first.length;
    for (const part of middle) {
      const found = text.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return at <= text.length - last.length;
  };
}

/** Every tool that the second selects is selected by the first, as far as their texts tell. */
export function covers(first: Selector, second: Selector): boolean {
  if (first.kind === "tag" || second.kind === "tag") return first.kind === second.kind && first.text === second.text;
  if (first.kind === "category" || second.kind === "category") return first.text === second.text;
  const [server, tool] = [first.server, first.kind === "tool" ? first.tool : "*"];
  // A star in the second stands for characters that a star of the first takes, too.
  return glob(server)(second.server) && glob(tool)(second.kind === "tool" ? second.tool : "*");
}
