import type { ParseError } from "jsonc-parser";
import { parse, printParseErrorCode } from "jsonc-parser";
import { CommandError } from "../io.js";

/** One server of the file, as it stands there: nothing is expanded yet. */
export type Entry =
  | {
      readonly kind: "url";
      readonly name: string;
      readonly url: string;
      readonly sse: boolean;
      readonly headers: Texts;
    }
  | {
      readonly kind: "command";
      readonly name: string;
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Texts;
      readonly cwd: string | undefined;
    }
  | { readonly kind: "unusable"; readonly name: string; readonly why: string };

export type Texts = Readonly<Record<string, string>>;

/** Reads what desktop clients and editors write: `mcpServers`, `servers` or `mcp.servers`, with comments. Throws CommandError. */
export function readConfigFile(text: string, path: string): Entry[] {
  const errors: ParseError[] = [];
  const root: unknown = parse(text, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first)
    throw new CommandError(`${path}:${lineOf(text, first.offset)} is not JSON: ${printParseErrorCode(first.error)}`);
  const servers = serversIn(root);
  if (!servers) {
    throw new CommandError(
      `${path} holds no servers: it needs an object "mcpServers" (or "servers", as VS Code writes it)`,
    );
  }
  return Object.entries(servers).map(([name, value]) => readEntry(name, value));
}

function lineOf(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}

function serversIn(root: unknown): Record<string, unknown> | undefined {
  if (!isObject(root)) return undefined;
  const nested = isObject(root["mcp"]) ? root["mcp"]["servers"] : undefined;
  return [root["mcpServers"], root["servers"], nested].find(isObject);
}

function readEntry(name: string, value: unknown): Entry {
  const unusable = (why: string): Entry => ({ kind: "unusable", name, why });
  if (!isObject(value)) return unusable("is no object");
  if (value["disabled"] === true || value["enabled"] === false) return unusable("is switched off in the file");
  const wrong = wrongFields(value);
  if (wrong !== "") return unusable(wrong);
  const { command, args, env, cwd, headers, type } = value;
  const url = value["url"] ?? value["serverUrl"] ?? value["httpUrl"];
  if (typeof command === "string" && typeof url === "string") return unusable("has both a command and a URL");
  if (typeof command === "string" && command !== "") {
    return {
      kind: "command",
      name,
      command,
      args: (args as string[] | undefined) ?? [],
      env: texts(env),
      cwd: cwd as string | undefined,
    };
  }
  if (typeof url === "string" && url !== "")
    return { kind: "url", name, url, sse: type === "sse", headers: texts(headers) };
  return unusable("has neither a command nor a URL");
}

/** What is there has to be of the right kind; nothing is guessed. */
function wrongFields(value: Readonly<Record<string, unknown>>): string {
  const wrong: string[] = [];
  for (const name of ["command", "url", "serverUrl", "httpUrl", "cwd", "type"]) {
    if (value[name] !== undefined && typeof value[name] !== "string") wrong.push(`${name} is no text`);
  }
  const { args, env, headers } = value;
  if (args !== undefined && !(Array.isArray(args) && args.every((arg) => typeof arg === "string"))) {
    wrong.push("args is no list of texts");
  }
  for (const [name, map] of Object.entries({ env, headers })) {
    if (map !== undefined && !(isObject(map) && Object.values(map).every(isScalar))) {
      wrong.push(`${name} is no object of texts`);
    }
  }
  if (value["envFile"] !== undefined) wrong.push("envFile is not read: move its variables to env");
  return wrong.join("; ");
}

function isScalar(value: unknown): boolean {
  return ["string", "number", "boolean"].includes(typeof value);
}

function texts(map: unknown): Texts {
  return Object.fromEntries(Object.entries(isObject(map) ? map : {}).map(([name, value]) => [name, String(value)]));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
