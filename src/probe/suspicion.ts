/**
 * Whether to believe a list. Servers answer with an empty or a short list while they start, and taking that at its word
 * would tell every watcher that the tools are gone. Growth and change are believed at once.
 */

/** Askings, and the time from the first to the last of them, after which an empty list is believed. */
export const EMPTY_ASKINGS = 3;
export const EMPTY_SPAN_MS = 30_000;
/** Time after which a second asking makes a shrunken list believed. */
export const SHRUNK_SPAN_MS = 1_000;

export type Suspicion =
  | { readonly kind: "none" }
  | { readonly kind: "empty"; readonly sinceMs: number; readonly lastMs: number; readonly askings: number }
  | { readonly kind: "shrunk"; readonly sinceMs: number };

export const NO_SUSPICION: Suspicion = { kind: "none" };

export type Judgement =
  | { readonly kind: "believe" }
  | { readonly kind: "ask-again"; readonly afterMs: number; readonly suspicion: Suspicion };

/** Counts include rejected tools: a tool that turned malformed is still on the list. */
export interface Known {
  readonly tools: number;
  /** Never listed yet: an empty list of a new server is doubted too. */
  readonly pending: boolean;
}

/** `nowMs` is monotonic. An asking that comes too early counts for nothing and moves nothing. */
export function judge(known: Known, listedTools: number, before: Suspicion, nowMs: number): Judgement {
  if (listedTools === 0 && (known.tools > 0 || known.pending)) return judgeEmpty(before, nowMs);
  if (listedTools < known.tools) return judgeShrunk(before, nowMs);
  return { kind: "believe" };
}

function judgeEmpty(before: Suspicion, nowMs: number): Judgement {
  const spacingMs = EMPTY_SPAN_MS / (EMPTY_ASKINGS - 1);
  if (before.kind !== "empty") {
    return {
      kind: "ask-again",
      afterMs: spacingMs,
      suspicion: { kind: "empty", sinceMs: nowMs, lastMs: nowMs, askings: 1 },
    };
  }
  const early = before.lastMs + spacingMs - nowMs;
  if (early > 0) return { kind: "ask-again", afterMs: early, suspicion: before };
  const askings = before.askings + 1;
  if (askings >= EMPTY_ASKINGS) return { kind: "believe" };
  return { kind: "ask-again", afterMs: spacingMs, suspicion: { ...before, lastMs: nowMs, askings } };
}

function judgeShrunk(before: Suspicion, nowMs: number): Judgement {
  if (before.kind !== "shrunk") {
    return { kind: "ask-again", afterMs: SHRUNK_SPAN_MS, suspicion: { kind: "shrunk", sinceMs: nowMs } };
  }
  const early = before.sinceMs + SHRUNK_SPAN_MS - nowMs;
  return early > 0 ? { kind: "ask-again", afterMs: early, suspicion: before } : { kind: "believe" };
}
