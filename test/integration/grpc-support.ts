/** A gRPC listener over a small RegistryApi whose answers each test chooses, with clients that nobody here wrote. */
import { fileURLToPath } from "node:url";
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { fromBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../src/gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../src/gen/google/rpc/status_pb.js";
import { SubstitutesSchema } from "../../src/gen/toolcrib/v1/error_pb.js";
import type { RegistryApi, WatchInput, WatchSink } from "../../src/catalogue/api.js";
import type { PartitionStore } from "../../src/catalogue/ports.js";
import type { ToolsetsApi } from "../../src/catalogue/toolsets/api.js";
import { Toolsets } from "../../src/catalogue/toolsets/toolsets.js";
import type { GateApi } from "../../src/gate/api.js";
import { createMetrics } from "../../src/ops/metrics.js";
import { systemClock, systemRandom } from "../../src/ops/system.js";
import { type GrpcOptions, type GrpcServer, startGrpc } from "../../src/rpc/grpc/server.js";
import { NO_IDENTITY } from "../../src/rpc/identity/authenticator.js";
import { createDoor } from "../../src/rpc/identity/door.js";
import { MemoryStore } from "../../src/store/memory/memory-store.js";
import { silentLogger } from "../support/upstream.js";

export const PROTO_DIR = fileURLToPath(new URL("../../proto", import.meta.url));
export const SERVICE = "toolcrib.v1.RegistryService";

export interface LogLine {
  readonly level: string;
  readonly fields: Record<string, unknown>;
  readonly message: string;
}

export interface Watching {
  readonly input: WatchInput;
  readonly sink: WatchSink;
  drainedTimes: number;
  closedTimes: number;
}

export interface Rig {
  readonly server: GrpcServer;
  readonly target: string;
  readonly api: RegistryApi;
  readonly log: LogLine[];
  readonly metrics: ReturnType<typeof createMetrics>;
  /** In the order opened. */
  readonly watches: Watching[];
  client(): RegistryClient;
  raw(): grpc.Client;
  stop(): Promise<void>;
}

export type RegistryClient = grpc.Client & {
  [method: string]: any;
};

const noServer = async (): Promise<never> => {
  throw new Error("no test asked for a server");
};

const POSITION = { partition: 0, revision: 7, chain: "abcdef0123456789" };

/** Answers everything with next to nothing; tests replace what they are about. */
export function plainApi(watches: Watching[]): RegistryApi {
  return {
    // Tests change their answers as they like, so none of them stands: NaN is not even the same as itself.
    version: Number.NaN,
    register: async (input) => ({
      position: POSITION,
      setDigest: `sha256:${"0".repeat(64)}`,
      lease: { leaseId: "l0-1", ttlMs: 30_000, renewAfterMs: 9_876 },
      tools:
        input.offer.kind === "declared"
          ? input.offer.tools.map((t) => ({ name: t.label?.name ?? "", outcome: "accepted", reasons: [], digest: "" }))
          : [],
      etag: "r7",
      pending: false,
    }),
    renew: async (_namespace, leases) => leases.map((l) => ({ leaseId: l.leaseId, state: "ok", renewAfterMs: 10_000 })),
    deregister: async () => ({ position: undefined, removed: false }),
    health: () => undefined,
    notices: () => [],
    stubs: async () => ({
      frames: [],
      nextPageToken: "",
      position: POSITION,
      notModified: false,
      stale: false,
    }),
    servers: async () => ({ servers: [], nextPageToken: "", position: POSITION, stale: false }),
    server: noServer,
    lint: async () => ({ tools: [], counts: new Map(), all: 0, warned: 0, unknown: 0, position: POSITION, stale: false }),
    isolate: noServer,
    approveOverlays: noServer,
    quarantineTool: noServer,
    approveTool: noServer,
    withdrawOverlays: async () => ({ position: undefined, toolNames: [] }),
    overlays: async () => ({ overlays: [], position: POSITION }),
    resume: noServer,
    refresh: noServer,
    schema: async ({ key }) => ({
      schema: {
        toolId: key.kind === "tool" ? key.toolId : "",
        definition: Buffer.from('{"name":"t"}'),
        digest: `sha256:${"1".repeat(64)}`,
        freshness: "cached",
        fetchedAtMs: 1_700_000_000_123,
      },
      position: POSITION,
      stale: false,
    }),
    schemas: async () => ({ results: [], position: POSITION, stale: false }),
    watch: async (input, sink) => {
      const watching: Watching = { input, sink, drainedTimes: 0, closedTimes: 0 };
      watches.push(watching);
      return {
        drained: () => {
          watching.drainedTimes++;
        },
        close: () => {
          watching.closedTimes++;
        },
      };
    },
  };
}

/** A gate that finds nothing. */
export const PLAIN_GATE: GateApi = {
  report: async () => ({ remembered: false }),
  map: async () => ({ text: "", tokens: 0, modules: [], leftOut: 0, tools: 0, alwaysIncluded: [], stateFacts: [], position: POSITION, stale: false }),
  find: async () => ({
    tools: [],
    withheld: [],
    weak: true,
    answerTokens: 0,
    catalogueTokens: 0,
    catalogueTools: 0,
    bundles: [],
    meaning: "none",
    position: POSITION,
    stale: false,
  }),
};

/** Toolsets in a store of their own. */
export function plainToolsets(): ToolsetsApi {
  const store = new MemoryStore(systemClock, systemRandom);
  const notesOf = () => (store.partitions[0] as PartitionStore).notes;
  return new Toolsets({ notesOf, clock: systemClock, random: systemRandom, logger: silentLogger });
}

export async function startRig(api: Partial<RegistryApi> = {}, options: Partial<GrpcOptions> = {}, gate: GateApi = PLAIN_GATE): Promise<Rig> {
  const watches: Watching[] = [];
  const log: LogLine[] = [];
  const write = (level: string) => (fields: object, message: string) => {
    log.push({ level, fields: fields as Record<string, unknown>, message });
  };
  const whole = { ...plainApi(watches), ...api };
  const metrics = createMetrics("0.0.0");
  const server = await startGrpc({
    address: { host: "127.0.0.1", port: 0 },
    door: createDoor({ registry: whole, gate, toolsets: plainToolsets() }, NO_IDENTITY),
    log: { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") },
    metrics,
    graceMs: 1_000,
    ...options,
  });
  const target = `127.0.0.1:${server.address.port}`;
  const clients: grpc.Client[] = [];
  const kept = <C extends grpc.Client>(client: C): C => {
    clients.push(client);
    return client;
  };
  return {
    server,
    target,
    api: whole,
    log,
    metrics,
    watches,
    client: () => kept(newClient(target)),
    raw: () => kept(new grpc.Client(target, grpc.credentials.createInsecure(), OWN_CONNECTION)),
    stop: async () => {
      for (const client of clients) client.close();
      await server.close();
    },
  };
}

const OWN_CONNECTION = { "grpc.use_local_subchannel_pool": 1, "grpc.max_receive_message_length": -1 };

/** The .proto as any newcomer would load it. */
export function newClient(target: string): RegistryClient {
  const definition = loadSync("toolcrib/v1/registry_service.proto", {
    includeDirs: [PROTO_DIR],
    keepCase: true,
    longs: Number,
    enums: String,
    defaults: true,
    oneofs: true,
  });
  const loaded = grpc.loadPackageDefinition(definition) as unknown as {
    toolcrib: { v1: { RegistryService: new (...args: unknown[]) => RegistryClient } };
  };
  return new loaded.toolcrib.v1.RegistryService(target, grpc.credentials.createInsecure(), OWN_CONNECTION);
}

export function call(client: RegistryClient, method: string, request: object, options: object = {}): Promise<any> {
  return new Promise((resolve, reject) => {
    client[method](request, options, (error: grpc.ServiceError | null, answer: unknown) =>
      error ? reject(error) : resolve(answer),
    );
  });
}

/** A unary call with exactly these bytes. */
export function callRaw(
  client: grpc.Client,
  path: string,
  bytes: Buffer,
  metadata = new grpc.Metadata(),
  options: grpc.CallOptions = {},
): Promise<Buffer> {
  const same = (b: Buffer): Buffer => b;
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(path, same, same, bytes, metadata, options, (error, answer) =>
      error ? reject(error) : resolve(answer ?? Buffer.alloc(0)),
    );
  });
}

