/** What the files of credentials have in common: a JSON object with one list. */
import type { Parsed } from "./watched-file.js";

/** The members of `{"<name>": [...]}`, each an object. */
export function readList(content: Buffer, name: string, limit: number): Parsed<readonly Readonly<Record<string, unknown>>[]> {
  let whole: unknown;
  try {
    whole = JSON.parse(content.toString("utf8"));
  } catch {
    // The parser's own message quotes the file, which holds what should stay in it.
    return { ok: false, problems: ["it is not JSON"] };
  }
  const list: unknown = isObject(whole) ? whole[name] : undefined;
  const strange = isObject(whole) ? Object.keys(whole).filter((key) => key !== name) : [];
  if (!Array.isArray(list) || strange.length > 0) return { ok: false, problems: [`it must be {"${name}": [...]} and nothing else`] };
  if (list.length > limit) return { ok: false, problems: [`${name} has ${list.length} entries, at most ${limit} are taken`] };
  const problems = list.flatMap((one, i) => (isObject(one) ? [] : [`${name}[${i}] must be an object`]));
  return problems.length > 0 ? { ok: false, problems } : { ok: true, value: list as Record<string, unknown>[] };
}

export function unknownKeys(at: string, entry: Readonly<Record<string, unknown>>, known: readonly string[]): string[] {
  const strange = Object.keys(entry).filter((key) => !known.includes(key));
  return strange.length === 0 ? [] : [`${at} has ${strange.length} members that are none of ${known.join(", ")}`];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
