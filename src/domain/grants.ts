/** Grants and principal names as files and token claims write them: read strictly, every mistake told at once. */
import { SLUG_PATTERN } from "./ids.js";
import { EVERYBODY, type Grant, ROLES, type Role } from "./identity.js";

export type Read<T> =
  | { readonly ok: true; readonly value: T }
  /** One sentence each, beginning with the place. Never holds more of the text than names and patterns. */
  | { readonly ok: false; readonly problems: readonly string[] };

const LIMIT = { grants: 64, namespaces: 256, servers: 256, patternLength: 63, idLength: 200 } as const;
const PATTERN = /^[a-z0-9._*-]+$/;
const PRINCIPAL = /^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$/;

/** Why this cannot be a principal's id; empty if it can. */
export function principalProblems(at: string, value: unknown): string[] {
  if (typeof value !== "string" || value.length > LIMIT.idLength || !PRINCIPAL.test(value)) {
    return [`${at} must be 1 to ${LIMIT.idLength} characters of A-Z a-z 0-9 . _ : / @ + -, beginning with a letter or digit`];
  }
  return value === EVERYBODY.id ? [`${at} must not be ${EVERYBODY.id}, the name of callers who are not identified`] : [];
}

/** `[{"role": "registrant", "namespaces": ["default"], "servers": ["billing-*"]}]` */
export function readGrants(at: string, value: unknown): Read<readonly Grant[]> {
  if (!Array.isArray(value) || value.length === 0 || value.length > LIMIT.grants) {
    return { ok: false, problems: [`${at} must be a list of 1 to ${LIMIT.grants} grants`] };
  }
  const problems: string[] = [];
  const grants = value.map((one: unknown, i) => readGrant(`${at}[${i}]`, one, problems));
  return problems.length > 0 ? { ok: false, problems } : { ok: true, value: grants };
}

function readGrant(at: string, value: unknown, problems: string[]): Grant {
  const empty: Grant = { role: "reader", namespaces: [] };
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    problems.push(`${at} must be an object with role and namespaces`);
    return empty;
  }
  const { role, namespaces, servers, ...rest } = value as Record<string, unknown>;
  for (const key of Object.keys(rest)) problems.push(`${at} has ${shown(key)}, which is no part of a grant`);
  if (!isRole(role)) problems.push(`${at}.role must be one of ${ROLES.join(", ")}`);
  const names = readNames(`${at}.namespaces`, namespaces, LIMIT.namespaces, problems);
  for (const name of names) {
    if (name !== "*" && !SLUG_PATTERN.test(name))
      problems.push(`${at}.namespaces: ${shown(name)} is no namespace; names are [a-z0-9] then [a-z0-9._-], or * for all`);
  }
  if (servers === undefined) return { role: isRole(role) ? role : "reader", namespaces: names };
  if (role !== "registrant") problems.push(`${at}.servers binds a registrant: it means nothing for another role`);
  const patterns = readNames(`${at}.servers`, servers, LIMIT.servers, problems);
  for (const pattern of patterns) {
    if (pattern.length > LIMIT.patternLength || !PATTERN.test(pattern))
      problems.push(`${at}.servers: ${shown(pattern)} is no pattern; patterns are a-z 0-9 . _ - with * for any text`);
  }
  return { role: isRole(role) ? role : "reader", namespaces: names, servers: patterns };
}

function readNames(at: string, value: unknown, limit: number, problems: string[]): string[] {
  const names = Array.isArray(value) ? value.filter((v): v is string => typeof v === "string") : [];
  if (!Array.isArray(value) || names.length !== value.length || names.length === 0 || names.length > limit) {
    problems.push(`${at} must be a list of 1 to ${limit} texts`);
  }
  return names;
}

function isRole(value: unknown): value is Role {
  return (ROLES as readonly unknown[]).includes(value);
}

function shown(text: string): string {
  return JSON.stringify(text.length > 63 ? `${text.slice(0, 63)}…` : text);
}
