/** The gate of one replica: an index for each namespace, and the questions that are answered from them. */
import { Fault } from "../domain/fault.js";
import { toolId } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import type { Tool } from "../domain/server.js";
import type { StubFields } from "../domain/stub.js";
import { alwaysIncluded } from "./always.js";
import { price } from "./answer.js";
import type { FindOutput, FindQuery, GateApi, MapOutput, MapQuery, OutcomeReport, WithheldCause } from "./api.js";
import { type Candidates, candidatesFor } from "./candidates.js";
import { CatalogueMaps, categoryNames } from "./catalogue-maps.js";
import type { Alike, MeaningArm } from "./dense/meaning.js";
import { DefinitionReader } from "./definition-reader.js";
import { choose } from "./find.js";
import { intentOf } from "./intent.js";
import type { LiveIndex } from "./live-index.js";
import { mapOfCategory, mapOfModule, type ModuleMap } from "./module-map.js";
import { moduleNamed } from "./modules.js";
import { NamespaceIndex, type NamespaceIndexDeps } from "./namespace-index.js";
import type { NamespacePast } from "./outcomes/namespace-past.js";
import type { Outcomes } from "./outcomes/outcomes.js";
import { composeRelated } from "./related/compose.js";
import { Siblings } from "./related/siblings.js";
import { lastOf, sequencesRelated } from "./related/sequences.js";
import type { Cut, DecodeStub, GateCatalogue, GateClock, ListedTool, LoadSchemas } from "./ports.js";
import { NO_PRIORITY, type Rules, type Ruling } from "./stages.js";
import { isShownTrials, Trials } from "./trials.js";

/** What the gate tells the metrics. */
export interface GateObserver {
  /** `ms` without the loading of schemas. */
  found(fit: "good" | "weak" | "none", ms: number): void;
  withheld(cause: WithheldCause): void;
}

export interface GateDeps {
  readonly catalogue: GateCatalogue;
  readonly load: LoadSchemas;
  readonly decode: DecodeStub;
  readonly clock: GateClock;
  readonly observer: GateObserver;
  /** What past calls taught; undefined where nothing is to be remembered. */
  readonly outcomes?: Outcomes | undefined;
  /** The operators' rules that are in force now. */
  readonly rules: (namespace: string) => Rules;
  /** Undefined where no embedder is set. */
  readonly meaning?: MeaningArm | undefined;
  readonly onError: (error: unknown, facts: { readonly namespace: string; readonly tool: string }) => void;
  /** The tool with the label that is on trial as its own, the same object each time; unsaid: there are no trials. */
  readonly asTried?: (tool: Tool) => Tool;
  /** Others who want to know what came of calls. */
  readonly onReport?: (report: OutcomeReport) => void;
  /** Others who want to know the definitions that are read for the index. */
  readonly onDefinition?: (namespace: string, toolId: string, digest: string, definition: Uint8Array) => void;
}

export class Gate implements GateApi {
  private readonly namespaces = new Map<string, NamespaceIndex>();
  private readonly labels = new Map<Tool, StubFields>();
  private readonly maps = new CatalogueMaps();
  private readonly siblings = new Siblings((tool) => this.labelOf({ tool }));
  private readonly reader: DefinitionReader;

  private readonly trials: Trials;

  constructor(private readonly deps: GateDeps) {
    const { catalogue, clock } = deps;
    const makeIndex = (namespace: string, tried: GateCatalogue) => this.newIndex(namespace, tried, UNHEARD);
    this.trials = new Trials({ catalogue, asTried: deps.asTried ?? ((tool) => tool), makeIndex });
    this.reader = new DefinitionReader({
      catalogue,
      clock,
      learned: (namespace, id, digest, definition) => {
        try {
          this.namespaces.get(namespace)?.learned(id, digest, definition);
          this.trials.learned(namespace, id, digest, definition);
          deps.onDefinition?.(namespace, id, digest, definition);
        } catch (error) {
          deps.onError(error, { namespace, tool: id });
        }
      },
      wanted: (namespace, id, digest) => catalogue.current(namespace, id)?.tool.digest === digest,
    });
  }

  /** Tools findable now. */
  get tools(): number {
    let sum = 0;
    for (const { index } of this.namespaces.values()) sum += index.size;
    return sum;
  }

  /** Tools whose parameters are not searched yet. */
  get unread(): number {
    return this.reader.waiting;
  }

  /** Namespaces whose first index is being built. */
  get building(): number {
    return [...this.namespaces.values()].filter(({ building }) => building !== undefined).length;
  }

  /** Resolves when no first index is being built. */
  async built(): Promise<void> {
    while (this.building > 0) await Promise.all([...this.namespaces.values()].map(({ building }) => building));
  }

