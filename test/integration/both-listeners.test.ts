/** One table of errors, each over gRPC and in every way over HTTP: same code, sentence, reason and details, one log line each. */
import { type DescMethodUnary, create, toBinary } from "@bufbuild/protobuf";
import { Metadata } from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "vitest";
import type { RegistryApi } from "../../src/catalogue/api.js";
import { checkIsolation } from "../../src/domain/admission/isolation.js";
import { Fault, invalidRequest, notFound, relistRequired } from "../../src/domain/fault.js";
import { type ErrorReasonName, STATUS_OF } from "../../src/domain/reasons.js";
import { AdminService } from "../../src/gen/toolcrib/v1/admin_service_pb.js";
import { GateService } from "../../src/gen/toolcrib/v1/gate_service_pb.js";
import { RegistryService } from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import { ToolsetService } from "../../src/gen/toolcrib/v1/toolset_service_pb.js";
import { type ReadError, type Rig, callRaw, failing, startRig } from "./grpc-support.js";
import { ALL_WAYS, type HttpRig, failingHttp, startHttpRig } from "./http-support.js";

let rigs: { grpc: Rig; http: HttpRig } | undefined;
afterEach(async () => {
  await Promise.all([rigs?.grpc.stop(), rigs?.http.server.close()]);
  rigs = undefined;
});

interface Case {
  readonly what: string;
  readonly method: string;
  readonly request: object;
  readonly api?: Partial<RegistryApi>;
  readonly expected: Partial<ReadError>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly options?: { readonly unaryDeadlineMs?: number };
}

const POSITION = { partition: 0, revision: 1, chain: "1" };

const REASONS: Case[] = (Object.keys(STATUS_OF) as ErrorReasonName[])
  .filter((reason) => reason !== "INTERNAL")
  .map((reason) => ({
    what: `the fault ${reason}`,
    method: "renew",
    request: {},
    api: {
      renew: async () => {
        throw new Fault(reason, `because of ${reason} – ünïcode, \ud800 and\nlines`, {
          metadata: { fact: "value" },
          violations: [{ field: "a.b", description: "is wrong" }],
          retryAfterMs: 1_500,
          substitutes: ["s/t"],
          cause: new Error("secret cause"),
        });
      },
    },
    expected: { code: STATUS_OF[reason], reason, retryMs: 1_500, substitutes: ["s/t"], metadata: { fact: "value" } },
  }));

const invalid = { code: "INVALID_ARGUMENT", reason: "INVALID_REQUEST" };
const noise = (kilobytes: number) =>
  Object.fromEntries(Array.from({ length: kilobytes }, (_, i) => [`x-noise-${i}`, "n".repeat(1024)]));

const REQUESTS: Case[] = [
  {
    what: "many wrong values at once",
    method: "getStubs",
    request: { pageSize: -1, namespace: "No", filter: { tagsAny: ["UP", "ok"], namePrefix: "x".repeat(129) } },
    expected: invalid,
  },
  { what: "if_revision beside page_token", method: "getStubs", request: { pageToken: "a", ifRevision: "b" }, expected: invalid },
  { what: "a token too long", method: "getStubs", request: { minRevision: "t".repeat(513) }, expected: invalid },
  {
    what: "a category",
    method: "getStubs",
    request: { filter: { category: "db" } },
    expected: { code: "UNIMPLEMENTED", reason: "CATEGORY_UNSUPPORTED" },
  },
  { what: "no key", method: "getFullSchema", request: {}, expected: invalid },
  { what: "a digest that is none", method: "getFullSchema", request: { key: { case: "digest", value: "md5:1" } }, expected: invalid },
  {
    what: "an unknown view",
    method: "getFullSchema",
    request: { key: { case: "toolId", value: "s/t" }, view: 77 },
    expected: {},
  },
  {
    what: "101 tools",
    method: "batchGetFullSchemas",
    request: { toolIds: Array.from({ length: 101 }, (_, i) => `s/t${i}`) },
    expected: invalid,
  },
  { what: "no target", method: "deregister", request: {}, expected: invalid },
  { what: "1,001 leases", method: "renew", request: { leases: Array.from({ length: 1_001 }, () => ({})) }, expected: invalid },
  { what: "a server_id that is none", method: "getServer", request: { serverId: "NO/" }, expected: invalid },
  { what: "a transport that is none", method: "register", request: { transport: 9 }, expected: invalid },
  {
    what: "a relist",
    method: "getStubs",
    request: {},
    api: { stubs: () => Promise.reject(relistRequired("chain")) },
    expected: { code: "OUT_OF_RANGE", reason: "RELIST_REQUIRED", metadata: { cause: "chain" } },
  },
  {
    what: "more violations than fit",
    method: "register",
    request: { serverId: "s" },
    api: {
      register: () =>
        Promise.reject(
          invalidRequest(Array.from({ length: 10_000 }, (_, i) => ({ field: `f[${i}]`, description: "ü".repeat(200) }))),
        ),
    },
    expected: invalid,
  },
  {
    what: "an answer too large",
    method: "getStubs",
    request: {},
    api: {
      stubs: async () => ({
        frames: [Buffer.alloc(5 * 1024 * 1024)],
        nextPageToken: "",
        position: POSITION,
        notModified: false,
        stale: false,
      }),
    },
    expected: { code: "RESOURCE_EXHAUSTED", reason: "MESSAGE_TOO_LARGE" },
  },
  {
    what: "no answer in time",
    method: "getStubs",
    request: {},
    api: { stubs: () => new Promise(() => {}) },
    options: { unaryDeadlineMs: 50 },
    expected: { code: "DEADLINE_EXCEEDED", reason: "DEADLINE" },
  },
];

