import { LIMITS } from "../../domain/limits.js";
import { Availability } from "../../gen/toolcrib/v1/stub_pb.js";
import type { CallToolOptions } from "../calling/caller.js";
import type { CallOutcome } from "../calling/outcome.js";
import type { FindOptions, Found, FoundTool, ReasonKind } from "../finding.js";
import type { Load, LoadedTool } from "../loader/load.js";
import { Remembered } from "../loader/remembered.js";
import { registryError } from "../registry-error.js";
import { Ledger, type TotalTokens } from "./ledger.js";
import { type Material, nameOf, Workbench } from "./material.js";
import { nearest } from "./nearest.js";
import { type InjectedTool, Prompt, type PromptStep } from "./prompt.js";
import { BYTES_OVER_4 } from "./tokens.js";
import type { AgentSide, InjectorOptions, RefusedCall, RemovedTool, Search, Turn, TurnOptions } from "./turn.js";

const TOP_K = 5;
const TOP_K_MOST = 50;
/** Candidates beyond those chosen, for whatever cannot be loaded in time. */
const NEXT_BEST = 3;
const NEAREST = 5;
/** The gate reads this many calls. */
const RECENT = 100;
const PRECEDING = 5;
/** Names that a model called and that the gate is asked for in the next turn. */
const ASKED_FOR = 10;
/** Until a turn goes on without the gate. */
const FIND_MS = 2_000;
/** Beyond the number asked for, these belong to the answer. */
const ALWAYS: ReadonlySet<ReasonKind> = new Set<ReasonKind>(["EXACT_NAME", "RULE"]);
const BESIDE: ReadonlySet<ReasonKind> = new Set<ReasonKind>(["COMPANION", "SIBLING"]);

interface Choice {
  readonly search: Search;
  readonly chosen: readonly string[];
  readonly next: readonly string[];
}

/**
 * What the prompt of one conversation holds: each turn the few tools that its intent needs, whole, and nothing that it does not
 * need any more. Knows nothing of providers: it gives definitions.
 */
export class Injector {
  readonly #agent: AgentSide;
  readonly #options: InjectorOptions;
  readonly #bench: Workbench;
  readonly #prompt: Prompt;
  readonly #ledger: Ledger;
  /** Tool → the last turn that chose it. */
  readonly #chosenAt = new Map<string, number>();
  /** Tool → what it was last found with. */
  readonly #foundWith = new Remembered<Found>(500);
  #recent: { readonly toolId: string; readonly success: boolean; readonly turn: number }[] = [];
  #refusals: string[] = [];
  /** Names of tools that were called and are not loaded: the gate is asked for them. */
  #askedFor: string[] = [];
  #turn = 0;
  #lastChosen: readonly string[] = [];
  /** Turns of one conversation come one after the other. */
  #before: Promise<unknown> = Promise.resolve();

  /** Throws a TypeError that names the option which cannot be used. */
  constructor(agent: AgentSide, options: InjectorOptions = {}) {
    const { keepTurns = 0, topK = TOP_K, tokenizer = BYTES_OVER_4, mode = "replace" } = options;
    if (!Number.isSafeInteger(keepTurns) || keepTurns < 0) throw new TypeError(`keepTurns is ${keepTurns}: give a whole number, 0 or more`);
    if (!Number.isSafeInteger(topK) || topK < 1 || topK > TOP_K_MOST) throw new TypeError(`topK is ${topK}: give 1 to ${TOP_K_MOST}`);
    this.#agent = agent;
    this.#options = options;
    this.#bench = new Workbench(tokenizer);
    this.#prompt = new Prompt(mode);
    this.#ledger = new Ledger(this.#bench);
  }

  /** What the prompt holds, in its order. */
  get tools(): readonly InjectedTool[] {
    return this.#prompt.tools;
  }

  /** What may be called now; in append mode less than the prompt holds. */
  get callable(): readonly InjectedTool[] {
    return this.#prompt.active;
  }

