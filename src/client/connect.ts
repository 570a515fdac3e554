import { ToolCaller, type CallToolOptions } from "./calling/caller.js";
import { type McpDialer, sdkDialer } from "./calling/mcp.js";
import type { CallOutcome } from "./calling/outcome.js";
import type { CallOptions, RegistryConnection } from "./connection.js";
import { type FindOptions, type Found, findRequest, foundIn } from "./finding.js";
import { Follower } from "./follower/follower.js";
import { type FollowerOptions, targetsOf } from "./follower/options.js";
import type { FollowerState } from "./follower/state.js";
import { Injector } from "./injector/injector.js";
import type { InjectorOptions } from "./injector/turn.js";
import type { LoaderTrouble } from "./loader/checked-store.js";
import type { DefinitionStore } from "./loader/definition-store.js";
import type { Load, LoadOptions } from "./loader/load.js";
import { Loader } from "./loader/loader.js";
import { within } from "./loader/within.js";
import { RegistryError } from "./registry-error.js";
import { Replicas } from "./replicas.js";
import { type Outcome, outcomeRequest, type ReportOptions } from "./reporting.js";
import { type Selected, selectedIn } from "./selector/selected.js";
import { Selector, type SelectOptions, type SelectorOptions } from "./selector/selector.js";
import type { SelectorRegistry } from "./selector/shelves.js";
import { holdingTimers } from "./timers.js";

export interface AgentOptions extends FollowerOptions {
  /** Definitions that outlive the process or are shared: `redisStore`, `folderStore`. Default: memory alone. Closed with the agent. */
  readonly store?: DefinitionStore;
  /** Definitions in memory, bytes; default 32 MiB. */
  readonly memoryBytes?: number;
  /** What loading the definitions of one turn may take, ms; default 200. */
  readonly deadlineMs?: number;
  /** How MCP servers are called; default the official SDK (`sdkDialer()`), which is to be installed beside this package. */
  readonly mcp?: McpDialer;
  /** The model that `select` asks, and what it may take; without one the gate chooses. */
  readonly selector?: Omit<SelectorOptions, "registry" | "namespace" | "now">;
  /** Hears of what no turn waits for and does not work; default a process warning. */
  readonly onTrouble?: (trouble: LoaderTrouble) => void;
}

export interface MapOptions {
  /** Estimated tokens that the map may have, 20 to 30,000; default 500. */
  readonly tokens?: number;
  /** A module to look into; default the whole catalogue. */
  readonly module?: string;
  readonly timeoutMs?: number;
}

/** The catalogue in a few hundred tokens, for a prompt. */
export interface ModuleMap {
  readonly text: string;
  readonly estimatedTokens: number;
  /** Names for `find(…, { filter: { category } })` and for `moduleMap({ module })`. */
  readonly modules: readonly { readonly name: string; readonly tools: number }[];
  readonly leftOut: number;
  readonly tools: number;
  readonly revision: string;
  readonly stale: boolean;
}

const CALL_MS = 10_000;
/** Of the question where a tool is called; a call itself has its own time. */
const WHERE_MS = 2_000;
const FOLLOW_MS = 10_000;

/** A registry from an agent's side. All failures of calls are RegistryErrors, but where a method says otherwise. */
export class Agent {
  /** The labels: a local copy that is right or says that it is not. */
  readonly follower: Follower;
  readonly loader: Loader;
  readonly #options: AgentOptions;
  readonly #namespace: string;
  readonly #replicas: Replicas;
  readonly #caller: ToolCaller;
  readonly #selector: Selector;

  /** Throws TargetError, AccessError, and a TypeError for a model of the selector that cannot be asked. */
  constructor(options: AgentOptions = {}) {
    const { timers = holdingTimers, namespace = "", mcp = sdkDialer(), onTrouble = warn } = options;
    this.#options = options;
    this.#namespace = namespace;
    this.#replicas = new Replicas(targetsOf(options), timers);
    this.follower = new Follower(options);
    this.loader = new Loader({
      ask: (request, timeoutMs) =>
        this.#replicas.call(timeoutMs, (registry, ms) => registry.batchGetFullSchemas({ ...request, namespace }, { timeoutMs: ms })),
      labels: this.follower,
      timers,
      tell: onTrouble,
      ...(options.store && { store: options.store }),
      ...(options.memoryBytes !== undefined && { memoryBytes: options.memoryBytes }),
      ...(options.deadlineMs !== undefined && { deadlineMs: options.deadlineMs }),
    });
    this.#selector = new Selector({ ...options.selector, registry: this.#asRegistry(), namespace, now: () => timers.now() });
    this.#caller = new ToolCaller({ dial: mcp, timers, instancesOf: (serverId) => this.#instancesOf(serverId) });
  }

