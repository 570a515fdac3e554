/** One replica of the catalogue on a memory store and a clock that stands still. */
import { DEFAULT_PROBING } from "../../src/domain/health/probing.js";
import { fromBinary } from "@bufbuild/protobuf";
import type { RegisterInput, WatchHandle } from "../../src/catalogue/api.js";
import type { Store } from "../../src/catalogue/ports.js";
import { Registry, type RegistryOptions } from "../../src/catalogue/registry.js";
import { type Listing, type Upstream, UpstreamError } from "../../src/catalogue/upstream-port.js";
import type { SeenHealth } from "../../src/catalogue/writer-port.js";
import { readDefinition } from "../../src/domain/definition.js";
import type { Fault } from "../../src/domain/fault.js";
import { everything, type Filter } from "../../src/domain/filter.js";
import type { Sheddable } from "../../src/domain/overload.js";
import { compareText } from "../../src/domain/ids.js";
import { deriveLabel } from "../../src/domain/label.js";
import type { Availability } from "../../src/domain/server.js";
import { EMPTY_STUB } from "../../src/domain/stub.js";
import {
  type Event,
  EventType,
  GetStubsResponseSchema,
  WatchResponseSchema,
} from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import type { Stub } from "../../src/gen/toolcrib/v1/stub_pb.js";
import { createWatchCodec } from "../../src/rpc/watch-codec.js";
import { stubCodec } from "../../src/store/codec/stub.js";
import { MemoryStore } from "../../src/store/memory/memory-store.js";
import { FakeClock, SeededRandom } from "./fake-clock.js";
import { silentLogger } from "./upstream.js";

/** Endpoint → what it lists now; absent: it does not answer. */
export type Listings = Map<string, readonly object[]>;

export function listingOf(tools: readonly object[], receivedAtMs = 1): Listing {
  const listed = tools.map((tool) => {
    const read = readDefinition(Buffer.from(JSON.stringify(tool)));
    if (!read.ok) throw new Error(`a bad tool in a test: ${read.reasons.join("; ")}`);
    const { name, bytes, digest } = read.definition;
    return { name, definition: bytes, digest, label: deriveLabel(read.definition) };
  });
  return {
    tools: listed.sort((a, b) => compareText(a.name, b.name)),
    rejected: [],
    era: "legacy",
    protocolVersion: "2025-11-25",
    ttlMs: undefined,
    cacheScope: undefined,
    listChanged: true,
    receivedAtMs,
  };
}

export function tool(name: string, description = `${name} does something`): object {
  return { name, description, inputSchema: { type: "object", properties: { of: { type: "string" } } } };
}

function upstreamOf(listings: Listings): Upstream {
  return {
    async list(endpoint) {
      const tools = listings.get(endpoint);
      if (!tools) throw new UpstreamError("connect", `${endpoint} does not answer`);
      return listingOf(tools);
    },
    async probe({ endpoint }) {
      if (!listings.has(endpoint)) throw new UpstreamError("connect", `${endpoint} does not answer`);
    },
    subscribe: () => new Promise(() => undefined),
    credentialRefusal: () => undefined,
    refusal: (endpoint) => (endpoint.includes("10.0.0.1") ? "10.0.0.1 may not be dialled" : undefined),
  };
}

const ignore = (): void => undefined;
const SILENT = { shed: ignore, restored: ignore, commit: ignore, registered: ignore, relist: ignore, renewed: ignore, swept: ignore, blobsSwept: ignore };

export class World {
  readonly clock = new FakeClock();
  readonly random = new SeededRandom(7);
  readonly listings: Listings = new Map();
  readonly memory: MemoryStore;
  readonly replicas: Registry[] = [];
  /** What its replicas logged at info: message and fields. */
  readonly news: (readonly [message: string, fields: object])[] = [];

  constructor(window?: { revisions: number; bytes: number }) {
    this.memory = new MemoryStore(this.clock, this.random, window ? { window } : {});
  }

  /** A replica that has loaded its catalogue. */
  async replica(
    store: Store = this.memory.attach(),
    ring = { revisions: 10_000, bytes: 1 << 26 },
    more: Partial<RegistryOptions> & { readonly onShed?: (what: Sheddable) => void } = {},
  ): Promise<Registry> {
    const registry = new Registry({
      deps: {
        logger: { ...silentLogger, info: (fields: object, message: string) => void this.news.push([message, fields]) },
        stubs: stubCodec,
        upstream: upstreamOf(this.listings),
        now: () => this.clock.now(),
        onDefinitions: () => undefined,
      },
      store,
      clock: this.clock,
      random: this.random,
      watchCodec: createWatchCodec(stubCodec),
      observer: { ...SILENT, shed: more.onShed ?? ignore },
      ring,
      maxWatchers: 100,
      ...more,
    });
    registry.start();
    await this.clock.advance(1);
    this.replicas.push(registry);
    return registry;
  }