export interface ReadError {
  readonly code: string;
  readonly message: string;
  readonly reason: string;
  readonly domain: string;
  readonly metadata: Record<string, string>;
  readonly violations: { field: string; description: string }[];
  readonly retryMs: number | undefined;
  readonly substitutes: string[];
  readonly detailBytes: number;
}

/** What a client library reads out of an error. */
export function readError(error: grpc.ServiceError): ReadError {
  const bytes = error.metadata.get("grpc-status-details-bin")[0];
  if (!Buffer.isBuffer(bytes)) throw new Error(`no details in: ${error.message}`);
  const status = fromBinary(StatusSchema, bytes);
  const unpack = <T>(read: (any: (typeof status.details)[number]) => T | undefined): T | undefined => {
    for (const any of status.details) {
      const found = read(any);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  const info = unpack((any) => anyUnpack(any, ErrorInfoSchema));
  const retry = unpack((any) => anyUnpack(any, RetryInfoSchema))?.retryDelay;
  if (status.code !== error.code) throw new Error(`details say code ${status.code}, the status ${error.code}`);
  return {
    code: grpc.status[error.code],
    message: error.details,
    reason: info?.reason ?? "",
    domain: info?.domain ?? "",
    metadata: info?.metadata ?? {},
    violations: unpack((any) => anyUnpack(any, BadRequestSchema))?.fieldViolations ?? [],
    retryMs: retry && Number(retry.seconds) * 1_000 + retry.nanos / 1e6,
    substitutes: unpack((any) => anyUnpack(any, SubstitutesSchema))?.toolIds ?? [],
    detailBytes: bytes.byteLength,
  };
}

export async function failing(promise: Promise<unknown>): Promise<ReadError> {
  const error = await promise.then(
    () => undefined,
    (e: grpc.ServiceError) => e,
  );
  if (!error) throw new Error("expected the call to be refused");
  return readError(error);
}

/** Polls until it holds; the deadline only bounds a failing run. */
export async function until(holds: () => boolean | Promise<boolean>, what: string, ms = 20_000): Promise<void> {
  const end = Date.now() + ms;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`never came true: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