  /**
   * Follows the catalogue from now on; answers once there is a list, current or not. Rejects when there is none after `waitMs`
   * (default 10 s) and goes on trying; rejects for good when the registry refuses.
   */
  async follow({ waitMs = FOLLOW_MS }: { readonly waitMs?: number } = {}): Promise<FollowerState> {
    const timers = this.#options.timers ?? holdingTimers;
    const state = await within(timers, waitMs, this.follower.start().ready());
    if (state) return state;
    const now = this.follower.state;
    const cause = "error" in now ? now.error : undefined;
    throw new RegistryError(`no list came from the registry within ${waitMs} ms${cause ? `: ${cause.message}` : ""}; it is tried on`, {
      code: "UNAVAILABLE",
      cause,
    });
  }

  /** Which tools fit what the agent is trying to do. */
  async find(intent: string, options: FindOptions = {}): Promise<Found> {
    const { timeoutMs = CALL_MS, signal } = options;
    const filter = options.filter ?? this.#options.filter;
    const request = findRequest(this.#namespace, intent, filter ? { ...options, filter } : options);
    const answer = await this.#replicas.call(timeoutMs, (registry, ms) =>
      registry.findTools(request, { timeoutMs: ms, ...(signal && { signal }) }),
    );
    return foundIn(answer, intent, options);
  }

  /**
   * As `find`, chosen by a model call of its own, of which the conversation keeps nothing; with definitions. Where the model is of no
   * use, the gate chooses, and `fallback` says why.
   */
  async select(intent: string, options: SelectOptions = {}): Promise<Selected> {
    const filter = options.filter ?? this.#options.filter;
    return selectedIn(await this.#selector.select(intent, filter ? { ...options, filter } : options), intent, options);
  }

  /** The whole catalogue, or one module, in so many tokens. */
  async moduleMap({ tokens = 0, module = "", timeoutMs = CALL_MS }: MapOptions = {}): Promise<ModuleMap> {
    const request = { namespace: this.#namespace, tokenBudget: tokens, module };
    const answer = await this.#replicas.call(timeoutMs, (registry, ms) => registry.getModuleMap(request, { timeoutMs: ms }));
    const { text, estimatedTokens, leftOut, toolCount, revision, stale } = answer;
    const modules = answer.modules.map((m) => ({ name: m.name, tools: m.toolCount }));
    return { text, estimatedTokens, modules, leftOut, tools: toolCount, revision, stale };
  }

  /** Whole definitions within a turn's deadline; never rejects. */
  load(toolIds: readonly string[], options?: LoadOptions): Promise<Load> {
    return this.loader.load(toolIds, options);
  }

  /** Loads what every turn needs, keeps it, and loads it anew when it changes; never rejects. */
  warm(toolIds: readonly string[], options?: { readonly timeoutMs?: number }): Promise<Load> {
    return this.loader.warm(toolIds, options);
  }

  /** What the prompt of one conversation holds. One per conversation. Throws a TypeError for options that contradict each other. */
  inject(options: InjectorOptions = {}): Injector {
    return new Injector(this, options);
  }

  /** Calls a tool at the server that offers it, the conversation aside; never rejects. `Injector.call` minds what is loaded. */
  call(toolId: string, args: Record<string, unknown> = {}, options?: CallToolOptions): Promise<CallOutcome> {
    return this.#caller.call(toolId, args, options);
  }

  /** Tells the registry what came of a call, so that the next search finds better. Where an answer gets lost it may count twice. */
  async report(outcome: Outcome, options: ReportOptions = {}): Promise<{ readonly remembered: boolean }> {
    const request = outcomeRequest(this.#namespace, outcome, options);
    const { remembered } = await this.#replicas.call(CALL_MS, (registry, ms) => registry.reportOutcome(request, { timeoutMs: ms }));
    return { remembered };
  }

  /** Ends connections, and what is under way with them. */
  async close(): Promise<void> {
    await this.follower.stop();
    await this.#caller.close();
    await this.loader.close();
    this.#replicas.close();
  }

  #asRegistry(): SelectorRegistry {
    const asked = <A>(call: CallOptions | undefined, ask: (registry: RegistryConnection, call: CallOptions) => Promise<A>): Promise<A> =>
      this.#replicas.call(call?.timeoutMs ?? CALL_MS, (registry, timeoutMs) => ask(registry, { ...call, timeoutMs }));
    return {
      findTools: (request, call) => asked(call, (registry, options) => registry.findTools(request, options)),
      getModuleMap: (request, call) => asked(call, (registry, options) => registry.getModuleMap(request, options)),
      getStubs: (request, call) => asked(call, (registry, options) => registry.getStubs(request, options)),
    };
  }

  async #instancesOf(serverId: string) {
    const request = { namespace: this.#namespace, serverId };
    const { server } = await this.#replicas.call(WHERE_MS, (registry, ms) => registry.getServer(request, { timeoutMs: ms }));
    return server?.instances ?? [];
  }
}

/** An agent of a registry; it dials at the first call. Throws TargetError and AccessError. */
export function connect(options: AgentOptions = {}): Agent {
  return new Agent(options);
}

function warn({ message, error }: LoaderTrouble): void {
  const cause = error === undefined ? "" : `: ${error instanceof Error ? error.message : String(error)}`;
  process.emitWarning(`${message}${cause}`, { type: "ToolcribWarning" });
}
