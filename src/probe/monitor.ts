/** The health of one server, kept by the holder of its claim: every instance looked at, and published what they add up to. */
import type { LiveHealth } from "../catalogue/api.js";
import { dialOf } from "../catalogue/upstream-port.js";
import type { HealthWriter } from "../catalogue/writer-port.js";
import { flappingFrom, type InstanceHealth, isUp, UNKNOWN_HEALTH } from "../domain/health/instance.js";
import { type ProbeRules, rulesOf } from "../domain/health/probing.js";
import { type Looked, sightOf } from "../domain/health/sight.js";
import { isGood, type Verdict } from "../domain/health/verdict.js";
import { serverKey } from "../domain/ids.js";
import type { Condition, Instance, ServerRecord } from "../domain/server.js";
import type { Panic } from "./panic.js";
import type { Records, ServerName } from "./ports.js";
import { Watched, type WatchedDeps } from "./watched.js";

export interface MonitorDeps extends Omit<WatchedDeps, "mayFall" | "stillHeld" | "onHealth"> {
  readonly records: Records;
  readonly writer: HealthWriter;
  readonly panic: Panic;
  readonly rules: ProbeRules;
}

interface Kept {
  readonly watched: Watched;
  readonly stop: AbortController;
}

export class Monitor {
  readonly #kept = new Map<string, Kept>();
  /** Instances that are never probed, and so count as there. */
  #unprobed: readonly string[] = [];
  #run: { readonly signal: AbortSignal; readonly stillHeld: () => boolean } | undefined;
  #wasUp = true;
  #wasIsolated = false;
  #waiting: (() => void)[] = [];

  constructor(
    private readonly deps: MonitorDeps,
    private readonly name: ServerName,
    /** The server has come back. */
    private readonly onUp: () => void,
  ) {}