  async stop(): Promise<void> {
    const stopped = Promise.all(this.replicas.map((r) => r.stop()));
    await this.clock.advance(2_000);
    await stopped;
  }

  /** Runs work that may have to wait for time to pass. */
  async run<T>(work: Promise<T>): Promise<T> {
    let done = false;
    const settled = work.finally(() => {
      done = true;
    });
    settled.catch(() => undefined);
    for (let i = 0; i < 1_000 && !done; i++) await this.clock.advance(10);
    return settled;
  }
}

/** A declared, leased Register of tools given as names (label only) or as definitions (inline). */
export function declare(
  serverId: string,
  tools: readonly (string | object)[],
  more: Partial<RegisterInput> = {},
): RegisterInput {
  return {
    namespace: "",
    serverId,
    instanceId: "instance-1",
    endpoint: "http://127.0.0.1:9/mcp",
    transport: "streamable-http",
    title: "",
    tags: [],
    retention: { kind: "leased", ttlMs: undefined },
    offer: {
      kind: "declared",
      tools: tools.map((t) =>
        typeof t === "string"
          ? { label: { ...EMPTY_STUB, name: t, briefDescription: `${t} does something` }, definition: undefined }
          : { label: undefined, definition: Buffer.from(JSON.stringify(t)) },
      ),
    },
    etag: "",
    requestId: "",
    validateOnly: false,
    allowEmpty: false,
    strict: false,
    credential: "",
    sharePrivate: false,
    probing: DEFAULT_PROBING,
    ...more,
  };
}

export function introspect(serverId: string, endpoint: string, more: Partial<RegisterInput> = {}): RegisterInput {
  return declare(serverId, [], {
    endpoint,
    instanceId: "",
    retention: { kind: "standing" },
    offer: { kind: "introspect" },
    ...more,
  });
}

export async function stubsOf(registry: Registry, filter: Partial<Filter> = {}, minRevision = ""): Promise<Stub[]> {
  const out: Stub[] = [];
  let pageToken = "";
  do {
    const page = await registry.stubs({
      filter: { ...everything(""), ...filter },
      pageSize: 0,
      pageToken,
      minRevision,
      ifRevision: "",
    });
    out.push(...fromBinary(GetStubsResponseSchema, Buffer.concat(page.frames)).stubs);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return out;
}

/** What the probes of a server of one instance say, as its keeper publishes it. */
export function seen(availability: Availability, reason = "CONNECT_FAILED", instanceId = "instance-1"): SeenHealth {
  const up = availability === "available";
  const facts = { type: "Reachable", status: up ? "true" : "false", reason: up ? "ANSWERED" : reason, message: "" } as const;
  return {
    conditions: [facts],
    availability,
    open: up ? undefined : { untilMs: 0, attempt: 1 },
    instances: new Map([[instanceId, availability]]),
    stillTrue: () => true,
  };
}

/** A watcher that keeps all it is told. */
export class Recorder {
  readonly stubs: Stub[] = [];
  readonly events: { type: string; id: string; old: string; new: string; revision: string }[] = [];
  readonly tokens: string[] = [];
  bookmarks = 0;
  snapshotEnded = false;
  fault: Fault | undefined;
  handle: WatchHandle | undefined;
  /** Set to hold the transport's buffer full. */
  full = false;
  bytes: number[] = [];

  write(message: Uint8Array): boolean {
    this.bytes.push(message.byteLength);
    const { message: m } = fromBinary(WatchResponseSchema, message);
    if (m.case === "snapshot") {
      this.stubs.push(...m.value.stubs);
      if (m.value.last) {
        this.snapshotEnded = true;
        if (m.value.resumeToken) this.tokens.push(m.value.resumeToken);
      }
    } else if (m.case === "change") {
      this.events.push(...m.value.events.map((e) => summary(e, m.value.revision)));
      if (m.value.resumeToken) this.tokens.push(m.value.resumeToken);
    } else if (m.case === "bookmark") {
      this.bookmarks++;
      this.tokens.push(m.value.resumeToken);
    }
    return !this.full;
  }

  fail(fault: Fault): void {
    this.fault = fault;
  }

  get lastToken(): string {
    return this.tokens.at(-1) ?? "";
  }

  /** `TYPE tool_id` of all events. */
  get told(): string[] {
    return this.events.map((e) => `${e.type} ${e.id}`);
  }
}

function summary(e: Event, revision: string) {
  return {
    type: EventType[e.type] as string,
    id: e.toolId || e.serverId,
    old: e.oldDigest,
    new: e.newDigest,
    revision,
  };
}

export async function watch(registry: Registry, filter: Partial<Filter> = {}, resumeToken = ""): Promise<Recorder> {
  const recorder = new Recorder();
  recorder.handle = await registry.watch(
    { filter: { ...everything(""), ...filter }, resumeToken, minRevision: "" },
    recorder,
  );
  return recorder;
}
