import { toolId } from "../domain/ids.js";
import { isWithheld } from "../domain/quarantine.js";
import { estimatedTokens, type StubFields } from "../domain/stub.js";
import { documentOf, type ToolDocument } from "./document.js";
import { LiveIndex } from "./live-index.js";
import type { GateCatalogue, GateClock, ListedTool } from "./ports.js";

/** Changed tools that a question takes in by itself rather than wait for the next turn: about a millisecond of work. */
const AT_ONCE = 32;
/** Changes taken in before others have their turn. */
const SLICE_MS = 3;

export interface NamespaceIndexDeps {
  readonly catalogue: GateCatalogue;
  readonly clock: GateClock;
  readonly labelOf: (listed: ListedTool) => StubFields;
  /** The last tool went. */
  readonly onEmpty: () => void;
  /** Hears of each tool whose definition has a digest, and was not indexed yet. */
  readonly onUnread: (toolId: string, digest: string) => void;
  /** Hears how each tool's label describes it from now on, and which went. */
  readonly onDocument: (document: ToolDocument) => void;
  readonly onGone: (toolId: string) => void;
  /** The whole catalogue was read anew: only these tools are in it. */
  readonly onRead: (has: (toolId: string) => boolean) => void;
  /** A tool could not be indexed: a bug, which must not keep the others out. */
  readonly onError: (error: unknown, toolId: string) => void;
}

/**
 * The index of one namespace, kept at what the catalogue holds. A change only names the tool: what it is now is read
 * from the catalogue when its turn comes, so neither order nor repetition matters.
 */
export class NamespaceIndex {
  readonly index: LiveIndex;
  /** What all definitions of listed tools cost together, estimated; of a tool without a known definition, its label. */
  tokens = 0;
  private costs = new Map<string, number>();
  private readonly services = new Map<string, string>();
  private readonly changed = new Set<string>();
  /** Tools taken in while the whole catalogue is being read. */
  private meanwhile: Set<string> | undefined;
  private working: Promise<void> | undefined;
  private reading: Promise<void> | undefined;
  private again = false;
  /** The first reading of the whole catalogue, while it goes on. */
  private first: Promise<void> | undefined;

  constructor(
    readonly namespace: string,
    private readonly deps: NamespaceIndexDeps,
  ) {
    this.index = new LiveIndex(deps.clock);
  }

  /** Resolves when the whole catalogue was read for the first time; undefined when it was. */
  get building(): Promise<void> | undefined {
    return this.first;
  }

  get tools(): number {
    return this.costs.size;
  }

  /** Reads the whole catalogue anew; what was indexed serves until it is read. One more call meanwhile makes it begin again. */
  reload(): void {
    this.again = true;
    if (this.reading) return;
    this.reading = this.read()
      .catch((error: unknown) => this.deps.onError(error, ""))
      .finally(() => {
        this.reading = undefined;
        this.first = undefined;
      });
    if (this.index.size === 0) this.first = this.reading;
  }

  /** These tools of a server are other ones now, or are gone; all of them where the server is called otherwise now. */
  touch(serverId: string, service: string | undefined, changed: Iterable<string>, all: () => Iterable<string>): void {
    const before = this.services.get(serverId);
    if (service === undefined) this.services.delete(serverId);
    else this.services.set(serverId, service);
    const renamed = service !== undefined && before !== undefined && before !== service;
    for (const id of renamed ? all() : changed) this.changed.add(id);
    if (this.changed.size > 0) this.working ??= this.work().finally(() => (this.working = undefined));
  }

  /** A definition came; it counts if the tool still has it. */
  learned(id: string, digest: string, definition: Uint8Array): void {
    const listed = this.deps.catalogue.current(this.namespace, id);
    if (listed && listed.tool.digest === digest) this.put(id, listed, definition);
  }

  /** Resolves when every change so far is findable; undefined where that is now. */
  catchUp(): Promise<void> | undefined {
    if (this.first) return this.first.then(() => this.catchUp());
    if (this.changed.size > AT_ONCE) return this.working;
    for (const id of this.changed) this.take(id);
    return undefined;
  }

  private async read(): Promise<void> {
    while (this.again) {
      this.again = false;
      const costs = new Map<string, number>();
      const meanwhile = new Set<string>();
      this.meanwhile = meanwhile;
      await this.index.load(this.documents(costs));
      this.meanwhile = undefined;
      this.costs = costs;
      this.tokens = [...costs.values()].reduce((sum, tokens) => sum + tokens, 0);
      for (const id of meanwhile) this.costAnew(id);
      this.deps.onRead((id) => this.costs.has(id));
    }
  }

  private *documents(costs: Map<string, number>): Generator<ToolDocument> {
    this.services.clear();
    for (const listed of this.deps.catalogue.all(this.namespace)) {
      const id = toolId(listed.serverId, listed.tool.name);
      try {
        const label = this.deps.labelOf(listed);
        this.services.set(listed.serverId, listed.service);
        if (!isWithheld(listed.tool)) costs.set(id, costOf(listed, label));
        this.unread(id, listed);
        const document = documentOf(label, listed.service);
        this.deps.onDocument(document);
        yield document;
      } catch (error) {
        this.deps.onError(error, id);
      }
    }
  }

  /** In slices, beginning in the next turn: a Register of ten thousand tools must not hold up whoever folds it. */
  private async work(): Promise<void> {
    const { clock } = this.deps;
    while (this.changed.size > 0) {
      await clock.pause();
      const until = clock.monotonic() + SLICE_MS;
      for (const id of this.changed) {
        this.take(id);
        if (clock.monotonic() >= until) break;
      }
    }
    if (this.index.size === 0 && !this.reading) this.deps.onEmpty();
  }

  private take(id: string): void {
    this.changed.delete(id);
    try {
      const listed = this.deps.catalogue.current(this.namespace, id);
      if (!listed) {
        this.index.remove(id);
        this.deps.onGone(id);
      } else {
        this.put(id, listed);
        this.unread(id, listed);
      }
      this.costAnew(id);
    } catch (error) {
      this.deps.onError(error, id);
    }
  }

  private put(id: string, listed: ListedTool, definition?: Uint8Array): void {
    this.meanwhile?.add(id);
    const document = documentOf(this.deps.labelOf(listed), listed.service, definition);
    this.index.upsert(document);
    // What is told of is the label: a definition that is read later must not cost a second vector.
    if (definition === undefined) this.deps.onDocument(document);
  }

  private unread(id: string, { tool }: ListedTool): void {
    if (tool.digest !== "") this.deps.onUnread(id, tool.digest);
  }

  private costAnew(id: string): void {
    this.meanwhile?.add(id);
    const listed = this.deps.catalogue.current(this.namespace, id);
    const tokens = listed && !isWithheld(listed.tool) ? costOf(listed, this.deps.labelOf(listed)) : undefined;
    this.tokens += (tokens ?? 0) - (this.costs.get(id) ?? 0);
    if (tokens === undefined) this.costs.delete(id);
    else this.costs.set(id, tokens);
  }
}

function costOf({ tool }: ListedTool, { sizeBytes }: StubFields): number {
  return estimatedTokens(sizeBytes > 0 ? sizeBytes : tool.stub.byteLength);
}
