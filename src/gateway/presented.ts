/** A definition as a client of the gateway sees it: the server's own text, but for its name. */
import { type Member, type ObjectNode, parseJson } from "../domain/json.js";

/** Which rules the reader of a list has. */
export type Era = "sessions" | "2026-07-28";

/**
 * The definition's text with the exposed name in it; everything else stays byte for byte, unknown keys included. For the session eras an
 * `outputSchema` that is no object schema is left out, because their clients refuse a whole list for it. Undefined for a text that is no
 * JSON object.
 */
export function presentedDefinition(text: string, name: string, era: Era): string | undefined {
  const parsed = parseJson(text);
  if (!parsed.ok || parsed.root.kind !== "object") return undefined;
  const { root } = parsed;
  const unreadable = era === "sessions" && root.members.find((m) => m.key === "outputSchema" && !isObjectSchema(m));
  if (unreadable) return presentedDefinition(without(text, root, unreadable), name, era);
  // From the end to the beginning, so that offsets stay true.
  return [...root.members]
    .reverse()
    .filter(({ key }) => key === "name")
    .reduce((out, { value }) => splice(out, value.offset, value.end, JSON.stringify(name)), text);
}

function isObjectSchema({ value }: Member): boolean {
  if (value.kind !== "object") return false;
  return value.members.some((m) => m.key === "type" && m.value.kind === "string" && m.value.value === "object");
}

/** A member goes with one of the commas beside it. */
function without(text: string, { offset, members }: ObjectNode, member: Member): string {
  const at = members.indexOf(member);
  const before = members[at - 1];
  if (before) return splice(text, before.value.end, member.value.end, "");
  const end = members.length > 1 ? text.indexOf(",", member.value.end) + 1 : member.value.end;
  return splice(text, offset + 1, end, "");
}

function splice(text: string, from: number, to: number, put: string): string {
  return `${text.slice(0, from)}${put}${text.slice(to)}`;
}