const down = { reason: "LOAD_FAILED", code: "UNAVAILABLE", retryMs: 2_000, metadata: { server: "s", kind: "connect" } };
const refusing = (reason: ErrorReasonName, facts: object = {}) => () => Promise.reject(new Fault(reason, "no", facts));

const ADMIN: Case[] = [
  {
    what: "an isolation without a reason",
    method: "isolateServer",
    request: { serverId: "s" },
    api: { isolate: async (input) => Promise.reject(invalidRequest(checkIsolation(input))) },
    expected: { ...invalid, violations: [{ field: "why", description: expect.stringContaining("say why") as string }] },
  },
  {
    what: "a resumed server that is absent",
    method: "resumeServer",
    request: { namespace: "n", serverId: "s" },
    api: { resume: async ({ serverId }) => Promise.reject(notFound("server", serverId)) },
    expected: { code: "NOT_FOUND", reason: "NOT_FOUND", metadata: { server: "s" } },
  },
  {
    what: "a refreshed server that is isolated",
    method: "refreshServer",
    request: { serverId: "s" },
    api: { refresh: refusing("SERVER_ISOLATED", { metadata: { server: "s" } }) },
    expected: { code: "UNAVAILABLE", reason: "SERVER_ISOLATED", retryMs: undefined },
  },
  {
    what: "a refreshed server that is down",
    method: "refreshServer",
    request: { serverId: "s" },
    api: { refresh: refusing("LOAD_FAILED", { metadata: down.metadata, retryAfterMs: 2_000, cause: new Error("secret") }) },
    expected: down,
  },
  { what: "no operator", method: "isolateServer", request: {}, api: { isolate: refusing("FORBIDDEN") }, expected: { code: "PERMISSION_DENIED" } },
];

const GATE: Case[] = [
  { what: "no intent and a top_k beyond the limit", method: "findTools", request: { topK: 51 }, expected: invalid },
  { what: "a map of one token", method: "getModuleMap", request: { tokenBudget: 1, namespace: "NO" }, expected: invalid },
];

const TOOLSETS: Case[] = [
  { what: "a toolset of what are no tools", method: "createToolset", request: { namespace: "NO", toolIds: ["x"], facts: { "A B": "" } }, expected: invalid },
  { what: "a change that says too much", method: "updateToolset", request: { tools: { toolIds: ["x"] }, etag: "e".repeat(513) }, expected: invalid },
  { what: "a toolset that is not there", method: "getToolset", request: { handle: "ts-" }, expected: { code: "NOT_FOUND", reason: "NOT_FOUND" } },
  { what: "a toolset without a handle", method: "deleteToolset", request: {}, expected: invalid },
];

const METHODS = { ...RegistryService.method, ...GateService.method, ...ToolsetService.method, ...AdminService.method };
const methodOf = (name: string): DescMethodUnary => METHODS[name as "renew"];

type Outcome = Omit<ReadError, "detailBytes">;

async function overGrpc({ method, request, headers = {} }: Case, grpc: Rig): Promise<Outcome> {
  const desc = methodOf(method);
  const bytes = Buffer.from(toBinary(desc.input, create(desc.input, request as never)));
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  const { detailBytes: _, ...outcome } = await failing(callRaw(grpc.raw(), `/${desc.parent.typeName}/${desc.name}`, bytes, metadata));
  return {
    ...outcome,
    violations: outcome.violations.map(({ field, description }) => ({ field, description })),
  };
}

