/** An HTTP listener over a small RegistryApi, with the official Connect clients. */
import { durationMs } from "@bufbuild/protobuf/wkt";
import { type Client, Code, ConnectError, type Transport, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import type { RegistryApi } from "../../src/catalogue/api.js";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../src/gen/google/rpc/error_details_pb.js";
import { SubstitutesSchema } from "../../src/gen/toolcrib/v1/error_pb.js";
import { AdminService } from "../../src/gen/toolcrib/v1/admin_service_pb.js";
import { GateService } from "../../src/gen/toolcrib/v1/gate_service_pb.js";
import { RegistryService } from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import { ToolsetService } from "../../src/gen/toolcrib/v1/toolset_service_pb.js";
import type { GateApi } from "../../src/gate/api.js";
import { createMetrics } from "../../src/ops/metrics.js";
import { type HttpOptions, type HttpServer, startHttp } from "../../src/rpc/connect/server.js";
import { createDoor } from "../../src/rpc/identity/door.js";
import { NO_IDENTITY } from "../../src/rpc/identity/authenticator.js";
import { type LogLine, type ReadError, type Watching, PLAIN_GATE, plainApi, plainToolsets } from "./grpc-support.js";

export type RegistryHttpClient = Client<typeof RegistryService>;

export interface HttpRig {
  readonly server: HttpServer;
  /** http://127.0.0.1:port */
  readonly url: string;
  readonly log: LogLine[];
  readonly metrics: ReturnType<typeof createMetrics>;
  readonly watches: Watching[];
  client(way: Way): RegistryHttpClient;
  admin(way: Way): Client<typeof AdminService>;
  gate(way: Way): Client<typeof GateService>;
  toolsets(way: Way): Client<typeof ToolsetService>;
}

export async function startHttpRig(api: Partial<RegistryApi> = {}, options: Partial<HttpOptions> = {}, gate: GateApi = PLAIN_GATE): Promise<HttpRig> {
  const watches: Watching[] = [];
  const log: LogLine[] = [];
  const write = (level: string) => (fields: object, message: string) => {
    log.push({ level, fields: fields as Record<string, unknown>, message });
  };
  const metrics = createMetrics("0.0.0");
  const server = await startHttp({
    address: { host: "127.0.0.1", port: 0 },
    door: createDoor({ registry: { ...plainApi(watches), ...api }, gate, toolsets: plainToolsets() }, NO_IDENTITY),
    log: { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") },
    metrics,
    version: "0.0.0",
    identified: false,
    corsOrigins: [],
    graceMs: 1_000,
    ...options,
  });
  const url = `http://127.0.0.1:${server.address.port}`;
  return {
    server,
    url,
    log,
    metrics,
    watches,
    client: (way) => createClient(RegistryService, WAYS[way](url)),
    admin: (way) => createClient(AdminService, WAYS[way](url)),
    gate: (way) => createClient(GateService, WAYS[way](url)),
    toolsets: (way) => createClient(ToolsetService, WAYS[way](url)),
  };
}

export const WAYS = {
  "Connect JSON": (baseUrl: string): Transport =>
    createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
  "Connect binary": (baseUrl: string): Transport =>
    createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: true }),
  "gRPC-Web": (baseUrl: string): Transport => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
  "gRPC-Web JSON": (baseUrl: string): Transport =>
    createGrpcWebTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
} as const;

export type Way = keyof typeof WAYS;
export const ALL_WAYS = Object.keys(WAYS) as Way[];

/** What a client library reads out of an error. */
export function readConnectError(error: unknown): Omit<ReadError, "detailBytes"> {
  if (!(error instanceof ConnectError)) throw error;
  const [info] = error.findDetails(ErrorInfoSchema);
  const [retry] = error.findDetails(RetryInfoSchema);
  return {
    code: Code[error.code]?.replace(/(?<=[a-z])([A-Z])/g, "_$1").toUpperCase() ?? "",
    message: error.rawMessage,
    reason: info?.reason ?? "",
    domain: info?.domain ?? "",
    metadata: info?.metadata ?? {},
    violations: error.findDetails(BadRequestSchema)[0]?.fieldViolations.map(({ field, description }) => ({ field, description })) ?? [],
    retryMs: retry?.retryDelay && durationMs(retry.retryDelay),
    substitutes: error.findDetails(SubstitutesSchema)[0]?.toolIds ?? [],
  };
}

export async function failingHttp(promise: Promise<unknown>): Promise<Omit<ReadError, "detailBytes">> {
  const error = await promise.then(
    () => undefined,
    (e: unknown) => e,
  );
  if (error === undefined) throw new Error("expected the call to be refused");
  return readConnectError(error);
}