  /**
   * A server changed: these tools of it. `service` is what it is called now, undefined when it is gone; `all` are all of its tools.
   * `mayBeTried` false: none of these has a label on trial.
   */
  changed(
    namespace: string,
    serverId: string,
    service: string | undefined,
    names: readonly string[],
    all: () => readonly string[],
    mayBeTried = true,
  ): void {
    const ids = (of: readonly string[]) => of.map((name) => toolId(serverId, name));
    this.indexOf(namespace).touch(serverId, service, ids(names), () => ids(all()));
    this.trials.changed(namespace, serverId, service, ids(names), () => ids(all()), mayBeTried);
  }

  /** A whole partition's catalogue is another one: these are its namespaces, and of those that were, which `belong` to it. */
  reset(namespaces: Iterable<string>, belongs: (namespace: string) => boolean): void {
    const now = new Set(namespaces);
    for (const namespace of this.namespaces.keys())
      if (belongs(namespace) && !now.has(namespace)) this.namespaces.delete(namespace);
    for (const namespace of now) this.indexOf(namespace).reload();
    this.trials.reset(now, belongs);
  }

  async find(query: FindQuery, deadlineMs: number | undefined): Promise<FindOutput> {
    const { load, clock, observer, meaning } = this.deps;
    const { namespace } = query.filter;
    const past = await this.pastOf(namespace);
    // First, because the catalogue that is answered from is to be the one of after this waiting.
    const alike = (await meaning?.alike(namespace, query.intent, deadlineMs)) ?? NO_MEANING;
    const { catalogue, index: held } = this.armOf(query);
    const cut = await catalogue.at(namespace, query.minRevision);
    const rules = this.deps.rules(namespace);
    const category = rules.category(query.category);
    if (query.category !== "" && !category) moduleNamed(cut, query.category);
    const behind = held?.catchUp();
    if (behind) await this.inTime(behind);
    const began = clock.monotonic();
    const topK = query.topK === 0 ? LIMITS.findToolsDefault : query.topK;
    const intent = intentOf({ text: query.intent, history: query.history, named: query.named ?? [] });
    const ruling = rules.judge(query, intent);
    const sought = held && soughtIn(held.index, ruling);
    const labelOf = (listed: ListedTool) => this.labelOf(listed);
    const choice = choose(query, intent, topK, {
      cut,
      labelOf,
      ruling,
      category,
      priority: past?.priority(clock.now(), lastOf(query.recent)) ?? NO_PRIORITY,
      related: composeRelated([this.siblings, ...(past ? [sequencesRelated({ follows: past.follows, recent: query.recent, cut, labelOf })] : [])]),
      rank: (accept, pool, weigh) =>
        held
          ? candidatesFor(held.index, { intent, nowMs: clock.now(), memory: past?.memory, dense: alike.tools, accept, sought, pool, weigh })
          : NOTHING_FOUND,
    });
    observer.found(choice.kept.length === 0 ? "none" : choice.weak ? "weak" : "good", clock.monotonic() - began);
    const { tools, withheld, tokens } = await price(query, choice.kept, load, deadlineMs);
    const all = [...choice.withheld, ...withheld].sort((a, b) => b.score - a.score).slice(0, LIMITS.withheldTools);
    for (const { cause } of all) observer.withheld(cause);
    return {
      tools,
      withheld: all,
      weak: choice.weak,
      answerTokens: tokens,
      catalogueTokens: held?.tokens ?? 0,
      catalogueTools: held?.tools ?? 0,
      bundles: choice.bundles,
      meaning: alike.meaning,
      position: cut.position,
      stale: cut.stale,
    };
  }

  async map({ namespace, module, tokenBudget, minRevision }: MapQuery): Promise<MapOutput> {
    const cut = await this.deps.catalogue.at(namespace, minRevision);
    const budget = tokenBudget === 0 ? LIMITS.mapTokensDefault : tokenBudget;
    const map = this.mapIn(cut, namespace, module, budget);
    const rules = this.deps.rules(namespace);
    const always = alwaysIncluded(namespace, rules, cut, (listed) => this.labelOf(listed));
    return { ...map, alwaysIncluded: always, stateFacts: rules.stateFacts, position: cut.position, stale: cut.stale };
  }

  async report(report: OutcomeReport): Promise<{ readonly remembered: boolean }> {
    const { catalogue, outcomes } = this.deps;
    const { namespace, toolId: id, caller } = report;
    outcomes?.admit(caller);
    const cut = await catalogue.at(namespace, "");
    if (!cut.tool(id)) throw new Fault("NOT_FOUND", `no such tool in this namespace: ${id}`, { metadata: { tool_id: id } });
    const past = await this.pastOf(namespace);
    this.deps.onReport?.(report);
    if (!past || !outcomes) return { remembered: false };
    return { remembered: outcomes.report({ ...report, preceding: knownBefore(report, cut) }) };
  }

