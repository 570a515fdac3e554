/**
 * One partition's state machine, shared by the memory and the embedded store. Changes queue up; whatever waits when the
 * journal is free goes into the next batch together (group commit), and is seen only after the journal has it.
 */
import type { Blob, Clock, Logger, Random } from "../../catalogue/ports.js";
import { Fault, storeUnavailable } from "../../domain/fault.js";
import type { Window } from "../prepare.js";
import { dropExpired } from "./beside.js";
import type { Row, Tables } from "./tables.js";
import { applyRows, Draft, logState } from "./tables.js";

/** Where a partition's rows are kept. */
export interface Journal {
  /** Keeps all rows or none; `synced` also against a loss of power. Throws a Fault when it cannot. */
  write(rows: readonly Row[], synced: boolean): Promise<void>;
  blob(key: string): Promise<Blob | undefined>;
  /** What is really kept. Asked after a failed write, whose rows may or may not have been kept. */
  load(): Promise<Tables>;
}

export interface EngineParts {
  readonly partition: number;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly random: Random;
  readonly window: Window;
  readonly logger: Logger;
}

interface Waiting {
  readonly synced: boolean;
  /** Decides on the draft; the answer is given once the journal has the draft. */
  decide(draft: Draft, nowMs: number): () => void;
  fail(error: unknown): void;
}

/** Expired notes and tombstones are forgotten this often. */
const HOUSEKEEPING_MS = 60_000;

export class PartitionEngine {
  private queue: Waiting[] = [];
  private writing: Promise<void> | undefined;
  private mustReload = false;
  private nextHousekeepingMs = 0;
  private readonly listeners = new Set<() => void>();

  constructor(
    readonly parts: EngineParts,
    private tables: Tables,
  ) {}

  /** What the journal has. Not to be written to. */
  get state(): Tables {
    return this.tables;
  }

  now(): number {
    return this.parts.clock.now();
  }

  /** Queues a change; resolves with the decision's answer when it is kept. */
  change<R>(synced: boolean, decide: (draft: Draft, nowMs: number) => R): Promise<R> {
    return new Promise<R>((resolve, reject) => {
      this.queue.push({
        synced,
        decide: (draft, nowMs) => {
          const answer = decide(draft, nowMs);
          return () => resolve(answer);
        },
        fail: reject,
      });
      this.writing ??= this.drain();
    });
  }

  /** Calls back after each new revision, until the returned function is called. */
  onRevision(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Resolves when everything queued so far was written or refused. */
  async idle(): Promise<void> {
    await this.writing;
  }

  private async drain(): Promise<void> {
    while (this.queue.length > 0) {
      const batch = this.queue;
      this.queue = [];
      try {
        await this.writeBatch(batch);
      } catch (error) {
        for (const waiting of batch) waiting.fail(error);
      }
    }
    this.writing = undefined;
  }

  private async writeBatch(batch: readonly Waiting[]): Promise<void> {
    const { journal, logger, partition } = this.parts;
    const before = logState(this.tables).head;
    if (this.mustReload) {
      this.tables = await journal.load();
      this.mustReload = false;
      logger.info(
        { partition, revision: logState(this.tables).head.revision },
        "the store was read again after a failed write",
      );
    }
    const { rows, answers, synced } = this.decideBatch(batch);
    if (rows.length > 0) {
      try {
        await journal.write(rows, synced);
      } catch (error) {
        this.mustReload = true;
        logger.error({ partition, err: error }, "the store could not write");
        throw error instanceof Fault ? error : storeUnavailable(error);
      }
      applyRows(this.tables, rows);
    }
    if (logState(this.tables).head.chain !== before.chain) for (const listener of [...this.listeners]) listener();
    for (const answer of answers) answer();
  }

  private decideBatch(batch: readonly Waiting[]): { rows: Row[]; answers: (() => void)[]; synced: boolean } {
    const draft = new Draft(this.tables);
    const nowMs = this.now();
    const answers: (() => void)[] = [];
    for (const waiting of batch) answers.push(waiting.decide(draft, nowMs));
    if (nowMs >= this.nextHousekeepingMs) {
      dropExpired(draft, nowMs);
      this.nextHousekeepingMs = nowMs + HOUSEKEEPING_MS;
    }
    return { rows: draft.rows(), answers, synced: batch.some((w) => w.synced) };
  }
}
