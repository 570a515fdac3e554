import { candidatesFor } from "../../src/gate/candidates.js";
import { intentOf } from "../../src/gate/intent.js";
import { indexOf } from "../../src/gate/live-index.js";
import { byScore } from "../../src/gate/fusion.js";
import { NamespacePast } from "../../src/gate/outcomes/namespace-past.js";
import { overGrpc } from "./over-grpc.js";
import { documentsOf, type RetrievalSet, type SetQuery } from "./sets.js";

/** A gate that holds the tools of one set. */
export interface Finder {
  find(query: Pick<SetQuery, "text" | "history">): Promise<Found>;
  /** Says that a tool was the right one. */
  report(query: SetQuery, toolId: string): Promise<void>;
  /** Forgets all reports. */
  forget(): Promise<void>;
  close(): Promise<void>;
}

export interface Found {
  /** Tool ids, the best first, siblings and companions not yet appended; at most RANKED. */
  readonly ranked: readonly string[];
  readonly weak: boolean;
  /** Estimated tokens of an answer of five tools. */
  readonly tokens: number;
  readonly ms: number;
}

/** How far rankings are looked at. */
export const RANKED = 100;
const ANSWERED = 5;
/** Reports and questions happen at one time, so that nothing decays between them. */
const NOW_MS = Date.UTC(2026, 0, 1);
const RETENTION_MS = 180 * 86_400_000;

/** How a finder is opened, by the name of `--via`. */
export const FINDERS: Readonly<Record<string, (set: RetrievalSet, root: string) => Promise<Finder>>> = {
  "in-process": inProcess,
  grpc: overGrpc,
};

export async function inProcess(set: RetrievalSet): Promise<Finder> {
  const index = await indexOf(documentsOf(set), {
    monotonic: () => performance.now(),
    pause: () => new Promise((resolve) => setImmediate(resolve)),
  });
  const labels = new Map(set.tools.map((tool) => [tool.id, Buffer.byteLength(`${tool.id}${tool.name}${tool.description ?? ""}`)]));
  let past = new NamespacePast("eval", RETENTION_MS);
  let reported = 0;
  return {
    async find(query) {
      const began = performance.now();
      const { ranked: found, weak } = candidatesFor(index, { intent: intentOf(query), nowMs: NOW_MS, memory: past.memory });
      const { factorOf } = past.priority(NOW_MS, []);
      const ranked = found.map((tool) => ({ ...tool, score: tool.score * factorOf(tool.tool.toolId) })).sort(byScore);
      const ms = performance.now() - began;
      const ids = ranked.slice(0, RANKED).map((candidate) => candidate.tool.toolId);
      const bytes = ids.slice(0, ANSWERED).reduce((sum, id) => sum + (labels.get(id) ?? 0), 0);
      return { ranked: ids, weak, tokens: Math.ceil(bytes / 4), ms };
    },
    async report(query, toolId) {
      const says = { kind: "confirm", intent: intentOf(query) } as const;
      const outcome = { success: true, latencyMs: undefined, after: [] };
      past.apply({ toolId, caller: "", atMs: NOW_MS, nonce: reported++, says, outcome }, NOW_MS);
    },
    async forget() {
      past = new NamespacePast("eval", RETENTION_MS);
    },
    async close() {},
  };
}
