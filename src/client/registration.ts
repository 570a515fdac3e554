import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { LIMITS } from "../domain/limits.js";
import type { DeclaredToolSchema, RegisterResponse } from "../gen/toolcrib/v1/registry_service_pb.js";
import { RenewResult_State as Renewed, ToolResult_Outcome as Outcome } from "../gen/toolcrib/v1/registry_service_pb.js";
import { Transport } from "../gen/toolcrib/v1/server_pb.js";
import type { HeldLease, LeaseHolder, RegistryAgent } from "./agent.js";
import type { EventSink } from "./events.js";
import { type ProbeOptions, probeSettings } from "./probe.js";
import { RegistryError } from "./registry-error.js";
import type { RandomSource } from "./timers.js";
import { backoffMs } from "./timers.js";

/** What one instance of a server says of itself. Shapes as in `RegisterRequest`. */
export interface Identity {
  readonly serverId: string;
  readonly instanceId: string;
  /** Empty: the registry never dials it, and every tool carries its definition. */
  readonly endpoint: string;
  readonly title: string;
  readonly tags: readonly string[];
  readonly ttlMs: number;
  /** The operator's credential that the registry shows when it dials the endpoint; empty for none. */
  readonly credential: string;
  /** The namespace may read the list though the server marks it as private to that credential. */
  readonly sharePrivate: boolean;
  /** Undefined: as the registry is set. */
  readonly probe: ProbeOptions | undefined;
}

/** Reads the full set of tools to declare, now. */
export type Offer = () => Promise<MessageInitShape<typeof DeclaredToolSchema>[]>;

/** Changes that come within this time are one Register. */
const COALESCE_MS = 50;
/** "Register again" is spread over this time, so that a registry that lost its store is not hit by all at once. */
const AGAIN_SPREAD_MS = 2_000;
/** Refusals that may end without a change on this side, and how often that is looked at. */
const OTHERS_DECIDE: ReadonlySet<string> = new Set(["UNAUTHENTICATED", "FORBIDDEN", "NOT_OWNER", "UNKNOWN_CREDENTIAL"]);
const ASK_AGAIN_MS = 30_000;
const DEREGISTER_TIMEOUT_MS = 1_000;

type Phase = "open" | "stopped" | "closed";

/**
 * Keeps one instance of a server registered: registers, again when its tools change or the registry asks, and holds the
 * lease that the agent renews. Trouble becomes an event, never an exception.
 */
export class Registration implements LeaseHolder {
  readonly identity: Identity;
  readonly #agent: RegistryAgent;
  readonly #offer: Offer;
  readonly #emit: EventSink;
  readonly #random: RandomSource;
  readonly #onClose: () => void;
  #phase: Phase = "open";
  #lease: HeldLease | undefined;
  #superseded = false;
  /** Renewals do not reach the registry; told once. */
  #silent = false;
  #failures = 0;
  /** The refusal that was told last, so that it is told once. */
  #refusal = "";
  #pending: (() => void) | undefined;
  #attempt: Promise<void> | undefined;
  #changedMeanwhile = false;
  #closing: Promise<void> | undefined;

  constructor(
    agent: RegistryAgent,
    identity: Identity,
    offer: Offer,
    emit: EventSink,
    random: RandomSource,
    onClose: () => void = () => undefined,
  ) {
    this.#agent = agent;
    this.identity = identity;
    this.#offer = offer;
    this.#emit = emit;
    this.#random = random;
    this.#onClose = onClose;
    agent.join(this);
    // Not at once: a caller that adds its tools right after this line is still part of the first Register.
    this.#schedule(0);
  }

  /** The lease while there is one. */
  get leaseId(): string | undefined {
    return this.#lease?.leaseId;
  }

