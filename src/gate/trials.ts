/** Labels on trial: a second index of the namespace in which they count, for half of the callers. */
import { createHash } from "node:crypto";
import { EVERYBODY } from "../domain/identity.js";
import type { Tool } from "../domain/server.js";
import type { NamespaceIndex } from "./namespace-index.js";
import type { Cut, GateCatalogue, ListedTool } from "./ports.js";

export interface TrialDeps {
  readonly catalogue: GateCatalogue;
  /** The tool with the label that is on trial as its own; any other as it is. The same object for the same tool. */
  readonly asTried: (tool: Tool) => Tool;
  readonly makeIndex: (namespace: string, catalogue: GateCatalogue) => NamespaceIndex;
}

/**
 * While a label is on trial in a namespace, everything of it is indexed twice: so both kinds of callers are answered in exactly the
 * same way, each from its own labels. Lists know nothing of it.
 */
export class Trials {
  /** The catalogue as the callers of the trial see it. */
  readonly catalogue: GateCatalogue;
  /** Namespace → tools on trial. */
  private readonly tools = new Map<string, Set<string>>();
  private readonly indexes = new Map<string, NamespaceIndex>();

  constructor(private readonly deps: TrialDeps) {
    const { catalogue, asTried } = deps;
    const tried = (listed: ListedTool): ListedTool => ({ ...listed, tool: asTried(listed.tool) });
    this.catalogue = {
      async at(namespace, minRevision): Promise<Cut> {
        const cut = await catalogue.at(namespace, minRevision);
        const tool = (id: string) => {
          const listed = cut.tool(id);
          return listed && tried(listed);
        };
        return { ...cut, tool };
      },
      current: (namespace, id) => {
        const listed = catalogue.current(namespace, id);
        return listed && tried(listed);
      },
      *all(namespace) {
        for (const listed of catalogue.all(namespace)) yield tried(listed);
      },
      definitions: (namespace, digests) => catalogue.definitions(namespace, digests),
    };
  }

  /** Undefined where nothing is on trial, and until all of the namespace is indexed: till then everybody is shown the same. */
  index(namespace: string): NamespaceIndex | undefined {
    const index = this.indexes.get(namespace);
    return index && index.index.size > 0 ? index : undefined;
  }

  /** As `Gate.changed`, by tool_id. */
  changed(
    namespace: string,
    serverId: string,
    service: string | undefined,
    ids: readonly string[],
    all: () => readonly string[],
    mayBeTried: boolean,
  ): void {
    const known = this.tools.get(namespace);
    if (!known && !mayBeTried) return;
    for (const id of ids) {
      if (this.onTrial(namespace, id)) this.on(namespace).add(id);
      else known?.delete(id);
    }
    const index = this.indexes.get(namespace);
    index?.touch(serverId, service, ids, all);
    this.follow(namespace);
  }

  /** As `Gate.reset`. */
  reset(namespaces: ReadonlySet<string>, belongs: (namespace: string) => boolean): void {
    for (const namespace of this.tools.keys()) if (belongs(namespace)) this.tools.delete(namespace);
    for (const namespace of namespaces) {
      for (const { tool, serverId } of this.deps.catalogue.all(namespace))
        if (tool.overlay?.overlay.trial) this.on(namespace).add(`${serverId}/${tool.name}`);
      this.indexes.get(namespace)?.reload();
    }
    for (const namespace of [...this.indexes.keys(), ...this.tools.keys()]) this.follow(namespace);
  }

  learned(namespace: string, id: string, digest: string, definition: Uint8Array): void {
    this.indexes.get(namespace)?.learned(id, digest, definition);
  }

  private onTrial(namespace: string, id: string): boolean {
    return this.deps.catalogue.current(namespace, id)?.tool.overlay?.overlay.trial === true;
  }

  private on(namespace: string): Set<string> {
    const known = this.tools.get(namespace) ?? new Set<string>();
    this.tools.set(namespace, known);
    return known;
  }

  /** An index stands for as long as a label is on trial. */
  private follow(namespace: string): void {
    if ((this.tools.get(namespace)?.size ?? 0) === 0) {
      this.tools.delete(namespace);
      this.indexes.delete(namespace);
    } else if (!this.indexes.has(namespace)) {
      const index = this.deps.makeIndex(namespace, this.catalogue);
      this.indexes.set(namespace, index);
      index.reload();
    }
  }
}

/**
 * Whether labels on trial are shown to this caller: half of the principals, always the same ones. Where nobody is identified, half of
 * the intents, so that the same question is answered alike.
 */
export function isShownTrials({ caller = EVERYBODY.id, intent, filter }: { readonly caller?: string | undefined; readonly intent: string; readonly filter: { readonly namespace: string } }): boolean {
  const who = caller === EVERYBODY.id ? ["intent", intent] : ["caller", caller];
  const hash = createHash("sha256").update(JSON.stringify(["trial", filter.namespace, ...who])).digest();
  return ((hash[0] ?? 0) & 1) === 1;
}
