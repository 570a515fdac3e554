/** An injector over an agent that a test plays: it answers what the test says was found, and loads what it holds. */
import { Injector } from "../../src/client/injector/injector.js";
import type { AgentSide, InjectorOptions } from "../../src/client/injector/turn.js";
import type { CallOutcome } from "../../src/client/calling/outcome.js";
import type { FindOptions, Found, FoundTool, ReasonKind } from "../../src/client/finding.js";
import type { LoadedTool, LoadOptions, MissingTool } from "../../src/client/loader/load.js";
import type { RegistryError } from "../../src/client/registry-error.js";
import type { Outcome, ReportOptions } from "../../src/client/reporting.js";
import type { Stub } from "../../src/gen/toolcrib/v1/stub_pb.js";
import { definition, type Tool } from "./loader-bench.js";
import { stub } from "./scripted-watch.js";

/** `a/x`, or with what makes it be there: `a/x EXACT_NAME`, `a/x SIBLING b/y`. */
type Hit = string;

export class PlayedAgent implements AgentSide {
  readonly tools = new Map<string, Tool>();
  readonly labels = new Map<string, Stub>();
  readonly stale = new Set<string>();
  /** What takes the place of a tool that is late; undefined for nothing. */
  readonly late = new Map<string, string | undefined>();
  hits: readonly Hit[] = [];
  findError: RegistryError | undefined;
  readonly finds: { readonly intent: string; readonly options: FindOptions }[] = [];
  readonly loads: { readonly toolIds: readonly string[]; readonly options: LoadOptions }[] = [];
  readonly calls: { readonly toolId: string; readonly args: object }[] = [];
  readonly reports: { readonly outcome: Outcome; readonly options: ReportOptions }[] = [];
  readonly follower = {
    stub: (id: string): Stub | undefined => this.labels.get(id),
    stubs: (): readonly Stub[] => [...this.labels.values()],
  };

  put(toolId: string, more: Parameters<typeof stub>[1] = {}, tool = definition(toolId.split("/")[1] ?? "")): void {
    this.tools.set(toolId, tool);
    this.labels.set(toolId, stub(toolId, { digest: tool.digest, estimatedTokens: Math.floor(tool.bytes.byteLength / 4), ...more }));
  }

  remove(toolId: string): void {
    this.tools.delete(toolId);
    this.labels.delete(toolId);
  }

  injector(options: InjectorOptions = {}): Injector {
    return new Injector(this, options);
  }

  async find(intent: string, options: FindOptions = {}): Promise<Found> {
    this.finds.push({ intent, options });
    if (this.findError) throw this.findError;
    return { ...NOTHING, intent, tools: this.hits.map((hit) => this.#found(hit)) };
  }

  async load(toolIds: readonly string[], options: LoadOptions = {}) {
    this.loads.push({ toolIds, options });
    const tools = toolIds.flatMap((id): LoadedTool[] => (this.late.has(id) ? [] : this.#loaded(id)));
    const missing = toolIds.flatMap((toolId): MissingTool[] => {
      if (!this.late.has(toolId) && this.tools.has(toolId)) return [];
      const why = this.late.has(toolId) ? "late" : "gone";
      const [instead] = this.#loaded(this.late.get(toolId) ?? "");
      return [{ toolId, why, message: `${toolId} is ${why}`, ...(instead && { instead }) }];
    });
    return { tools, missing };
  }

  async call(toolId: string, args: object): Promise<CallOutcome> {
    this.calls.push({ toolId, args });
    return { kind: "answered", toolId, success: true, result: { content: [] }, latencyMs: 1 };
  }

  async report(outcome: Outcome, options: ReportOptions = {}): Promise<{ remembered: boolean }> {
    this.reports.push({ outcome, options });
    return { remembered: true };
  }

  #loaded(toolId: string): LoadedTool[] {
    const tool = this.tools.get(toolId);
    return tool ? [{ toolId, ...tool, freshness: this.stale.has(toolId) ? "stale" : "cached", from: "memory" }] : [];
  }

  #found(hit: Hit): FoundTool {
    const [toolId = "", kind, detail = ""] = hit.split(" ");
    const reasons = kind === undefined ? [] : [{ kind: kind as ReasonKind, words: [], detail }];
    return { toolId, stub: stub(toolId), score: 0.5, margin: 0.1, reasons, sideEffect: "READ_ONLY", labelVersion: `v of ${toolId}` };
  }
}

const NOTHING: Found = {
  intent: "",
  history: [],
  tools: [],
  withheld: [],
  weak: false,
  bundles: [],
  catalogueTokens: 7_000,
  catalogueTools: 70,
  revision: "r1",
  stale: false,
};