  /** Looks after all instances until the claim is lost. */
  async run(signal: AbortSignal, stillHeld: () => boolean): Promise<void> {
    this.#run = { signal, stillHeld };
    const undoubt = this.deps.panic.onDoubt((sinceMs) => this.#lookSince(sinceMs));
    this.sync();
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    undoubt();
    this.#run = undefined;
    for (const key of [...this.#kept.keys()]) this.#drop(key);
    this.deps.panic.note(this.#key, undefined);
    this.#release();
  }

  /** The server's record changed: instances may have come, gone or moved. */
  sync(): void {
    if (!this.#run) return;
    const record = this.deps.records.server(this.name.namespace, this.name.serverId);
    const isolated = record?.header.breaker.kind === "isolated";
    const instances = record && !isolated ? record.header.instances : [];
    const probed = new Map(instances.filter((i) => i.endpoint !== "" && !i.probing.off).map((i) => [registrationOf(i), i]));
    this.#unprobed = instances.filter((i) => i.endpoint === "" || i.probing.off).map((i) => i.instanceId);
    for (const key of [...this.#kept.keys()]) if (!probed.has(key)) this.#drop(key);
    for (const [key, instance] of probed) if (!this.#kept.has(key) && record) this.#begin(key, instance, record);
    this.#wasIsolated = isolated;
    this.#noteForPanic();
    if (this.#mayBeDialled) this.#release();
  }

  /** A listing reached it, or did not. */
  heard(endpoint: string, verdict: Verdict): void {
    for (const { watched } of this.#kept.values()) if (watched.dial.endpoint === endpoint) watched.heard(verdict);
  }

  /** Resolves when the server may be dialled for something else than a trial, or when nobody looks after it any more. */
  async ready(signal: AbortSignal): Promise<void> {
    if (this.#mayBeDialled || !this.#run || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const go = (): void => {
        signal.removeEventListener("abort", go);
        resolve();
      };
      this.#waiting.push(go);
      signal.addEventListener("abort", go, { once: true });
    });
  }

  view(): LiveHealth {
    const { clock } = this.deps;
    const all = [...this.#kept.values()].map((k) => k.watched);
    const dueMs = Math.min(...all.map((w) => w.dueMs));
    return {
      halfOpen: all.length > 0 && all.every((w) => !isUp(w.health)) && all.some((w) => w.health.breaker.kind === "half-open"),
      nextProbeMs: Number.isFinite(dueMs) ? Math.round(clock.now() + Math.max(0, dueMs - clock.monotonic())) : undefined,
    };
  }

  get #key(): string {
    return serverKey(this.name.namespace, this.name.serverId);
  }

  get #up(): boolean {
    if (this.#unprobed.length > 0) return true;
    return [...this.#kept.values()].some((k) => isUp(k.watched.health));
  }

  /** Listing a server that was never seen is how it is first seen, and egress may have changed since it was barred. */
  get #mayBeDialled(): boolean {
    return this.#unprobed.length > 0 || [...this.#kept.values()].some((k) => k.watched.health.breaker.kind === "closed");
  }

  #begin(key: string, instance: Instance, record: ServerRecord): void {
    const run = this.#run;
    if (!run) return;
    const stop = new AbortController();
    const rules = rulesOf(instance.probing, this.deps.rules);
    const { source, breaker } = record.header;
    // The listing of an introspected server is its first look.
    const listedFirst = source === "introspected" && breaker.kind === "closed" && instance.availability === "available";
    const firstMs = listedFirst ? rules.intervalMs * this.deps.random.next() : 0;
    const start = { health: this.#seed(instance, record), firstMs };
    const deps: WatchedDeps = {
      ...this.deps,
      mayFall: (badSinceMs) => (this.#othersAnswerSince(badSinceMs) ? "fall" : this.deps.panic.mayFall(badSinceMs)),
      stillHeld: run.stillHeld,
      onHealth: () => this.#changed(),
    };
    const watched = new Watched(deps, instance.instanceId, dialOf(record.header.namespace, instance), rules, start);
    this.#kept.set(key, { watched, stop });
    void watched.run(AbortSignal.any([run.signal, stop.signal]));
  }

  /** A new holder goes on from what everybody knows; whoever was down is looked at once. */
  #seed(instance: Instance, record: ServerRecord): InstanceHealth {
    const { availability, breaker, conditions, pending } = record.header;
    const held = (type: Condition["type"]) => conditions.find((c) => c.type === type && c.status === "true");
    const met = !pending && !this.#wasIsolated && held("Reachable") !== undefined;
    const presumed = availability === "available";
    const untilMs = this.deps.clock.monotonic();
    const falls = held("Flapping") ? flappingFrom(untilMs) : [];
    if (instance.availability === "available" && breaker.kind !== "open") {
      const auth = held("AuthRequired");
      const wantsAuth = auth && { message: auth.message, listed: true };
      return { ...UNKNOWN_HEALTH, met, presumed, falls, wantsAuth };
    }
    const attempt = breaker.kind === "open" ? breaker.attempt : 1;
    // A resumed server, or one that registered anew, is up as soon as it answers.
    const rise = !this.#wasIsolated && instance.availability === "unavailable";
    const open = { kind: "open", untilMs, attempt, successes: 0 } as const;
    return { ...UNKNOWN_HEALTH, met: rise, presumed: false, falls, breaker: open };
  }

  #drop(key: string): void {
    this.#kept.get(key)?.stop.abort();
    this.#kept.delete(key);
  }

  /** One bad instance beside good ones is no sign that it is us who are cut off. */
  #othersAnswerSince(sinceMs: number): boolean {
    return [...this.#kept.values()].some(({ watched: { health, lookedMs } }) => {
      return lookedMs >= sinceMs && health.last !== undefined && isGood(health.last);
    });
  }

  #changed(): void {
    const { panic, writer, clock } = this.deps;
    const nowMs = clock.monotonic();
    this.#noteForPanic();
    const up = this.#up;
    if (this.#mayBeDialled) this.#release();
    if (up && !this.#wasUp) {
      this.deps.logger.info(this.#named(), "a server is up again");
      this.onUp();
    }
    if (!up && this.#wasUp) this.#logFall();
    this.#wasUp = up;
    const run = this.#run;
    if (panic.state || !run?.stillHeld()) return;
    const looked = this.#looked();
    if (looked.length === 0) return;
    const { open, ...sight } = sightOf(looked, nowMs);
    const { namespace, serverId } = this.name;
    const instances = [...this.#kept.keys()].join();
    writer.health(namespace, serverId, {
      ...sight,
      stillTrue: () => this.#run === run && run.stillHeld() && instances === [...this.#kept.keys()].join(),
      open: open && { untilMs: Math.round(clock.now() + Math.max(0, open.untilMs - nowMs)), attempt: open.attempt },
    });
  }

  /** As every line of the log names a server. */
  #named(): { readonly namespace: string; readonly server: string } {
    return { namespace: this.name.namespace, server: this.name.serverId };
  }

  #logFall(): void {
    const last = [...this.#kept.values()].at(-1)?.watched.health.last;
    const why = last && "message" in last ? { reason: last.reason, detail: last.message } : {};
    this.deps.logger.warn({ ...this.#named(), ...why }, "a server is down: its tools are unavailable until it answers again");
  }

  /** In the record's order: the newest registration last. */
  #looked(): Looked[] {
    const record = this.deps.records.server(this.name.namespace, this.name.serverId);
    return (record?.header.instances ?? []).flatMap((instance): Looked[] => {
      if (this.#unprobed.includes(instance.instanceId)) return [{ instanceId: instance.instanceId, health: undefined }];
      const kept = this.#kept.get(registrationOf(instance));
      return kept ? [{ instanceId: instance.instanceId, health: kept.watched.health }] : [];
    });
  }

  #noteForPanic(): void {
    const all = [...this.#kept.values()].map((k) => k.watched);
    // Whoever may not be dialled says nothing about the way to the others.
    const closed = all.filter(({ health: h }) => h.breaker.kind === "closed" && h.met && h.last?.kind !== "barred");
    const good = closed.filter((w) => w.health.badSinceMs === undefined);
    const bad = good.length === 0;
    // A good instance is a witness from when it was asked, not from when another one failed.
    const atMs = Math.max(...(bad ? closed : good).map((w) => w.lookedMs));
    this.deps.panic.note(this.#key, closed.length > 0 && Number.isFinite(atMs) ? { atMs, bad } : undefined);
  }

  #lookSince(sinceMs: number): void {
    for (const { watched } of this.#kept.values()) {
      if (watched.health.breaker.kind === "closed" && watched.lookedMs < sinceMs) watched.hurry();
    }
  }

  #release(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const go of waiting) go();
  }
}

/** A newer registration of the same instance is looked at anew. */
function registrationOf(instance: Instance): string {
  return `${instance.instanceId} ${instance.revision}`;
}
