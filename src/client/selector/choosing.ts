/** One selection with the model: which modules, then which tools, within the budget of tokens. */
import { checkToolIds } from "../../domain/admission/toolset.js";
import { LIMITS } from "../../domain/limits.js";
import type { Stub } from "../../gen/toolcrib/v1/stub_pb.js";
import { type ChatModel, estimated, type Question } from "./model.js";
import { lineOf, type Matter, moduleQuestion, MODULES, TOOL_IDS, toolQuestion } from "./questions.js";
import { readNames } from "./read-names.js";
import type { Effort, FallbackWhy } from "./selection.js";
import { mapFor, type Shelves } from "./shelves.js";

/** Modules that are looked into, and names of tools that the registry is asked about though the model was not shown them. */
const MODULES_MOST = 8;
const UNSHOWN_MOST = 10;
/** Questions to the model side by side. */
const AT_ONCE = 4;

/** The model was asked, or could not be, and its answer is none that helps. */
export class NoUse extends Error {
  constructor(
    readonly why: Extract<FallbackWhy, "nonsense" | "nothing" | "budget">,
    message: string,
  ) {
    super(message);
  }
}

/** An effort while it is made. */
export type Work = { -readonly [K in keyof Effort]: Effort[K] };

export interface ChoosingParts {
  readonly model: ChatModel;
  readonly matter: Matter;
  /** Tools that may be chosen. */
  readonly most: number;
  /** Estimated tokens of one question, and of all of them. */
  readonly pageTokens: number;
  readonly tokenBudget: number;
  readonly signal: AbortSignal;
  readonly work: Work;
}

export class Choosing {
  /** Estimated tokens for labels in one question. */
  readonly room: number;
  /** Of a question without any. */
  readonly #bare: number;
  /** Of all of them. */
  #left: number;

  /** Throws NoUse. */
  constructor(private readonly parts: ChoosingParts) {
    const { matter, most, pageTokens, tokenBudget } = parts;
    this.#bare = tokensOf(toolQuestion(matter, [], most));
    this.#left = tokenBudget;
    this.room = Math.min(pageTokens, tokenBudget) - this.#bare;
    if (this.room <= 0) throw new NoUse("budget", `the selector's token budget has no room beside the intent, which takes ${this.#bare}`);
  }

