import type { GateCatalogue, GateClock } from "./ports.js";

/** Definitions asked of the store at once. */
const BATCH = 50;
/** Definitions that nobody has loaded yet are looked for again after this: they come when an agent first asks for them. */
const AGAIN_MS = 30_000;
/** How many of them each time; the rest waits its turn. */
const AGAIN_MOST = 500;

export interface DefinitionReaderDeps {
  readonly catalogue: Pick<GateCatalogue, "definitions">;
  readonly clock: GateClock;
  readonly learned: (namespace: string, toolId: string, digest: string, definition: Uint8Array) => void;
  /** Whether the tool still has this digest; one that has not is forgotten. */
  readonly wanted: (namespace: string, toolId: string, digest: string) => boolean;
}

/**
 * Brings the definitions of indexed tools from the store into the index, beside everything else: every replica reads the
 * same ones, so that equal catalogues come to equal answers wherever a definition was first loaded.
 */
export class DefinitionReader {
  /** Namespace → tool → digest. */
  private readonly unread = new Map<string, Map<string, string>>();
  private readonly missing = new Map<string, Map<string, string>>();
  private working: Promise<void> | undefined;
  private pausing: Promise<void> | undefined;
  private readonly stopping = new AbortController();

  constructor(private readonly deps: DefinitionReaderDeps) {}

  want(namespace: string, toolId: string, digest: string): void {
    put(this.unread, namespace, toolId, digest);
    this.missing.get(namespace)?.delete(toolId);
    this.begin();
  }

  /** Tools whose definition has a digest and is not in the index yet, be it that nobody loaded it so far. */
  get waiting(): number {
    let sum = 0;
    for (const all of [this.unread, this.missing]) for (const tools of all.values()) sum += tools.size;
    return sum;
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await Promise.all([this.working, this.pausing]);
  }

  private begin(): void {
    this.working ??= this.work().finally(() => (this.working = undefined));
  }

  private async work(): Promise<void> {
    const { clock, catalogue } = this.deps;
    while (!this.stopping.signal.aborted) {
      // Tools that come together are asked for together.
      await clock.pause();
      const [namespace, batch] = this.next();
      if (batch.length === 0) break;
      const found = await catalogue.definitions(
        namespace,
        batch.map(([, digest]) => digest),
      );
      for (const [i, [toolId, digest]] of batch.entries()) {
        const definition = found[i];
        if (definition) {
          this.deps.learned(namespace, toolId, digest, definition);
          await clock.pause();
        } else put(this.missing, namespace, toolId, digest);
      }
    }
    if (this.missing.size > 0) this.pausing ??= this.wait().finally(() => (this.pausing = undefined));
  }

  private next(): [namespace: string, batch: [toolId: string, digest: string][]] {
    for (const [namespace, tools] of this.unread) {
      const batch = take(tools, BATCH).filter(([id, digest]) => this.deps.wanted(namespace, id, digest));
      if (tools.size === 0) this.unread.delete(namespace);
      if (batch.length > 0) return [namespace, batch];
    }
    return ["", []];
  }

  private async wait(): Promise<void> {
    await this.deps.clock.sleep(AGAIN_MS, this.stopping.signal);
    if (this.stopping.signal.aborted) return;
    let room = AGAIN_MOST;
    for (const [namespace, tools] of this.missing) {
      const again = take(tools, room);
      if (tools.size === 0) this.missing.delete(namespace);
      for (const [id, digest] of again) put(this.unread, namespace, id, digest);
      room -= again.length;
      if (room <= 0) break;
    }
    this.begin();
  }
}

type ByNamespace = Map<string, Map<string, string>>;

function put(all: ByNamespace, namespace: string, toolId: string, digest: string): void {
  const tools = all.get(namespace) ?? new Map<string, string>();
  all.set(namespace, tools);
  tools.set(toolId, digest);
}

/** The first ones, which are taken out. */
function take(tools: Map<string, string>, count: number): [string, string][] {
  const taken: [string, string][] = [];
  for (const entry of tools) {
    if (taken.length >= count) break;
    taken.push(entry);
    tools.delete(entry[0]);
  }
  return taken;
}
