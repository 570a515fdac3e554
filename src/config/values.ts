/** Reading one value of one kind: the value, or what was expected instead. */
import { DEFAULT_NAMESPACE, SLUG_PATTERN, splitToolId, TOOL_NAME_PATTERN } from "../domain/ids.js";
import { type AllowList, readAllowList } from "../domain/admission/egress.js";
import { REDIS_FORMS, readRedisAddress } from "../domain/redis-address.js";
import type { HostPort, ToolName, Kind, StoreChoice } from "./setting.js";

export type Read =
  | {
      readonly ok: true;
      readonly value:
        | HostPort
        | StoreChoice
        | AllowList
        | string
        | number
        | boolean
        | readonly string[]
        | readonly ToolName[];
    }
  /** Completes the sentence "… must be <expected>". */
  | { readonly ok: false; readonly expected: string };

/** The URL with its password, if any, replaced by `***`; texts that are no URL come back as `***`. */
export function redactUrl(url: string): string {
  // A password with an unescaped / ? or # ends the host too early for the parser, and the rest of it would be shown.
  if (/\/\/.*[/?#].*@/s.test(url)) return "***";
  try {
    const parsed = new URL(url);
    if (parsed.password !== "") parsed.password = "***";
    parsed.search = "";
    return parsed.href;
  } catch {
    return "***";
  }
}

export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** `host:port`, brackets around IPv6. */
export function formatAddress(address: HostPort): string {
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

export function readValue(kind: Kind, text: string): Read {
  switch (kind.kind) {
    case "address":
      return readAddress(text);
    case "address or off":
      return text === "off" ? { ok: true, value: "off" } : orOff(readAddress(text));
    case "origins":
      return readOrigins(text);
    case "store":
      return readStore(text);
    case "destinations":
      return readDestinations(text);
    case "tools":
      return readTools(text, kind.max);
    case "text":
      return kind.rule.pattern.test(text) ? { ok: true, value: text } : { ok: false, expected: kind.rule.expected };
    case "optional":
      return text === "" || kind.rule.pattern.test(text)
        ? { ok: true, value: text }
        : { ok: false, expected: kind.rule.expected };
    case "choices":
      return readChoices(text, kind.of);
    case "choice":
      return kind.of.includes(text)
        ? { ok: true, value: text }
        : { ok: false, expected: `one of ${kind.of.join(", ")}` };
    case "integer":
      return readInteger(text, kind.min, kind.max);
    case "switch":
      return readSwitch(text);
  }
}

const ADDRESS = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/;

function readAddress(text: string): Read {
  const match = ADDRESS.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || !(port <= 65_535)) {
    return { ok: false, expected: "host:port with a port from 0 to 65535, such as 127.0.0.1:7850 or [::1]:7850" };
  }
  return { ok: true, value: Object.freeze({ host, port }) };
}

function orOff(read: Read): Read {
  return read.ok ? read : { ok: false, expected: `${read.expected}, or off` };
}

function readOrigins(text: string): Read {
  const origins = text.split(",").flatMap((part) => part.trim() || []);
  const wrong = origins.filter((origin) => origin !== "*" && !isOrigin(origin));
  if (wrong.length === 0 && (origins.length === 1 || !origins.includes("*")))
    return { ok: true, value: Object.freeze(origins) };
  const expected = "origins such as https://app.example or http://localhost:5173, with commas between them, or * alone";
  return { ok: false, expected };
}

function isOrigin(text: string): boolean {
  return /^https?:\/\//.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

function readStore(text: string): Read {
  if (text === "embedded" || text === "memory") return { ok: true, value: Object.freeze({ kind: text }) };
  if (readRedisAddress(text)) return { ok: true, value: Object.freeze({ kind: "redis", url: text }) };
  return { ok: false, expected: `embedded, memory, ${REDIS_FORMS}` };
}

function readDestinations(text: string): Read {
  const read = readAllowList(text);
  if (!("problems" in read)) return { ok: true, value: Object.freeze(read) };
  const expected = "networks, addresses, host names and *.names, with commas between them";
  return { ok: false, expected: `${expected} (${read.problems.join("; ")})` };
}

function readTools(text: string, max: number): Read {
  const parts = text.split(",").flatMap((part) => part.trim() || []);
  const tools = parts.map((part): ToolName => {
    const [first = "", second] = part.split(/:(.*)/s);
    return second === undefined
      ? { namespace: DEFAULT_NAMESPACE, toolId: first }
      : { namespace: first, toolId: second };
  });
  const wrong = tools.find(({ namespace, toolId }) => {
    const id = splitToolId(toolId);
    return (
      !SLUG_PATTERN.test(namespace) || !id || !SLUG_PATTERN.test(id.serverId) || !TOOL_NAME_PATTERN.test(id.toolName)
    );
  });
  if (!wrong && tools.length <= max) return { ok: true, value: Object.freeze(tools) };
  return { ok: false, expected: `at most ${max} of server/tool or namespace:server/tool, with commas between them` };
}

function readChoices(text: string, of: readonly string[]): Read {
  const chosen = text.split(",").map((part) => part.trim());
  if (chosen.every((one) => of.includes(one))) return { ok: true, value: Object.freeze([...new Set(chosen)]) };
  return { ok: false, expected: `one or more of ${of.join(", ")}, with commas between them` };
}

function readInteger(text: string, min: number, max: number): Read {
  const value = Number(text);
  if (!/^-?\d{1,15}$/.test(text) || value < min || value > max) {
    return { ok: false, expected: `a whole number from ${min} to ${max}` };
  }
  return { ok: true, value };
}

function readSwitch(text: string): Read {
  if (text === "true" || text === "1") return { ok: true, value: true };
  if (text === "false" || text === "0") return { ok: true, value: false };
  return { ok: false, expected: "true or false" };
}