  /** Throws NoUse and ModelError. */
  async modules(shelves: Shelves): Promise<readonly string[]> {
    const { matter, work } = this.parts;
    // Half of all tokens at most: the labels need the rest.
    const tokens = Math.min(this.room, this.#left / 2 - tokensOf(moduleQuestion(matter, "")));
    if (tokens < LIMITS.mapTokensLeast) throw new NoUse("budget", "the selector's token budget has no room for a map of the catalogue");
    const map = await mapFor(shelves, tokens);
    const named = await this.#names(moduleQuestion(matter, map.text), MODULES);
    const known = named.filter((name) => map.names.has(name));
    work.unknown += named.length - known.length;
    if (known.length === 0 && named.length > 0) throw new NoUse("nonsense", "the selector's model named no module that there is");
    return known.slice(0, MODULES_MOST);
  }

  /**
   * Shows the labels in as many pages as there is budget for. What several pages yield beyond `most` is shown once more together.
   * Throws NoUse and ModelError.
   */
  async tools(stubs: readonly Stub[]): Promise<readonly string[]> {
    const { matter, most } = this.parts;
    if (stubs.length === 0) throw new NoUse("nothing", "there is no tool that the selector's model could choose");
    const pages = this.#pages(stubs);
    if (pages.length === 0) throw new NoUse("budget", "the selector's token budget has no room for the label of a tool");
    const named: (readonly string[])[] = [];
    for (let at = 0; at < pages.length; at += AT_ONCE) {
      const questions = pages.slice(at, at + AT_ONCE).map((page) => toolQuestion(matter, page, most));
      named.push(...(await Promise.all(questions.map((question) => this.#names(question, TOOL_IDS)))));
    }
    const known = this.#known(inTurns(named), stubs);
    return pages.length > 1 && known.length > most ? this.#best(known, stubs) : known.slice(0, most);
  }

  /** Of what the pages yielded. */
  async #best(known: readonly string[], stubs: readonly Stub[]): Promise<readonly string[]> {
    const { matter, most } = this.parts;
    const wanted = new Set(known);
    const lines = new Map(stubs.filter(({ toolId }) => wanted.has(toolId)).map((stub) => [stub.toolId, lineOf(stub)]));
    let room = Math.min(this.room, this.#left - this.#bare);
    const shown = known.flatMap((id) => {
      const line = lines.get(id);
      room -= line === undefined ? 0 : lineTokens(line);
      return line === undefined || room < 0 ? [] : [line];
    });
    if (shown.length <= most) return known.slice(0, most);
    return this.#known(await this.#names(toolQuestion(matter, shown, most), TOOL_IDS), stubs).slice(0, most);
  }

  #pages(stubs: readonly Stub[]): readonly (readonly string[])[] {
    const { work } = this.parts;
    const pages: string[][] = [];
    const all = stubs.reduce((sum, stub) => sum + lineTokens(lineOf(stub)), 0);
    // Where one page will not do, a quarter is kept for what all of them yield.
    let budget = all <= this.room ? this.#left : (this.#left * 3) / 4;
    let used = Number.POSITIVE_INFINITY;
    for (const stub of stubs) {
      const line = lineOf(stub);
      const tokens = lineTokens(line);
      if (tokens > this.room) continue;
      const anew = used + tokens > this.room;
      const cost = anew ? this.#bare + tokens : tokens;
      if (cost > budget) break;
      budget -= cost;
      used = anew ? tokens : used + tokens;
      if (anew) pages.push([line]);
      else pages.at(-1)?.push(line);
      work.shown++;
    }
    work.leftOut = stubs.length - work.shown;
    return pages;
  }

  /** What was shown, also by a tool's name alone where only one has it; and what may be there though it was not shown. */
  #known(named: readonly string[], stubs: readonly Stub[]): readonly string[] {
    const ids = new Set(stubs.map(({ toolId }) => toolId));
    const byName = new Map<string, string | undefined>();
    for (const { name, toolId } of stubs) byName.set(name, byName.has(name) ? undefined : toolId);
    let unshown = 0;
    const known = named.flatMap((name) => {
      const id = ids.has(name) ? name : byName.get(name);
      if (id !== undefined) return [id];
      if (checkToolIds("", [name]).length === 0 && unshown++ < UNSHOWN_MOST) return [name];
      this.parts.work.unknown++;
      return [];
    });
    if (known.length === 0 && named.length > 0) throw new NoUse("nonsense", "the selector's model named no tool that there is");
    return [...new Set(known)];
  }

  async #names(question: Question, key: string): Promise<readonly string[]> {
    const { model, work, signal } = this.parts;
    this.#left -= tokensOf(question);
    work.calls++;
    const { text, promptTokens, answerTokens } = await model.ask(question, signal);
    work.promptTokens += promptTokens;
    work.answerTokens += answerTokens;
    const names = readNames(text, key);
    if (!names) throw new NoUse("nonsense", `the selector's model answered without the list of ${key} that it was asked for`);
    return names;
  }
}

function tokensOf({ system, user }: Question): number {
  return estimated(system) + estimated(user);
}

/** Of a label's line in a question. */
export function lineTokens(line: string): number {
  return estimated(`${line}\n`);
}

/** The first of each, then the second of each, and so on. */
function inTurns(lists: readonly (readonly string[])[]): readonly string[] {
  const longest = Math.max(0, ...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, i) => lists.flatMap((list) => list.slice(i, i + 1))).flat();
}
