/** What a model named, out of what it wrote: JSON as asked for, also where it stands in a fence, in prose or in another shape. */

/** Names that are read of one answer. */
const NAMES = 200;
/** Longer than a tool_id can be. */
const NAME_LENGTH = 256;
/** Places at which JSON is looked for. */
const PLACES = 50;
/** Characters of an answer that are looked at, from its end: what a model decided stands last. */
const READ = 64 * 1024;

/** In order, none twice; undefined where no list is found. An empty list is an answer: nothing fits. */
export function readNames(text: string, key: string): readonly string[] | undefined {
  // What a model thought aloud is no answer.
  const said = text.slice(-READ).replace(/<think>[\s\S]*?(?:<\/think>|$)/g, " ");
  for (const candidate of candidatesIn(said)) {
    const names = namesIn(candidate, key);
    if (names) return [...new Set(names)].slice(0, NAMES);
  }
  return undefined;
}

/** Values that are JSON in the text: the whole of it, what is fenced, and then what begins with a bracket. */
function* candidatesIn(text: string): Generator<unknown> {
  const fenced = text
    .split("```")
    .filter((_, i) => i % 2 === 1)
    .map((inside) => inside.replace(/^[a-zA-Z]{1,20}(?=\s)/, ""))
    .reverse();
  for (const part of [text, ...fenced]) {
    const value = parsed(part.trim());
    if (value !== undefined) yield value;
  }
  let at = -1;
  for (let place = 0; place < PLACES; place++) {
    at = nextBracket(text, at + 1);
    if (at < 0) return;
    const end = closing(text, at);
    if (end < 0) continue;
    const value = parsed(text.slice(at, end));
    if (value === undefined) continue;
    yield value;
    at = end - 1;
  }
}

function nextBracket(text: string, from: number): number {
  const found = /[[{]/.exec(text.slice(from));
  return found ? from + found.index : -1;
}

/** Behind the bracket that closes the one at `from`; negative where none does. */
function closing(text: string, from: number): number {
  let depth = 0;
  let quoted = false;
  for (let i = from; i < text.length; i++) {
    const char = text[i];
    if (quoted) {
      if (char === "\\") i++;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === "[" || char === "{") depth++;
    else if ((char === "]" || char === "}") && --depth === 0) return i + 1;
  }
  return -1;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** `{key: […]}`, `[…]`, or an object whose only list is what was asked for. */
function namesIn(value: unknown, key: string): readonly string[] | undefined {
  if (Array.isArray(value)) return listed(value);
  if (typeof value !== "object" || value === null) return undefined;
  const fields = value as Record<string, unknown>;
  if (Array.isArray(fields[key])) return listed(fields[key]);
  const lists = Object.values(fields).filter(Array.isArray);
  return lists.length === 1 ? listed(lists[0] as unknown[]) : undefined;
}

/** Undefined for a list of what are no names. */
function listed(values: readonly unknown[]): readonly string[] | undefined {
  const names = values.map(nameOf).filter((name) => name !== undefined);
  return names.length > 0 || values.length === 0 ? names : undefined;
}

function nameOf(value: unknown): string | undefined {
  if (typeof value === "object" && value !== null) {
    const { tool_id: toolId, id, name } = value as Record<string, unknown>;
    return nameOf(toolId ?? id ?? name ?? undefined);
  }
  if (typeof value !== "string") return undefined;
  const written = value.trim();
  if (written.length > NAME_LENGTH) return undefined;
  const name = written.replace(/^[`"']+|[`"']+$/g, "");
  return name === "" ? undefined : name;
}
