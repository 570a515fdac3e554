/**
 * Chooses tools by a model call of its own, outside of the agent's context. Where all labels fit into one question they are shown at
 * once; otherwise the model first names modules of the map, and is then shown the labels of those, in pages. What it names is judged by
 * the gate, as if the intent had named it: rules, preconditions, scopes and availability hold. Whenever the model is of no use, the
 * answer is the gate's own, and says so.
 */
import { LIMITS } from "../../domain/limits.js";
import { type FindToolsResponse, SchemaInclusion } from "../../gen/toolcrib/v1/gate_service_pb.js";
import type { Stub } from "../../gen/toolcrib/v1/stub_pb.js";
import type { CallOptions } from "../connection.js";
import { type FindOptions, findRequest } from "../finding.js";
import { Choosing, lineTokens, NoUse, type Work } from "./choosing.js";
import { ChatModel, ModelError, type ModelOptions } from "./model.js";
import { lineOf } from "./questions.js";
import { chosenOf, type Fallback, type Selection } from "./selection.js";
import { gather, type SelectorRegistry, type Shelves, type StubFilter, stubsOf, stubsOfModule, toolCount } from "./shelves.js";

export interface SelectorOptions {
  readonly registry: SelectorRegistry;
  /** Default `default`. */
  readonly namespace?: string;
  /** Without one the gate chooses. */
  readonly model?: ModelOptions;
  /** All that the model may take for one selection, ms; default 8,000. The registry's own answer comes on top, in milliseconds. */
  readonly timeBudgetMs?: number;
  /** Estimated tokens of all questions of one selection together; default 16,000. */
  readonly tokenBudget?: number;
  /** Of one question; default 8,000. */
  readonly pageTokens?: number;
  /** After three failures in a row the model is left alone for so long, ms; default 30,000. */
  readonly restMs?: number;
  /** Milliseconds on a clock that never goes back; the process's own if unsaid. */
  readonly now?: () => number;
}

export interface SelectOptions extends Omit<FindOptions, "tokenBudget"> {
  /** What comes along of each tool's definition; default FULL. */
  readonly schemas?: SchemaInclusion;
  /** Estimated tokens that the answered tools may have together. */
  readonly answerTokens?: number;
  /** Of whoever asks through this process. */
  readonly token?: string | undefined;
}

const TIME_MS = 8_000;
const TOKENS = 16_000;
const PAGE_TOKENS = 8_000;
const REST_MS = 30_000;
const FAILURES = 3;
/** Of a label's line: what it surely has, so that a catalogue that cannot fit is not read. */
const LEAST_LINE_TOKENS = 6;

export class Selector {
  readonly #options: SelectorOptions;
  readonly #model: ChatModel | undefined;
  readonly #now: () => number;
  #failures = 0;
  #restUntil = 0;

  /** Throws a TypeError for a model that cannot be asked. */
  constructor(options: SelectorOptions) {
    this.#options = options;
    this.#model = options.model && new ChatModel(options.model);
    this.#now = options.now ?? (() => performance.now());
  }

