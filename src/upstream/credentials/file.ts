/** The operator's file of upstream credentials: names, where they may be shown, and where their values are kept. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { canonicalAddress } from "../../domain/admission/address.js";
import { targetOf } from "../../domain/admission/egress.js";
import { SLUG_PATTERN } from "../../domain/ids.js";
import { readList, unknownKeys } from "../../files/json-file.js";
import type { Parsed } from "../../files/watched-file.js";

export interface Credential {
  readonly name: string;
  /** `*` stands for all. */
  readonly namespaces: readonly string[];
  /** In lower case. */
  readonly header: string;
  readonly prefix: string;
  /** As URLs spell them, without brackets; `.example.internal` stands for every name below it. */
  readonly hosts: readonly string[];
  readonly source: Source;
}

export type Source =
  | { readonly kind: "env"; readonly variable: string; readonly value: string }
  /** Read again for every request, so that a rotated value is the one that is shown. */
  | { readonly kind: "file"; readonly path: string };

export type CredentialSet = ReadonlyMap<string, Credential>;

export type Env = Readonly<Record<string, string | undefined>>;

const MAX_CREDENTIALS = 1_000;
const MAX_HOSTS = 64;
const MAX_NAMESPACES = 256;
/** Shorter ones guard nothing, and would be found by chance in a server's answers. */
const MIN_VALUE = 8;
const MAX_VALUE = 8_192;
const VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const PREFIX = /^(?:[\x21-\x7e][\x20-\x7e]{0,63})?$/;
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
/** What HTTP and MCP themselves say in headers. */
const ITS_OWN =
  /^(?:accept|accept-encoding|connection|content-.*|expect|host|keep-alive|last-event-id|mcp-.*|origin|proxy-.*|te|trailer|transfer-encoding|upgrade)$/;

/**
 * `{"credentials": [{"name": "github", "namespaces": ["default"], "header": "Authorization", "prefix": "Bearer ",
 * "value": {"env": "GITHUB_TOKEN"}, "hosts": ["api.example.com", "*.example.internal"]}]}`; a value is `{"env": …}` or
 * `{"file": …}`, a path from `folder`. No problem repeats a value.
 */
export function readCredentials(content: Buffer, env: Env, folder: string): Parsed<CredentialSet> {
  const list = readList(content, "credentials", MAX_CREDENTIALS);
  if (!list.ok) return list;
  const problems: string[] = [];
  const found = new Map<string, Credential>();
  list.value.forEach((entry, i) => {
    const at = `credentials[${i}]`;
    const { name, header, prefix = "", value } = entry;
    problems.push(...unknownKeys(at, entry, ["name", "namespaces", "header", "prefix", "value", "hosts"]));
    const known = typeof name === "string" && SLUG_PATTERN.test(name);
    if (!known) problems.push(`${at}.name must be [a-z0-9] then [a-z0-9._-], at most 63 characters`);
    else if (found.has(name)) problems.push(`${at}.name is that of another entry`);
    const namespaces = readTexts(`${at}.namespaces`, entry["namespaces"], MAX_NAMESPACES, problems);
    if (!namespaces.every((one) => one === "*" || SLUG_PATTERN.test(one)))
      problems.push(`${at}.namespaces must hold namespaces, or * for all`);
    const lower = typeof header === "string" && TOKEN.test(header) ? header.toLowerCase() : "";
    if (!isFreeHeader(lower))
      problems.push(`${at}.header must be the name of a header that neither HTTP nor MCP uses itself, such as Authorization`);
    // A value that was put in here by mistake is not shown.
    if (typeof prefix !== "string" || !PREFIX.test(prefix))
      problems.push(`${at}.prefix must be at most 64 characters of ASCII, such as "Bearer "`);
    const hosts = readTexts(`${at}.hosts`, entry["hosts"], MAX_HOSTS, problems).map(readHost);
    if (hosts.includes(undefined))
      problems.push(`${at}.hosts must hold host names, addresses or *.names, without scheme, port and path`);
    const source = readSource(`${at}.value`, value, env, folder, problems);
    if (!known || !source) return;
    const named = hosts.filter((host) => host !== undefined);
    found.set(name, { name, namespaces, header: lower, prefix: String(prefix), hosts: named, source });
  });
  return problems.length > 0 ? { ok: false, problems } : { ok: true, value: found };
}

/** A header, in lower case, that may hold a credential. */
export function isFreeHeader(name: string): boolean {
  return TOKEN.test(name) && name === name.toLowerCase() && !ITS_OWN.test(name);
}

/** What is wrong with a value; it is not repeated. */
export function valueProblem(value: string): string | undefined {
  if (value.length < MIN_VALUE || value.length > MAX_VALUE) {
    return `has ${value.length} characters; a credential has ${MIN_VALUE} to ${MAX_VALUE}`;
  }
  return VALUE.test(value) ? undefined : "holds characters other than visible ASCII";
}

/** The value in a file, without the end of its line. */
export function fileValue(content: Buffer): string {
  return content.toString("utf8").replace(/\r?\n$/, "");
}

function readSource(at: string, value: unknown, env: Env, folder: string, problems: string[]): Source | undefined {
  const given = typeof value === "object" && value !== null ? Object.entries(value) : [];
  const [kind, text] = given.length === 1 ? (given[0] ?? []) : [];
  if (kind === "env" && typeof text === "string" && VARIABLE.test(text)) return readVariable(at, text, env, problems);
  if (kind === "file" && typeof text === "string" && /^[^\0]{1,4096}$/.test(text)) {
    return readValueFile(at, resolve(folder, text), problems);
  }
  problems.push(`${at} must be {"env": "<variable>"} or {"file": "<path>"}: values do not stand in this file`);
  return undefined;
}

function readVariable(at: string, variable: string, env: Env, problems: string[]): Source | undefined {
  const value = env[variable];
  const problem = value === undefined ? "is not set" : valueProblem(value);
  if (problem === undefined) return { kind: "env", variable, value: value ?? "" };
  problems.push(`${at}: the variable ${variable} ${problem}`);
  return undefined;
}

function readValueFile(at: string, path: string, problems: string[]): Source | undefined {
  let problem: string | undefined;
  try {
    problem = valueProblem(fileValue(readFileSync(path)));
  } catch (error) {
    problem = `cannot be read (${(error as NodeJS.ErrnoException).code ?? "unreadable"})`;
  }
  if (problem === undefined) return { kind: "file", path };
  problems.push(`${at}: the file ${path} ${problem}`);
  return undefined;
}

function readTexts(at: string, value: unknown, limit: number, problems: string[]): readonly string[] {
  const texts = Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : [];
  if (!Array.isArray(value) || texts.length !== value.length || texts.length === 0 || texts.length > limit)
    problems.push(`${at} must be a list of 1 to ${limit} texts`);
  return texts;
}

/** Undefined for anything but a name or an address: a colon outside brackets makes an IPv6 address or nothing. */
function readHost(text: string): string | undefined {
  const below = text.startsWith("*.");
  const host = below ? text.slice(2) : text;
  const url = `http://${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}/`;
  if (/[*/@?#\\\s]|\]:/.test(host) || !URL.canParse(url)) return undefined;
  const name = targetOf(new URL(url)).host;
  if (name === "" || (below && canonicalAddress(name) !== undefined)) return undefined;
  return below ? `.${name}` : name;
}
