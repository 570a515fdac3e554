/** Servers, listings and an upstream made of plain values, for tests that hold time still. */
import { DEFAULT_PROBING } from "../../src/domain/health/probing.js";
import { BREAKER_CLOSED } from "../../src/domain/server.js";
import type { Blob, Blobs, Logger, Notes } from "../../src/catalogue/ports.js";
import type { Dial, Listing, Upstream } from "../../src/catalogue/upstream-port.js";
import { UpstreamError } from "../../src/catalogue/upstream-port.js";
import { readDefinition } from "../../src/domain/definition.js";
import { serverKey } from "../../src/domain/ids.js";
import { deriveLabel } from "../../src/domain/label.js";
import type { Instance, ServerHeader, ServerRecord, Tool } from "../../src/domain/server.js";
import { EMPTY_STUB } from "../../src/domain/stub.js";
import type { Directory } from "../../src/schemas/ports.js";
import { stubCodec } from "../../src/store/codec/stub.js";

export const SILENT: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

export const NAMESPACE = "default";
export const ENDPOINT = "http://127.0.0.1:9/mcp";

/** A definition as a server would send it. `note` makes it differ; `padding` makes it large. */
export function definition(name: string, note = "does it", padding = 0): Uint8Array {
  const description = note + "x".repeat(padding);
  const tool = { name, description, inputSchema: { type: "object", properties: { text: { type: "string" } } } };
  return new TextEncoder().encode(JSON.stringify(tool));
}

export function digestOfDefinition(bytes: Uint8Array): string {
  return listingOf([bytes]).tools[0]?.digest ?? "";
}

/** The definitions must be in name order. */
export function listingOf(definitions: readonly Uint8Array[], facts: Partial<Listing> = {}): Listing {
  const tools = definitions.map((bytes) => {
    const read = readDefinition(bytes);
    if (!read.ok) throw new Error(`not a definition: ${read.reasons.join("; ")}`);
    const { name, digest } = read.definition;
    return { name, definition: bytes, digest, label: deriveLabel(read.definition) };
  });
  return {
    tools,
    rejected: [],
    era: "modern",
    protocolVersion: "2026-07-28",
    ttlMs: undefined,
    cacheScope: undefined,
    listChanged: false,
    receivedAtMs: 1_790_000_000_000,
    ...facts,
  };
}

export function toolOf(
  name: string,
  facts: { digest?: string; declared?: boolean; substitutes?: readonly string[]; serverId?: string } = {},
): Tool {
  const { digest = "", substitutes = [], serverId = "srv" } = facts;
  const declared = facts.declared ?? digest !== "";
  return stubCodec.encode({ ...EMPTY_STUB, serverId, name, digest, substitutes }, declared);
}

export function instanceOf(facts: Partial<Instance> = {}): Instance {
  return {
    instanceId: "instance-1",
    leaseId: "",
    endpoint: ENDPOINT,
    transport: "streamable-http",
    setDigest: "",
    ttlMs: 0,
    registeredAtMs: 1,
    revision: 1,
    requestId: "",
    introspect: false,
    credential: "",
    sharePrivate: false,
    availability: "available",
    probing: DEFAULT_PROBING,
    ...facts,
  };
}

export function recordOf(tools: readonly Tool[], facts: Partial<ServerHeader> = {}, revision = 1): ServerRecord {
  const header: ServerHeader = {
    namespace: NAMESPACE,
    serverId: "srv",
    title: "",
    tags: [],
    source: "declared",
    retention: "standing",
    instances: [instanceOf()],
    availability: "available",
    breaker: BREAKER_CLOSED,
    conditions: [],
    rejected: [],
    rejectedCount: 0,
    setDigest: "",
    protocolVersion: "",
    listedAtMs: 0,
    pending: false,
    owner: "",
    ...facts,
  };
  return { revision, header, tools };
}

/** A catalogue that a test writes to by hand. */
export class HandDirectory implements Directory {
  readonly #records = new Map<string, ServerRecord>();
  isStale = false;

