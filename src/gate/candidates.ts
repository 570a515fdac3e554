import { type Candidate, fitting, fuse, type Signals } from "./fusion.js";
import type { Intent } from "./intent.js";
import type { LiveIndex } from "./live-index.js";
import type { IntentMemory } from "./memory.js";
import type { IndexedTool } from "./search.js";

/** Tools that are ranked by all signals, from the best by words alone. */
const POOL = 100;

export interface Ask {
  readonly intent: Intent;
  readonly nowMs: number;
  readonly memory?: IntentMemory | undefined;
  readonly dense?: ReadonlyMap<string, number> | undefined;
  readonly accept?: (tool: IndexedTool) => boolean;
  /** Tools that are candidates whatever words they have. */
  readonly sought?: Iterable<string> | undefined;
  /** Candidates wanted, at least; 100 if unsaid. */
  readonly pool?: number;
  readonly weigh?: Signals["weigh"];
}

export interface Candidates {
  /** Best first. */
  readonly ranked: readonly Candidate[];
  /** Nothing really fits. */
  readonly weak: boolean;
  /** Whether one of them really fits. */
  fits(candidate: Candidate): boolean;
}

/** Which tools fit an intent, by words, by past uses and by meaning where vectors are at hand. */
export function candidatesFor(index: LiveIndex, { intent, nowMs, memory, dense, accept, sought = [], pool = POOL, weigh }: Ask): Candidates {
  const remembered = memory?.recall(intent, nowMs);
  const also = [...sought, ...(remembered?.tools.keys() ?? []), ...(dense?.keys() ?? [])];
  const found = index.search(intent, { limit: pool, also, ...(accept ? { accept } : {}) });
  const ranked = fuse(found, { ...(remembered ? { memory: remembered } : {}), ...(dense ? { dense } : {}), ...(weigh ? { weigh } : {}) });
  const fits = fitting(found, remembered);
  return { ranked, weak: !ranked.some(fits), fits };
}
