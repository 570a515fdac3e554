import { randomInt } from "node:crypto";
import { Fault } from "../domain/fault.js";

/** Callers come back after a random time up to this when the replica drains, so that they do not all come at once. */
const DRAIN_RETRY_MS = 2_000;

/** Streams that stay open until somebody ends them, so that a shutdown can. */
export class OpenStreams {
  private readonly enders = new Set<(fault: Fault) => void>();

  /** Answers what forgets it again. */
  add(end: (fault: Fault) => void): () => void {
    this.enders.add(end);
    return () => this.enders.delete(end);
  }

  endAll(): void {
    for (const end of [...this.enders]) end(draining());
    this.enders.clear();
  }
}

export function draining(): Fault {
  return new Fault("DRAINING", "this replica is stopping: go on at another one, or at this one when it is back", {
    retryAfterMs: randomInt(100, DRAIN_RETRY_MS),
  });
}