  async stop(): Promise<void> {
    await Promise.all([this.reader.stop(), this.deps.meaning?.stop(), this.deps.outcomes?.stop()]);
  }

  /** Of a namespace without tools there is nothing to know. */
  private async pastOf(namespace: string): Promise<NamespacePast | undefined> {
    const { outcomes } = this.deps;
    if (!outcomes || !this.namespaces.has(namespace)) return undefined;
    const opening = outcomes.open(namespace);
    if (opening) await opening;
    return outcomes.past(namespace);
  }

  /** The index of a replica that has just started may take a moment. */
  private async inTime(caughtUp: Promise<void>): Promise<void> {
    const done = new AbortController();
    const late = this.deps.clock.sleep(LIMITS.minRevisionWaitMs, done.signal).then(() => "late" as const);
    const first = await Promise.race([caughtUp, late]);
    done.abort();
    if (first === "late")
      throw new Fault("NOT_READY", "the index of this namespace is still being built", { retryAfterMs: 1_000 });
  }

  private indexOf(namespace: string): NamespaceIndex {
    const known = this.namespaces.get(namespace);
    if (known) return known;
    const { catalogue, meaning } = this.deps;
    const made: NamespaceIndex = this.newIndex(namespace, catalogue, {
      onEmpty: () => {
        if (this.namespaces.get(namespace) === made) this.namespaces.delete(namespace);
      },
      onDocument: (document) => meaning?.described(namespace, document),
      onGone: (id) => meaning?.gone(namespace, id),
      onRead: (has) => meaning?.retain(namespace, has),
    });
    this.namespaces.set(namespace, made);
    return made;
  }

  private newIndex(namespace: string, catalogue: GateCatalogue, hooks: Hooks): NamespaceIndex {
    const { clock, decode, onError } = this.deps;
    return new NamespaceIndex(namespace, {
      ...hooks,
      catalogue,
      clock,
      labelOf: ({ tool }) => decode(tool.stub),
      onUnread: (id, digest) => this.reader.want(namespace, id, digest),
      onError: (error, tool) => onError(error, { namespace, tool }),
    });
  }

  /** What a question is answered from: labels on trial show to half of the callers. */
  private armOf(query: FindQuery): { readonly catalogue: GateCatalogue; readonly index: NamespaceIndex | undefined } {
    const { namespace } = query.filter;
    const index = this.trials.index(namespace);
    if (index && isShownTrials(query)) return { catalogue: this.trials.catalogue, index };
    return { catalogue: this.deps.catalogue, index: this.namespaces.get(namespace) };
  }

  private mapIn(cut: Cut, namespace: string, module: string, budget: number): ModuleMap {
    const rules = this.deps.rules(namespace);
    if (module === "") return this.maps.of(namespace, cut.servers(), rules, budget);
    if (rules.category(module)) return mapOfCategory(categoryNames(module, cut.servers(), rules), budget);
    return mapOfModule(moduleNamed(cut, module), budget);
  }

  /** The same few tools are candidates again and again. A tool's label never changes: another label is another tool. */
  private labelOf({ tool }: Pick<ListedTool, "tool">): StubFields {
    const known = this.labels.get(tool);
    if (known) return known;
    if (this.labels.size >= LABELS) this.labels.clear();
    const label = this.deps.decode(tool.stub);
    this.labels.set(tool, label);
    return label;
  }
}

type Hooks = Pick<NamespaceIndexDeps, "onEmpty" | "onDocument" | "onGone" | "onRead">;
/** The first index tells what there is to tell. */
const UNHEARD: Hooks = { onEmpty: () => undefined, onDocument: () => undefined, onGone: () => undefined, onRead: () => undefined };

/** Tools that rules prefer by name, most of them on one server: a name that a hundred servers have is no preference. */
const SOUGHT_MOST = 100;

function soughtIn(index: LiveIndex, { sought }: Ruling): readonly string[] {
  const ids = sought.flatMap((name) => (name.includes("/") ? [name] : [...index.named(name)]));
  return ids.slice(0, SOUGHT_MOST);
}

const NOTHING_FOUND: Candidates = { ranked: [], weak: true, fits: () => false };
const NO_MEANING: Alike = { meaning: "none", tools: undefined };

/** What came before, as far back as all of it is registered; a tool tried twice came once. */
function knownBefore({ toolId: id, preceding }: OutcomeReport, cut: Cut): readonly string[] {
  const unknown = preceding.findIndex((before) => !cut.tool(before));
  const known = unknown < 0 ? preceding : preceding.slice(0, unknown);
  return known.filter((before, i) => before !== (i === 0 ? id : known[i - 1]));
}

/** Labels of candidates kept decoded: about a kilobyte each. */
const LABELS = 4_096;