  set(record: ServerRecord): void {
    this.#records.set(serverKey(record.header.namespace, record.header.serverId), record);
  }

  remove(namespace: string, serverId: string): void {
    this.#records.delete(serverKey(namespace, serverId));
  }

  server(namespace: string, serverId: string): ServerRecord | undefined {
    return this.#records.get(serverKey(namespace, serverId));
  }

  holderOf(namespace: string, digest: string): { record: ServerRecord; toolName: string } | undefined {
    for (const record of this.#records.values()) {
      const tool = record.header.namespace === namespace && record.tools.find((t) => t.digest === digest);
      if (tool) return { record, toolName: tool.name };
    }
    return undefined;
  }

  stale(): boolean {
    return this.isStale;
  }
}

type Answer = Listing | Error | "silence" | Promise<Listing>;

/** Until the caller gives up. */
function silence(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const giveUp = (): void => reject(new UpstreamError("timeout", "given up"));
    if (signal.aborted) giveUp();
    signal.addEventListener("abort", giveUp);
  });
}

/** Answers listings as the test says, and hands over the notices of its subscriptions. */
export class HandUpstream implements Upstream {
  /** Endpoints asked for their list, in order. */
  readonly asked: string[] = [];
  readonly subscribed: { endpoint: string; notice: () => void; end: (err: Error) => void; signal: AbortSignal }[] = [];
  answer: (endpoint: string) => Answer = () => "silence";
  /** Endpoints that were probed, in order. */
  readonly probed: string[] = [];
  /** How a probe ends: undefined is an answer. */
  look: (endpoint: string) => UpstreamError | "silence" | undefined = () => undefined;

  async list(endpoint: string, signal: AbortSignal): Promise<Listing> {
    this.asked.push(endpoint);
    const answer = await this.answer(endpoint);
    if (answer instanceof Error) throw answer;
    return answer === "silence" ? silence(signal) : answer;
  }

  async probe({ endpoint }: Dial, signal: AbortSignal): Promise<void> {
    this.probed.push(endpoint);
    const answer = this.look(endpoint);
    if (answer === "silence") return silence(signal);
    if (answer) throw answer;
  }

  subscribe(endpoint: string, notice: () => void, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      this.subscribed.push({ endpoint, notice, end: reject, signal });
      signal.addEventListener("abort", () => resolve());
    });
  }

  credentialRefusal(): string | undefined {
    return undefined;
  }

  refusal(): string | undefined {
    return undefined;
  }
}

/** Counts calls, and fails them while `away`. */
export class CountedBlobs implements Blobs {
  calls = { put: 0, get: 0 };
  away = false;

  constructor(private readonly inner: Blobs) {}

  #count(call: "put" | "get"): void {
    this.calls[call]++;
    if (this.away) throw new Error("the store is away");
  }

  async put(namespace: string, blobs: readonly Blob[]): Promise<void> {
    this.#count("put");
    return this.inner.put(namespace, blobs);
  }

  async get(namespace: string, digests: readonly string[]): Promise<readonly (Blob | undefined)[]> {
    this.#count("get");
    return this.inner.get(namespace, digests);
  }

  touch(namespace: string, digests: readonly string[]): Promise<void> {
    return this.inner.touch(namespace, digests);
  }

  sweep(keepMs: number): Promise<number> {
    return this.inner.sweep(keepMs);
  }
}

/** Fails every call while `away`. */
export class FailingNotes implements Notes {
  away = false;

  constructor(private readonly inner: Notes) {}

  async get(key: string) {
    this.#check();
    return this.inner.get(key);
  }

  async put(key: string, bytes: Uint8Array, ttlMs: number, expect?: number) {
    this.#check();
    return this.inner.put(key, bytes, ttlMs, expect);
  }

  async remove(key: string, expect: number) {
    this.#check();
    return this.inner.remove(key, expect);
  }

  #check(): void {
    if (this.away) throw new Error("the store is away");
  }
}
