/** YAML as far as a rule file needs it: maps, lists and texts, each with its line; nothing that points, repeats or converts. */
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from "yaml";
import { RULE_LIMITS, type RuleProblem } from "./model.js";

export type Node =
  | { readonly kind: "map"; readonly line: number; readonly entries: readonly Entry[] }
  | { readonly kind: "list"; readonly line: number; readonly items: readonly Node[] }
  /** Every scalar is a text, `5` and `true` too; one that is not there is empty. */
  | { readonly kind: "text"; readonly line: number; readonly text: string }
  /** It was told already. */
  | { readonly kind: "bad"; readonly line: number };

export interface Entry {
  readonly key: string;
  readonly line: number;
  readonly value: Node;
}

export type ReadYaml =
  | { readonly ok: true; readonly root: Node; readonly problems: readonly RuleProblem[] }
  | { readonly ok: false; readonly problems: readonly RuleProblem[] };

/** Deeper nesting than any rule has. */
const DEPTH = 16;

/** `ok` with problems where the text is YAML, but has something in it that rules do not take. */
export function readYaml(content: Uint8Array): ReadYaml {
  const whole = (text: string): ReadYaml => ({ ok: false, problems: [{ line: 0, text }] });
  if (content.byteLength > RULE_LIMITS.bytes)
    return whole(`it has ${content.byteLength} bytes, at most ${RULE_LIMITS.bytes} are taken`);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    return whole("it is not UTF-8");
  }
  const nul = text.indexOf("\0");
  if (nul >= 0) return { ok: false, problems: [{ line: text.slice(0, nul).split("\n").length, text: "there is a NUL character" }] };
  const tooDeep = tooDeepIn(text);
  if (tooDeep !== undefined) return { ok: false, problems: [{ line: tooDeep, text: `it is nested deeper than any rule` }] };
  const lines = new LineCounter();
  let parsed: ReturnType<typeof parseDocument>;
  try {
    // Keys are compared here, because the parser compares each with each other.
    parsed = parseDocument(text, { lineCounter: lines, schema: "failsafe", uniqueKeys: false, prettyErrors: false });
  } catch (error) {
    return whole(`it cannot be read as YAML (${error instanceof Error ? error.message : String(error)})`);
  }
  if (parsed.errors.length > 0) {
    const problems = parsed.errors.map(({ pos, message }) => ({ line: lines.linePos(pos[0]).line, text: sentence(message) }));
    return { ok: false, problems };
  }
  if (parsed.contents === null) return whole("it is empty; delete the file, or write `rules: []`, to have no rules");
  const problems: RuleProblem[] = [];
  const root = new Reader(lines, problems).read(parsed.contents, 0);
  return { ok: true, root, problems };
}

class Reader {
  constructor(
    private readonly lines: LineCounter,
    private readonly problems: RuleProblem[],
  ) {}

  read(node: unknown, depth: number): Node {
    const line = this.lineOf(node);
    if (depth > DEPTH) return this.bad(line, `it is nested more than ${DEPTH} deep`);
    if (isAlias(node)) return this.bad(line, `aliases are not taken: a value that begins with * is written in quotes, "*${node.source}"`);
    if (isMap(node) || isSeq(node) || isScalar(node)) {
      if (node.anchor !== undefined) return this.bad(line, `anchors (&${node.anchor}) are not taken`);
      if (node.tag !== undefined && !PLAIN_TAGS.has(node.tag)) return this.bad(line, `YAML tags (${node.tag}) are not taken`);
    }
    if (isScalar(node)) return { kind: "text", line, text: String(node.value ?? "") };
    if (isSeq(node)) return { kind: "list", line, items: node.items.map((item) => this.read(item, depth + 1)) };
    if (!isMap(node)) return { kind: "text", line, text: "" };
    const seen = new Set<string>();
    const entries: Entry[] = [];
    for (const { key, value } of node.items) {
      const at = this.lineOf(key) || line;
      if (!isScalar(key)) {
        this.bad(at, "a key must be a word");
        continue;
      }
      const name = String(key.value ?? "");
      if (seen.has(name)) this.bad(at, `${shown(name)} is there twice`);
      else entries.push({ key: name, line: at, value: value === null ? { kind: "text", line: at, text: "" } : this.read(value, depth + 1) });
      seen.add(name);
    }
    return { kind: "map", line, entries };
  }

  private lineOf(node: unknown): number {
    const { range } = (node ?? {}) as { readonly range?: readonly number[] | null };
    return range?.[0] === undefined ? 0 : this.lines.linePos(range[0]).line;
  }

  private bad(line: number, text: string): Node {
    this.problems.push({ line, text });
    return { kind: "bad", line };
  }
}

const PLAIN_TAGS = new Set(["tag:yaml.org,2002:map", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:str", "!"]);

/** Bounds of what one line may open, for a parser that recurses, and that ends the process where a text is nested ten thousand deep. */
const OPEN = 40;
const MARKED = /(?:^|\s)[&!]/g;
const OPENING = /^(?:\s*(?:[-?:](?=\s|$)|[&!]\S*))*/;

/** A line where nesting is deeper than anything real. Brackets in quotes count as well. */
function tooDeepIn(text: string): number | undefined {
  let open = 0;
  for (const [i, line] of text.split(/\r\n|\r|\n/).entries()) {
    if (/^\s*#/.test(line)) continue;
    for (const sign of line) {
      if (sign === "[" || sign === "{") open++;
      else if ((sign === "]" || sign === "}") && open > 0) open--;
      if (open > OPEN) return i + 1;
    }
    if ((line.match(MARKED)?.length ?? 0) > OPEN) return i + 1;
    if ((OPENING.exec(line)?.[0].length ?? 0) > OPEN * 2 || line.search(/\S/) > OPEN) return i + 1;
  }
  return undefined;
}

export function shown(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

/** The parser's words without the full stop and the position that stands before them already. */
function sentence(message: string): string {
  const first = message.split("\n")[0] ?? "";
  return `it is no YAML: ${first.replace(/[.:]?$/, "")}`;
}