  /** Rejects with RegistryError when the registry does not answer, and with the signal's reason when the caller gives up. */
  async select(intent: string, options: SelectOptions = {}): Promise<Selection> {
    const work = noWork();
    if (!this.#model) return this.#byGate(intent, options, work, { why: "no-endpoint", message: "no model is set for the selector: the gate chose" });
    if (this.#now() < this.#restUntil) {
      const message = `the selector's model failed ${this.#failures} times in a row and is left alone for a while: the gate chose`;
      return this.#byGate(intent, options, work, { why: "resting", message });
    }
    const late = AbortSignal.timeout(this.#options.timeBudgetMs ?? TIME_MS);
    const signal = options.signal ? AbortSignal.any([late, options.signal]) : late;
    let ids: readonly string[];
    try {
      ids = await this.#ask(this.#model, intent, options, work, signal);
    } catch (error) {
      options.signal?.throwIfAborted();
      const fallback = this.#fallbackFor(error, late.aborted);
      if (!fallback) throw error;
      return this.#byGate(intent, options, work, fallback);
    }
    this.#failures = 0;
    const selection = await this.#judged(intent, options, work, ids);
    return selection ?? this.#byGate(intent, options, work, { why: "nonsense", message: "the selector's model named no tool that there is: the gate chose" });
  }

  /** Undefined for what the gate cannot mend either. */
  #fallbackFor(error: unknown, late: boolean): Fallback | undefined {
    if (error instanceof NoUse) return { why: error.why, message: `${error.message}: the gate chose` };
    if (!late && !(error instanceof ModelError)) return undefined;
    this.#failures++;
    if (this.#failures >= FAILURES) this.#restUntil = this.#now() + (this.#options.restMs ?? REST_MS);
    if (late) return { why: "slow", message: `the selector's model took more than ${this.#options.timeBudgetMs ?? TIME_MS} ms: the gate chose` };
    const { kind, message } = error as ModelError;
    return { why: kind, message: `${message}: the gate chose` };
  }

  /** tool_ids as the model named them, the first ones first. Throws NoUse and ModelError. */
  async #ask(model: ChatModel, intent: string, options: SelectOptions, work: Work, signal: AbortSignal): Promise<readonly string[]> {
    const { pageTokens = PAGE_TOKENS, tokenBudget = TOKENS } = this.#options;
    const { history = [], topK, filter } = options;
    const most = topK || LIMITS.findToolsDefault;
    const choosing = new Choosing({ model, matter: { intent, history }, most, pageTokens, tokenBudget, signal, work });
    const shelves = this.#shelves(options, signal);
    const all = filter?.category ? undefined : await allWithin(shelves, choosing.room);
    if (all) return choosing.tools(all);
    const modules = filter?.category ? [filter.category] : await choosing.modules(shelves);
    work.modules = modules;
    if (modules.length === 0) return [];
    const found = await Promise.all(modules.map((module) => stubsOfModule(shelves, module, LIMITS.toolsPerServer)));
    const stubs = new Map(found.flat().map((stub) => [stub.toolId, stub]));
    return choosing.tools([...stubs.values()]);
  }

  /** Undefined when none of the names is there. An empty choice is one: nothing fits. */
  async #judged(intent: string, options: SelectOptions, work: Work, ids: readonly string[]): Promise<Selection | undefined> {
    const answer = await this.#find(intent, { ...options, topK: Math.max(1, ids.length) }, ids);
    const { answer: chosen, absent } = chosenOf(answer, ids);
    work.unknown += absent;
    if (ids.length > 0 && absent === ids.length) return undefined;
    return { by: "model", answer: chosen, effort: { ...work } };
  }

  async #byGate(intent: string, options: SelectOptions, work: Work, fallback: Fallback): Promise<Selection> {
    return { by: "gate", fallback, answer: await this.#find(intent, options, []), effort: { ...work } };
  }

  #find(intent: string, options: SelectOptions, namedTools: readonly string[]): Promise<FindToolsResponse> {
    const { namespace = "", registry } = this.#options;
    const { schemas: includeSchemas = SchemaInclusion.FULL, answerTokens: tokenBudget = 0, ...rest } = options;
    const request = findRequest(namespace, intent, { ...rest, tokenBudget });
    return registry.findTools({ ...request, includeSchemas, namedTools: [...namedTools] }, callOf(options, options.signal));
  }

  #shelves(options: SelectOptions, signal: AbortSignal): Shelves {
    const { registry, namespace = "" } = this.#options;
    return { registry, namespace, filter: options.filter ?? {}, call: callOf(options, signal) };
  }
}

/** All labels under the filter, if they fit into one question. */
async function allWithin(shelves: Shelves, room: number): Promise<readonly Stub[] | undefined> {
  const most = Math.floor(room / LEAST_LINE_TOKENS);
  if (!isNarrow(shelves.filter) && (await toolCount(shelves)) > most) return undefined;
  const stubs = await gather(stubsOf(shelves), most + 1, () => true);
  const tokens = stubs.reduce((sum, stub) => sum + lineTokens(lineOf(stub)), 0);
  return stubs.length <= most && tokens <= room ? stubs : undefined;
}

function isNarrow({ serverIds = [], tagsAny = [], tagsAll = [], namePrefix = "" }: StubFilter): boolean {
  return serverIds.length + tagsAny.length + tagsAll.length > 0 || namePrefix !== "";
}

function noWork(): Work {
  return { calls: 0, promptTokens: 0, answerTokens: 0, modules: [], shown: 0, leftOut: 0, unknown: 0 };
}

function callOf({ timeoutMs, token }: SelectOptions, signal: AbortSignal | undefined): CallOptions {
  return { ...(timeoutMs !== undefined && { timeoutMs }), ...(signal && { signal }), ...(token !== undefined && { token }) };
}