  get totals(): TotalTokens {
    return this.#ledger.totals;
  }

  /**
   * The next prompt: for an intent, or for what `find` answered. While the registry is away what is there stays, and says that it is
   * stale. Rejects with RegistryError where the registry refuses the question; then nothing has changed.
   */
  turn(intent: string | Found, options: TurnOptions = {}): Promise<Turn> {
    const turn = this.#before.then(() => this.#next(intent, options));
    this.#before = turn.catch(() => undefined);
    return turn;
  }

  /** Whether a call that the model made may be made. */
  admit(key: string): { readonly kind: "admitted"; readonly tool: InjectedTool } | RefusedCall {
    const tool = this.#prompt.active.find((active) => active.key === key);
    return tool ? { kind: "admitted", tool } : this.#refuse(key);
  }

  /** Calls a loaded tool at its server, and remembers what came of it; never rejects. */
  async call(key: string, args: Record<string, unknown> = {}, options?: CallToolOptions): Promise<CallOutcome | RefusedCall> {
    const admission = this.admit(key);
    if (admission.kind === "refused") return admission;
    const outcome = await this.#agent.call(admission.tool.toolId, args, options);
    this.called(outcome.toolId, outcome.success);
    return outcome;
  }

  /** For calls that were made in another way: the gate takes them into account in the turns to come. */
  called(toolId: string, success: boolean): void {
    this.#recent = [...this.#recent, { toolId, success, turn: this.#turn }].slice(-RECENT);
  }

  /** Tells the registry what came of a call of this conversation. A refused call was none, and is not told. */
  async report(outcome: CallOutcome | RefusedCall, { wrongTool = false }: { readonly wrongTool?: boolean } = {}): Promise<{ readonly remembered: boolean }> {
    if (outcome.kind === "refused") return { remembered: false };
    const found = this.#foundWith.get(outcome.toolId);
    return this.#agent.report(outcome, { wrongTool, precedingTools: this.#precedingOf(outcome.toolId), ...(found && { found }) });
  }

  /** Append mode: begins the prompt anew with what may be called now. It gets shorter, and no cache knows it. */
  rebase(): void {
    this.#prompt.rebase();
  }

  /** Counts all definitions that the agent follows, so that the baseline is no estimate. Answers how many could not be had. */
  async countCatalogue({ timeoutMs = 60_000 }: { readonly timeoutMs?: number } = {}): Promise<number> {
    const uncounted = this.#agent.follower.stubs().filter((stub) => this.#bench.counted(stub.digest) === undefined);
    const { tools, missing } = await this.#agent.load(uncounted.map((stub) => stub.toolId), { deadlineMs: timeoutMs });
    for (const { digest, bytes } of tools) this.#bench.count(digest, bytes);
    return missing.length;
  }

