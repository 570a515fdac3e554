/** A loader over a follower's state that a test sets, a registry that answers what it holds, and timers that stand still. */
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { LoaderTrouble } from "../../src/client/loader/checked-store.js";
import type { DefinitionStore } from "../../src/client/loader/definition-store.js";
import type { Labels } from "../../src/client/loader/load.js";
import { Loader } from "../../src/client/loader/loader.js";
import type { FollowerEvents, FollowerState } from "../../src/client/follower/state.js";
import { RegistryError } from "../../src/client/registry-error.js";
import { definitionDigest } from "../../src/domain/digest.js";
import { BatchGetFullSchemasResponseSchema, EventSchema, EventType, Freshness } from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import type { Stub } from "../../src/gen/toolcrib/v1/stub_pb.js";
import { FakeClock } from "./fake-clock.js";
import { stub, timersOf } from "./scripted-watch.js";

export interface Tool {
  readonly bytes: Uint8Array;
  readonly digest: string;
}

export function definition(name: string, description = `Does ${name}`, more: object = {}): Tool {
  const text = JSON.stringify({ name, description, inputSchema: { type: "object", properties: { a: { type: "string" } }, required: ["a"] }, ...more });
  return { bytes: Buffer.from(text), digest: definitionDigest(text) };
}

/** How the registry answers for one tool. */
type Answer =
  | { readonly kind: "definition"; readonly tool: Tool; readonly freshness?: Freshness }
  | { readonly kind: "error"; readonly reason: string; readonly substitutes?: readonly string[]; readonly retryAfterMs?: number };

export function loaderBench(options: { store?: DefinitionStore; memoryBytes?: number; deadlineMs?: number } = {}) {
  const clock = new FakeClock();
  const timers = timersOf(clock);
  const labels = new HandLabels();
  const troubles: LoaderTrouble[] = [];
  const asked: { readonly toolIds: readonly string[]; readonly timeoutMs: number; readonly minRevision: string }[] = [];
  const registry = {
    tools: new Map<string, Answer>(),
    /** Every call fails with it. */
    error: undefined as RegistryError | undefined,
    /** Milliseconds until a call is answered; like gRPC it is cut off by its timeout. */
    delayMs: 0,
    /** Milliseconds until a tool's part of an answer is there: a batch answers after its slowest, and at 80 % of its time at the latest. */
    slow: new Map<string, number>(),
  };
  const loader = new Loader({
    timers,
    labels,
    tell: (trouble) => troubles.push(trouble),
    ask: async ({ toolIds, minRevision }, timeoutMs) => {
      asked.push({ toolIds, timeoutMs, minRevision });
      const patience = timeoutMs * 0.8;
      const slowest = Math.max(0, ...toolIds.map((id) => Math.min(patience, registry.slow.get(id) ?? 0)));
      const takes = registry.delayMs + slowest;
      const error = registry.error;
      const answers = toolIds.map((id) => resultOf(id, (registry.slow.get(id) ?? 0) > patience ? PENDING : registry.tools.get(id)));
      if (takes > 0) await clock.sleep(Math.min(takes, timeoutMs));
      if (takes > timeoutMs) throw new RegistryError("the registry did not answer in time", { code: "DEADLINE_EXCEEDED" });
      if (error) throw error;
      return create(BatchGetFullSchemasResponseSchema, { results: answers });
    },
    ...options,
  });
  /** Registers it at the registry, and where the follower is told, there. */
  const put = (toolId: string, tool: Tool, label: Parameters<typeof stub>[1] = {}): void => {
    registry.tools.set(toolId, { kind: "definition", tool });
    labels.put(stub(toolId, { digest: tool.digest, ...label }));
  };
  return { clock, labels, registry, asked, troubles, loader, put };
}

const PENDING: Answer = { kind: "error", reason: "LOAD_PENDING", retryAfterMs: 100 };

function resultOf(toolId: string, answer: Answer | undefined) {
  if (answer?.kind === "definition") {
    const { tool, freshness = Freshness.CACHED } = answer;
    return { toolId, result: { case: "schema" as const, value: { toolId, definition: tool.bytes, digest: tool.digest, freshness } } };
  }
  const { reason, substitutes = [], retryAfterMs } = answer ?? { reason: "NOT_FOUND" };
  const retryAfter = retryAfterMs === undefined ? {} : { retryAfter: durationFromMs(retryAfterMs) };
  return { toolId, result: { case: "error" as const, value: { reason, message: `${toolId}: ${reason}`, substitutes: [...substitutes], ...retryAfter } } };
}

export class HandLabels implements Labels {
  state: FollowerState = { kind: "live", revision: "r1", at: 0 };
  readonly #stubs = new Map<string, Stub>();
  readonly #listeners = new Set<(change: FollowerEvents["change"]) => void>();

  stub(toolId: string): Stub | undefined {
    return this.#stubs.get(toolId);
  }

  stubs(): readonly Stub[] {
    return [...this.#stubs.values()];
  }

  on(name: keyof FollowerEvents, listener: (event: never) => void): () => void {
    if (name !== "change") return () => undefined;
    this.#listeners.add(listener as never);
    return () => void this.#listeners.delete(listener as never);
  }

  /** As the follower does: the catalogue first, then who listens. */
  put(after: Stub): void {
    const before = this.#stubs.get(after.toolId);
    this.#stubs.set(after.toolId, after);
    const invalidated = before && before.digest !== "" && before.digest !== after.digest;
    const type = !before ? EventType.REGISTERED : invalidated ? EventType.SCHEMA_INVALIDATED : EventType.UPDATED;
    this.#tell(type, after.toolId, before, after);
  }

  remove(toolId: string): void {
    const before = this.#stubs.get(toolId);
    this.#stubs.delete(toolId);
    this.#tell(EventType.DEREGISTERED, toolId, before, undefined);
  }

  #tell(type: EventType, toolId: string, before: Stub | undefined, after: Stub | undefined): void {
    const event = create(EventSchema, { type, toolId, oldDigest: before?.digest ?? "", newDigest: after?.digest ?? "", ...(after && { stub: after }) });
    for (const listener of this.#listeners) listener({ source: "registry", revision: "r2", events: [event] });
  }
}
