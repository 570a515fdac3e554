import { type Breaker, type BreakerRules, CLOSED, stepBreaker } from "../../domain/health/breaker.js";
import type { GateClock } from "../ports.js";
import type { DenseObserver, Embedder } from "./embedder.js";
import { quantise } from "./quantised.js";

export type Asked =
  | { readonly kind: "vector"; readonly vector: Int8Array }
  | { readonly kind: "late" }
  | { readonly kind: "failed" };

export interface AskedDeps {
  readonly embedder: Embedder;
  readonly clock: Pick<GateClock, "monotonic" | "sleep">;
  /** 0 ≤ draw < 1, for the jitter of pauses. */
  readonly random: () => number;
  readonly observer: DenseObserver;
  /** How long an answer may wait for the vector of its intent, ms. */
  readonly budgetMs: number;
}

/** Three failures in a row, and it is left alone for 5 s to 5 min; one good answer closes it again. */
const RULES: BreakerRules = { fall: 3, rise: 1, trialMs: 10_000, edgeMs: 1_000, startMs: 5_000 };
/** An answer that comes later than its question still counts for the next one; after this it counts as a failure. */
const GIVE_UP_MS = 10_000;
/** Intents that are asked about side by side; an embedder with more to do than this answers none of them in time. */
const AT_ONCE = 64;
/** A vector of 1,536 dimensions takes as many bytes. */
const KEPT = 4_096;

/** Vectors of intents: the last few thousand are kept, and an embedder that fails or hangs costs an answer nothing. */
export class AskedVectors {
  private readonly known = new Map<string, Int8Array>();
  private readonly underWay = new Map<string, Promise<Asked>>();
  private breaker: Breaker = CLOSED;

  constructor(private readonly deps: AskedDeps) {}

  /** The vector of a text of so many dimensions, as far as it can be had in time. Never rejects. */
  async vectorOf(text: string, dimensions: number, deadlineMs: number | undefined): Promise<Asked> {
    const known = this.known.get(text);
    if (known?.length === dimensions) {
      this.keep(text, known);
      return { kind: "vector", vector: known };
    }
    const underWay = this.underWay.get(text);
    if (!underWay && this.underWay.size >= AT_ONCE) return { kind: "late" };
    const asked = underWay ?? this.request(text, dimensions);
    if (!asked) return { kind: "failed" };
    const { clock, budgetMs, observer } = this.deps;
    const done = new AbortController();
    const late = clock.sleep(Math.min(budgetMs, deadlineMs ?? budgetMs), done.signal).then((): Asked => ({ kind: "late" }));
    const first = await Promise.race([asked, late]);
    done.abort();
    if (first.kind === "late") observer.embedded("intent", "late");
    return first;
  }

  /** Undefined while the embedder is left alone. */
  private request(text: string, dimensions: number): Promise<Asked> | undefined {
    this.step({ kind: "tick" });
    const { breaker } = this;
    if (breaker.kind === "open") return undefined;
    // A half-open breaker has one trial, which is the request that is under way.
    if (breaker.kind === "half-open" && this.underWay.size > 0) return undefined;
    const asked = this.embed(text, dimensions).finally(() => this.underWay.delete(text));
    this.underWay.set(text, asked);
    return asked;
  }

  private async embed(text: string, dimensions: number): Promise<Asked> {
    const { embedder, clock, observer } = this.deps;
    const generation = this.breaker.kind === "half-open" ? this.breaker.generation : undefined;
    const ended = new AbortController();
    const timer = new AbortController();
    void clock.sleep(GIVE_UP_MS, timer.signal).then(() => ended.abort(new Error(`no answer within ${GIVE_UP_MS} ms`)));
    try {
      const vectors = await embedder.embed([text], ended.signal);
      const made = vectors.length === 1 ? quantise(vectors[0] as ArrayLike<number>, dimensions) : undefined;
      if (!made?.ok) throw new Error(made ? `the vector of an intent is none: ${made.reason}` : `${vectors.length} vectors came for one text`);
      this.keep(text, made.vector);
      this.step(generation === undefined ? { kind: "success" } : { kind: "trial-success", generation });
      observer.embedded("intent", "ok");
      return { kind: "vector", vector: made.vector };
    } catch (error) {
      this.step(generation === undefined ? { kind: "failure" } : { kind: "trial-failure", generation });
      observer.embedded("intent", "failed");
      observer.onError(error, { namespace: "", what: "an intent" });
      return { kind: "failed" };
    } finally {
      timer.abort();
    }
  }

  private step(event: Parameters<typeof stepBreaker>[1]): void {
    const { clock, random } = this.deps;
    this.breaker = stepBreaker(this.breaker, event, RULES, clock.monotonic(), random());
  }

  private keep(text: string, vector: Int8Array): void {
    this.known.delete(text);
    this.known.set(text, vector);
    if (this.known.size <= KEPT) return;
    for (const oldest of this.known.keys()) {
      this.known.delete(oldest);
      break;
    }
  }
}
