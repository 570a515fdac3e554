/** The dense arm: which tools are alike to an intent in meaning, by vectors of an embedder that an operator named. */
import type { Meaning } from "../api.js";
import type { ToolDocument } from "../document.js";
import type { GateClock } from "../ports.js";
import { cut } from "../text.js";
import { AskedVectors } from "./asked.js";
import type { DenseObserver, Embedder, VectorShelf } from "./embedder.js";
import { ToolVectors } from "./tool-vectors.js";
import type { ExactSearch } from "./vector-table.js";

export interface MeaningDeps {
  readonly embedder: Embedder;
  readonly shelf: VectorShelf;
  /** A native search, where one is installed. */
  readonly exact: ExactSearch | undefined;
  readonly clock: GateClock;
  readonly random: () => number;
  readonly observer: DenseObserver;
  /** How long an answer may wait for the vector of its intent, ms. */
  readonly budgetMs: number;
}

export interface Alike {
  readonly meaning: Meaning;
  /** Above 0 to 1 for the nearest tools; undefined where vectors took no part. */
  readonly tools: ReadonlyMap<string, number> | undefined;
}

/** Tools that are looked at for their meaning. */
const NEAREST = 50;
/** Code units of a tool's text, and of an intent: small models read no more. */
const TEXT = 2_000;

export class MeaningArm {
  private readonly namespaces = new Map<string, ToolVectors>();
  private readonly asked: AskedVectors;

  constructor(private readonly deps: MeaningDeps) {
    this.asked = new AskedVectors(deps);
  }

  /** Tools that have no vector yet, in all namespaces. */
  get waiting(): number {
    return [...this.namespaces.values()].reduce((sum, { waiting }) => sum + waiting, 0);
  }

  /** A tool is described like this now. */
  described(namespace: string, document: ToolDocument): void {
    this.vectorsOf(namespace).want(document.toolId, textOf(document));
  }

  gone(namespace: string, toolId: string): void {
    this.namespaces.get(namespace)?.forget(toolId);
  }

  /** The whole catalogue was read anew: these tools are in it. */
  retain(namespace: string, has: (toolId: string) => boolean): void {
    this.namespaces.get(namespace)?.retain(has);
  }

  /** Never rejects: without vectors the answer is by words. */
  async alike(namespace: string, intent: string, deadlineMs: number | undefined): Promise<Alike> {
    const table = this.namespaces.get(namespace)?.table;
    if (!table || table.size === 0) return { meaning: "building", tools: undefined };
    const asked = await this.asked.vectorOf(cut(intent, TEXT), table.dimensions, deadlineMs);
    if (asked.kind !== "vector") return { meaning: asked.kind, tools: undefined };
    const near = await table.nearest(asked.vector, NEAREST);
    // Many models hold everything for alike: what counts is how far a tool is ahead of the last that was looked at.
    const floor = near.length === NEAREST ? Math.max(0, near[near.length - 1]?.similarity ?? 0) : 0;
    const tools = near.flatMap(({ toolId, similarity }) => (similarity > floor ? [[toolId, similarity - floor] as const] : []));
    return { meaning: "used", tools: new Map(tools) };
  }

  async stop(): Promise<void> {
    await Promise.all([...this.namespaces.values()].map((vectors) => vectors.stop()));
  }

  private vectorsOf(namespace: string): ToolVectors {
    const known = this.namespaces.get(namespace);
    if (known) return known;
    const made = new ToolVectors({ ...this.deps, namespace });
    this.namespaces.set(namespace, made);
    return made;
  }
}

/** Parameters say how a tool is called, and blur what it is for. */
function textOf({ name, title, description, useWhen, keywords, service }: ToolDocument): string {
  const parts = [title || name, service, description, useWhen, keywords.join(", ")];
  return cut(parts.filter((part) => part !== "").join("\n"), TEXT);
}