describe("an error is the same over gRPC and in every way over HTTP", () => {
  it.each([...REASONS, ...REQUESTS, ...GATE, ...TOOLSETS, ...ADMIN])("$what", async (one) => {
    rigs = { grpc: await startRig(one.api, one.options), http: await startHttpRig(one.api, one.options) };
    const { grpc, http } = rigs;
    const expected = await overGrpc(one, grpc);
    expect(expected).toMatchObject({ ...one.expected, domain: "toolcrib" });
    for (const way of ALL_WAYS) {
      const { parent } = methodOf(one.method);
      const services = new Map<unknown, object>([
        [AdminService, http.admin(way)],
        [GateService, http.gate(way)],
        [ToolsetService, http.toolsets(way)],
      ]);
      const service = services.get(parent) ?? http.client(way);
      const client = service as unknown as Record<string, (request: object, options: object) => Promise<unknown>>;
      const call = client[one.method]?.(one.request, { headers: one.headers ?? {} }) ?? Promise.reject(new Error(one.method));
      expect(await failingHttp(call), way).toEqual(expected);
    }
    await expect.poll(() => [grpc.log.length, http.log.length]).toEqual([1, ALL_WAYS.length]);
    const line = (l: (typeof http.log)[number] | undefined) => ({ ...l, fields: { ...l?.fields, peer: "", err: "" } });
    expect(http.log.map(line)).toEqual(ALL_WAYS.map(() => line(grpc.log[0])));
    expect(JSON.stringify(expected)).not.toContain("secret");
    const { parent, name } = methodOf(one.method);
    const label = `${parent.typeName}/${name}`;
    const counted = `toolcrib_rpc_requests_total{method="${label}",code="${expected.code}"}`;
    await expect.poll(() => grpc.metrics.registry.metrics()).toContain(`${counted} 1`);
    await expect.poll(() => http.metrics.registry.metrics()).toContain(`${counted} ${ALL_WAYS.length}`);
  });

  it("a bug is INTERNAL with an incident id, logged with its cause, and says nothing of itself", async () => {
    const bug = new Error("secret detail", { cause: new Error("root") });
    const api = { stubs: () => Promise.reject(bug), watch: () => Promise.reject("secret") };
    rigs = { grpc: await startRig(api), http: await startHttpRig(api) };
    for (const way of ALL_WAYS) {
      const client = rigs.http.client(way);
      const unary = await failingHttp(client.getStubs({}));
      const stream = await failingHttp(
        (async () => {
          for await (const _ of client.watch({}));
        })(),
      );
      await expect.poll(() => rigs?.http.log.length).toBe(2);
      const lines = rigs.http.log.splice(0);
      for (const [i, error] of [unary, stream].entries()) {
        expect(error, way).toMatchObject({ code: "INTERNAL", reason: "INTERNAL", domain: "toolcrib" });
        expect(JSON.stringify(error)).not.toContain("secret");
        expect(error.metadata["incident"]).toMatch(/^[0-9a-f]{16}$/);
        expect(lines[i]).toMatchObject({ level: "error", fields: { incident: error.metadata["incident"] } });
      }
      expect(lines.map((l) => l.fields["err"])).toEqual([bug, "secret"]);
    }
  });

  it.each([17, 64])("%i KiB of headers", async (kilobytes) => {
    rigs = { grpc: await startRig(), http: await startHttpRig() };
    const headers = noise(kilobytes);
    const expected = await overGrpc({ what: "", method: "getStubs", request: {}, expected: {}, headers }, rigs.grpc);
    expect(expected).toMatchObject({ reason: "MESSAGE_TOO_LARGE", metadata: { limit: "16384", part: "metadata" } });
    for (const way of ALL_WAYS) {
      const error = await failingHttp(rigs.http.client(way).getStubs({}, { headers }));
      const { actual, ...metadata } = error.metadata;
      expect(Number(actual)).toBeGreaterThan(kilobytes * 1024);
      expect({ ...error, metadata, message: "" }).toMatchObject({ code: expected.code, reason: expected.reason, metadata: { limit: "16384", part: "metadata" } });
    }
  });

  it("a call while the replica drains", async () => {
    rigs = { grpc: await startRig(), http: await startHttpRig() };
    rigs.http.server.drain();
    for (const way of ALL_WAYS) {
      const client = rigs.http.client(way);
      for (const call of [client.register({}), client.getStubs({}), client.getFullSchema({}), client.listServers({})]) {
        const error = await failingHttp(call);
        expect(error).toMatchObject({ code: "UNAVAILABLE", reason: "DRAINING" });
        expect(error.retryMs).toBeGreaterThanOrEqual(100);
      }
      const admin = rigs.http.admin(way);
      for (const call of [admin.isolateServer({}), admin.resumeServer({}), admin.refreshServer({})])
        expect(await failingHttp(call)).toMatchObject({ code: "UNAVAILABLE", reason: "DRAINING" });
      await client.renew({});
      await client.deregister({ target: { case: "leaseId", value: "l" } });
    }
  });
});