  async #next(intent: string | Found, options: TurnOptions): Promise<Turn> {
    const choice = await this.#choose(intent, options);
    const number = ++this.#turn;
    this.#note(choice, number);
    const pinned = (this.#options.pinned ?? []).filter((id) => !this.#chosenAt.has(id));
    const whole = [...this.#chosenAt.keys()];
    const load = await this.#agent.load([...pinned, ...whole], {
      next: choice.next,
      ...(options.deadlineMs !== undefined && { deadlineMs: options.deadlineMs }),
    });
    const unavailable = new Set([...pinned, ...whole].filter((id) => !choice.chosen.includes(id) && this.#isAway(id)));
    const loaded = [...load.tools.filter((tool) => !unavailable.has(tool.toolId)), ...this.#standIns(load, choice, number)];
    const compact = new Set(pinned);
    const made = loaded.map((tool) => this.#bench.make(tool, compact.has(tool.toolId) ? "compact" : "full"));
    const { wanted, over } = withinBudget(made, choice.chosen, new Set(this.#options.pinned ?? []), options.tokenBudget);
    const step = this.#prompt.step(wanted);
    const tokens = this.#account(step, choice.search, options);
    return {
      number,
      tools: step.tools,
      inputs: step.tools.map(({ key, definition }) => ({ toolId: key, definition })),
      add: step.add,
      remove: step.remove.map((tool) => removed(tool, { wanted, over, load, unavailable })),
      breakpoint: step.breakpoint,
      missing: load.missing,
      overBudget: over.map(({ toolId, tokens }) => ({ toolId, tokens })),
      stale: this.#staleKeys(loaded),
      search: choice.search,
      tokens,
    };
  }

  /** What this turn needs, in the gate's order. */
  async #choose(intent: string | Found, options: TurnOptions): Promise<Choice> {
    if (typeof intent !== "string") return { search: { kind: "found", found: intent }, chosen: intent.tools.map((t) => t.toolId), next: [] };
    const topK = options.topK ?? this.#options.topK ?? TOP_K;
    try {
      const found = await this.#find(intent, topK, options);
      const { chosen, next } = split(found.tools, topK);
      return { search: { kind: "found", found }, chosen, next };
    } catch (error) {
      const known = registryError(error);
      if (!known.transient || options.signal?.aborted) throw known;
      return { search: { kind: "away", error: known }, chosen: this.#lastChosen, next: [] };
    }
  }

  #find(intent: string, topK: number, options: TurnOptions): Promise<Found> {
    const { deadlineMs: _load, extra: _extra, contextTokens: _context, tokenBudget: _tokens, ...find } = options;
    const { scopes, filter } = this.#options;
    const recentTools = this.#recent.map(({ toolId, success, turn }) => ({ toolId, success, turnsAgo: this.#turn + 1 - turn }));
    const question: FindOptions = {
      timeoutMs: FIND_MS,
      ...(scopes && { scopes }),
      ...(filter && { filter }),
      ...find,
      recentTools,
      namedTools: [...(find.namedTools ?? []), ...this.#askedFor].slice(-LIMITS.findTools),
      topK: Math.min(TOP_K_MOST, topK + NEXT_BEST),
    };
    return this.#agent.find(intent, question);
  }

  #note({ search, chosen }: Choice, number: number): void {
    this.#lastChosen = chosen;
    if (search.kind === "found") {
      this.#askedFor = [];
      for (const { toolId } of search.found.tools) this.#foundWith.set(toolId, search.found);
    }
    for (const id of chosen) this.#chosenAt.set(id, number);
    const { keepTurns = 0 } = this.#options;
    for (const [id, at] of this.#chosenAt) if (number - at > keepTurns) this.#chosenAt.delete(id);
  }

  /** What takes the place of a chosen tool that is missing is chosen in its stead. */
  #standIns({ missing }: Load, { chosen }: Choice, number: number): LoadedTool[] {
    const instead = missing.flatMap((lost) => (lost.instead && chosen.includes(lost.toolId) ? [lost.instead] : []));
    const fresh = instead.filter(({ toolId }) => !this.#chosenAt.has(toolId) && !(this.#options.pinned ?? []).includes(toolId));
    for (const { toolId } of fresh) this.#chosenAt.set(toolId, number);
    return fresh;
  }

  #account({ tools, breakpoint }: PromptStep, search: Search, options: TurnOptions): Turn["tokens"] {
    const sum = (of: readonly Material[]): number => of.reduce((total, { tokens }) => total + tokens, 0);
    const refusals = this.#refusals;
    this.#refusals = [];
    const cost = {
      sent: sum(tools),
      unchanged: sum(tools.slice(0, breakpoint)),
      extra: options.extra ?? refusals.length > 0,
      context: options.contextTokens ?? 0,
      refusals,
    };
    return this.#ledger.enter(cost, this.#agent.follower.stubs(), search.kind === "found" ? search.found : undefined);
  }

  #staleKeys(loaded: readonly LoadedTool[]): string[] {
    const stale = new Set(loaded.filter((tool) => tool.freshness === "stale").map((tool) => tool.toolId));
    return this.#prompt.active.filter((tool) => stale.has(tool.toolId)).map((tool) => tool.key);
  }

  #isAway(toolId: string): boolean {
    return this.#agent.follower.stub(toolId)?.availability === Availability.UNAVAILABLE;
  }

  #refuse(key: string): RefusedCall {
    const registered = this.#agent.follower.stub(key) !== undefined;
    if (registered && !this.#askedFor.includes(key)) this.#askedFor = [...this.#askedFor, key].slice(-ASKED_FOR);
    const near = nearest(key, this.#prompt.active, ({ key: name, toolId }) => [name, nameOf(toolId)], NEAREST);
    const there = near.length === 0 ? "No tool is loaded now." : `Loaded now, the most alike first: ${near.map((tool) => tool.key).join(", ")}.`;
    const why = registered
      ? `The tool "${key}" exists and is not loaded now, so it was not called. It is looked for in the next turn.`
      : `There is no loaded tool "${key}", so nothing was called.`;
    const message = `${why} ${there}`;
    this.#refusals.push(message);
    return { kind: "refused", key, success: false, message, nearest: near, registered };
  }

  /** Successes before the last call of a tool, the latest first. */
  #precedingOf(toolId: string): string[] {
    const last = this.#recent.findLastIndex((call) => call.toolId === toolId);
    const before = (last < 0 ? this.#recent : this.#recent.slice(0, last)).filter((call) => call.success && call.toolId !== toolId);
    return [...new Set(before.reverse().map((call) => call.toolId))].slice(0, PRECEDING);
  }
}

/** The best, and what must not be cut off from them. */
function split(tools: readonly FoundTool[], topK: number): { chosen: string[]; next: string[] } {
  const best = new Set(tools.slice(0, topK).map((tool) => tool.toolId));
  const belongs = ({ toolId, reasons }: FoundTool): boolean =>
    best.has(toolId) || reasons.some(({ kind, detail }) => ALWAYS.has(kind) || (BESIDE.has(kind) && best.has(detail)));
  const ids = (of: readonly FoundTool[]): string[] => of.map((tool) => tool.toolId);
  return { chosen: ids(tools.filter(belongs)), next: ids(tools.filter((tool) => !belongs(tool))) };
}

/** What fits, the best first; what is chosen goes before what is kept. A smaller tool may fit where a better one did not. */
function withinBudget(made: readonly Material[], chosen: readonly string[], pinned: ReadonlySet<string>, budget = Number.POSITIVE_INFINITY) {
  const rank = new Map(chosen.map((toolId, i) => [toolId, i]));
  const inOrder = made.toSorted((a, b) => (rank.get(a.toolId) ?? chosen.length) - (rank.get(b.toolId) ?? chosen.length));
  const over = new Set<Material>();
  let left = budget - made.filter(({ toolId }) => pinned.has(toolId)).reduce((sum, { tokens }) => sum + tokens, 0);
  for (const material of inOrder) {
    if (pinned.has(material.toolId)) continue;
    if (material.tokens <= left) left -= material.tokens;
    else over.add(material);
  }
  return { wanted: made.filter((material) => !over.has(material)), over: inOrder.filter((material) => over.has(material)) };
}

interface Left {
  readonly wanted: readonly Material[];
  readonly over: readonly Material[];
  readonly load: Load;
  readonly unavailable: ReadonlySet<string>;
}

function removed(tool: InjectedTool, { wanted, over, load: { missing }, unavailable }: Left): RemovedTool {
  const { toolId } = tool;
  if (wanted.some((material) => material.toolId === toolId)) return { tool, why: "changed" };
  if (over.some((material) => material.toolId === toolId)) return { tool, why: "over-budget" };
  if (unavailable.has(toolId)) return { tool, why: "unavailable" };
  return { tool, why: missing.find((lost) => lost.toolId === toolId)?.why ?? "not-chosen" };
}