  /** The tools changed: register again soon, once for a burst. */
  changed(): void {
    if (this.#phase !== "open") return;
    if (this.#attempt) this.#changedMeanwhile = true;
    else this.#schedule(COALESCE_MS);
  }

  /** Ends the lease within a second at most; the second call waits for the first. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  held(): HeldLease | undefined {
    return this.#phase === "open" ? this.#lease : undefined;
  }

  missed(error: Error, delayMs: number): void {
    if (this.#phase !== "open" || this.#silent) return;
    this.#silent = true;
    this.#emit({ type: "retrying", serverId: this.identity.serverId, error, delayMs });
  }

  renewed(lease: HeldLease, state: Renewed, renewAfterMs: number): void {
    // A Register that finished while this renewal was under way knows better.
    if (this.#phase !== "open" || this.#lease?.leaseId !== lease.leaseId) return;
    if (this.#silent && state !== Renewed.UNKNOWN_LEASE) this.#emit({ type: "back", serverId: this.identity.serverId });
    this.#silent = false;
    if (state === Renewed.DEREGISTERED) return this.#stop();
    const dueAt = this.#agent.timers.now() + (renewAfterMs || lease.ttlMs / 3);
    this.#lease = { ...this.#lease, dueAt };
    if (state === Renewed.SUPERSEDED && !this.#superseded) {
      this.#superseded = true;
      this.#emit({ type: "superseded", serverId: this.identity.serverId });
    }
    if (state === Renewed.OK) this.#superseded = false;
    if (state === Renewed.REGISTER_AGAIN) this.#again("asked");
    if (state === Renewed.UNKNOWN_LEASE) {
      this.#lease = undefined;
      this.#again("unknown-lease");
    }
  }

  #again(cause: "asked" | "unknown-lease"): void {
    this.#emit({ type: "again", serverId: this.identity.serverId, cause });
    const spread = Math.min(AGAIN_SPREAD_MS, this.identity.ttlMs / 6);
    if (this.#attempt) this.#changedMeanwhile = true;
    else this.#schedule(Math.round(this.#random() * spread));
  }

  #stop(): void {
    this.#phase = "stopped";
    this.#lease = undefined;
    this.#pending?.();
    this.#agent.leave(this);
    this.#emit({ type: "deregistered", serverId: this.identity.serverId });
  }

  /** An attempt that already waits is not put off: a steady stream of changes must not postpone it for ever. */
  #schedule(ms: number): void {
    if (this.#pending || this.#phase !== "open") return;
    const cancel = this.#agent.timers.after(ms, () => {
      this.#pending = undefined;
      this.#attempt = this.#tryOnce().finally(() => {
        this.#attempt = undefined;
        if (this.#changedMeanwhile) this.#schedule(COALESCE_MS);
      });
    });
    this.#pending = () => {
      this.#pending = undefined;
      cancel();
    };
  }

  async #tryOnce(): Promise<void> {
    this.#changedMeanwhile = false;
    try {
      const tools = await this.#offer();
      const answer = await this.#agent.connection.register(this.#request(tools));
      this.#failures = 0;
      this.#registered(answer);
    } catch (error) {
      this.#failed(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #request(
    tools: MessageInitShape<typeof DeclaredToolSchema>[],
  ): Parameters<RegistryAgent["connection"]["register"]>[0] {
    const { serverId, instanceId, endpoint, title, tags, ttlMs, credential, sharePrivate, probe } = this.identity;
    return {
      namespace: this.#agent.namespace,
      serverId,
      instanceId,
      endpoint,
      transport: Transport.STREAMABLE_HTTP,
      title,
      tags: [...tags],
      credential,
      sharePrivate,
      ...(probe && { probe: probeSettings(probe) }),
      retention: { case: "leaseTtl", value: durationFromMs(ttlMs) },
      offer: { case: "declared", value: { tools } },
      // The set comes from the server itself: an empty one is no mistake.
      allowEmpty: true,
    };
  }

  #registered(answer: RegisterResponse): void {
    this.#refusal = "";
    if (answer.lease) {
      const ttlMs = answer.lease.ttl ? durationMs(answer.lease.ttl) : this.identity.ttlMs;
      const renewAfter = answer.lease.renewAfter ? durationMs(answer.lease.renewAfter) : ttlMs / 3;
      const dueAt = this.#agent.timers.now() + renewAfter;
      this.#lease = { leaseId: answer.lease.leaseId, setDigest: answer.setDigest, ttlMs, dueAt };
    }
    this.#superseded = false;
    if (this.#phase !== "open") return;
    this.#agent.reschedule();
    const rejected = answer.tools.filter((tool) => tool.outcome === Outcome.REJECTED);
    this.#emit({
      type: "registered",
      serverId: this.identity.serverId,
      revision: answer.revision,
      leaseId: answer.lease?.leaseId ?? "",
      listed: answer.tools.length - rejected.length,
      rejected: rejected.map(({ name, reasons }) => ({ name, reasons })),
    });
  }

  #failed(error: Error): void {
    if (this.#phase !== "open") return;
    const { serverId } = this.identity;
    if (error instanceof RegistryError && !error.transient) return this.#refused(error);
    this.#failures++;
    const atLeastMs = error instanceof RegistryError ? (error.retryAfterMs ?? 0) : 0;
    const delayMs = backoffMs(this.#failures, this.#random, Math.min(atLeastMs, LIMITS.leaseMaxMs));
    this.#emit({ type: "retrying", serverId, error, delayMs });
    this.#schedule(delayMs);
  }

  #refused(error: RegistryError): void {
    // Rights and owners change at the registry, and tokens in files: nobody here would tell us.
    if (OTHERS_DECIDE.has(error.reason)) this.#schedule(ASK_AGAIN_MS);
    if (error.message === this.#refusal) return;
    this.#refusal = error.message;
    this.#emit({ type: "refused", serverId: this.identity.serverId, error });
  }

  async #close(): Promise<void> {
    if (this.#phase === "stopped") return this.#onClose();
    this.#phase = "closed";
    this.#pending?.();
    const removed = await this.#deregister();
    this.#agent.leave(this);
    this.#onClose();
    this.#emit({ type: "closed", serverId: this.identity.serverId, removed });
  }

  async #deregister(): Promise<boolean> {
    const deadline = Date.now() + DEREGISTER_TIMEOUT_MS;
    // A Register under way may still be given a lease, which nobody would end.
    if (this.#attempt) await settledWithin(this.#attempt, DEREGISTER_TIMEOUT_MS / 2);
    if (!this.#lease) return false;
    const target = { case: "leaseId" as const, value: this.#lease.leaseId };
    try {
      const request = { namespace: this.#agent.namespace, target };
      await this.#agent.connection.deregister(request, { timeoutMs: Math.max(100, deadline - Date.now()) });
      return true;
    } catch {
      return false; // The lease ends by itself; the event says that the registry did not hear.
    }
  }
}

function settledWithin(promise: Promise<unknown>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    void promise.finally(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
