import { DEFAULT_PROBING } from "../../src/domain/health/probing.js";
import { toBinary, create } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "vitest";
import type { RegisterInput } from "../../src/catalogue/api.js";
import { Fault } from "../../src/domain/fault.js";
import { formatRevision } from "../../src/domain/revision.js";
import type { ServerRecord } from "../../src/domain/server.js";
import { GetStubsResponseSchema } from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import { Availability, StubSchema } from "../../src/gen/toolcrib/v1/stub_pb.js";
import { type Rig, call, startRig } from "./grpc-support.js";

let rig: Rig | undefined;
afterEach(async () => {
  await rig?.stop();
  rig = undefined;
});

const POSITION = { partition: 3, revision: 41, chain: "00ff00ff00ff00ff" };

describe("RegistryService, by a client that loads the .proto at run time", () => {
  it("Register passes everything on", async () => {
    let input: RegisterInput | undefined;
    rig = await startRig({
      register: async (given) => {
        input = given;
        return {
          position: POSITION,
          setDigest: "sha256:d",
          lease: { leaseId: "l", ttlMs: 30_000, renewAfterMs: 9_876.4 },
          tools: [{ name: "a", outcome: "rejected", reasons: ["x", "y"], digest: "" }],
          etag: "r41",
          pending: true,
        };
      },
    });
    const answer = await call(rig.client(), "Register", {
      namespace: "n",
      server_id: "s",
      instance_id: "instance-1",
      endpoint: "http://127.0.0.1:1/mcp",
      transport: "TRANSPORT_HTTP_SSE",
      title: "T",
      tags: ["b", "a"],
      lease_ttl: { seconds: 12, nanos: 500_000_000 },
      declared: {
        tools: [
          {
            stub: {
              name: "a",
              brief_description: "does",
              hints: { read_only: false, open_world: true },
              requires: [{ scope: "x" }, { state: "k=v" }, { tool: "b" }],
              size_bytes: 9,
            },
            definition: Buffer.from("{}"),
          },
          {},
        ],
      },
      etag: "0",
      request_id: "q",
      validate_only: true,
      allow_empty: true,
      strict: true,
      credential: "vault",
      share_private: true,
    });
    expect(input).toEqual({
      namespace: "n",
      serverId: "s",
      instanceId: "instance-1",
      endpoint: "http://127.0.0.1:1/mcp",
      transport: "http-sse",
      title: "T",
      tags: ["b", "a"],
      retention: { kind: "leased", ttlMs: 12_500 },
      offer: {
        kind: "declared",
        tools: [
          {
            label: {
              name: "a",
              title: "",
              briefDescription: "does",
              tags: [],
              keywords: [],
              useWhen: "",
              schemaUri: "",
              hints: { readOnly: false, openWorld: true },
              requires: [
                { kind: "scope", value: "x" },
                { kind: "state", value: "k=v" },
                { kind: "tool", value: "b" },
              ],
              substitutes: [],
              digest: "",
            },
            definition: new Uint8Array([0x7b, 0x7d]),
          },
          { label: undefined, definition: undefined },
        ],
      },
      etag: "0",
      requestId: "q",
      validateOnly: true,
      allowEmpty: true,
      strict: true,
      credential: "vault",
      sharePrivate: true,
      probing: DEFAULT_PROBING,
    });
    expect(answer).toMatchObject({
      revision: formatRevision(POSITION),
      set_digest: "sha256:d",
      lease: { lease_id: "l", ttl: { seconds: 30, nanos: 0 }, renew_after: { seconds: 9, nanos: 876_000_000 } },
      tools: [{ name: "a", outcome: "OUTCOME_REJECTED", reasons: ["x", "y"] }],
      etag: "r41",
      pending: true,
    });
  });

  it.each([
    [{ standing: true, introspect: {} }, { kind: "standing" }, { kind: "introspect" }],
    [{}, { kind: "leased", ttlMs: undefined }, { kind: "none" }],
    [{ lease_ttl: { seconds: -1 } }, { kind: "leased", ttlMs: -1_000 }, { kind: "none" }],
    [
      { lease_ttl: { seconds: 315_360_000 }, declared: {} },
      { kind: "leased", ttlMs: 315_360_000_000 },
      { kind: "declared", tools: [] },
    ],
  ])("Register leaves judging to the use-case: %j", async (request, retention, offer) => {
    let input: RegisterInput | undefined;
    rig = await startRig({
      register: async (given) => {
        input = given;
        return { position: POSITION, setDigest: "", lease: undefined, tools: [], etag: "", pending: false };
      },
    });
    const answer = await call(rig.client(), "Register", request);
    expect(input).toMatchObject({ retention, offer });
    expect(answer.lease).toBeNull();
  });

  it("Renew and Deregister translate every state and target", async () => {
    const states = ["ok", "superseded", "register-again", "unknown-lease", "deregistered"] as const;
    const targets: unknown[] = [];
    rig = await startRig({
      renew: async (_ns, leases) =>
        leases.map((l, i) => ({ leaseId: l.leaseId, state: states[i] ?? "ok", renewAfterMs: 1_000 })),
      deregister: async (namespace, target) => {
        targets.push([namespace, target]);
        return { position: targets.length === 1 ? POSITION : undefined, removed: targets.length === 1 };
      },
    });
    const client = rig.client();
    const renewed = await call(client, "Renew", { leases: states.map((s) => ({ lease_id: s })) });
    expect(renewed.results.map((r: { state: string }) => r.state)).toEqual([
      "STATE_OK",
      "STATE_SUPERSEDED",
      "STATE_REGISTER_AGAIN",
      "STATE_UNKNOWN_LEASE",
      "STATE_DEREGISTERED",
    ]);
    expect(await call(client, "Deregister", { lease_id: "l" })).toEqual({
      revision: formatRevision(POSITION),
      removed: true,
    });
    expect(await call(client, "Deregister", { namespace: "n", server_id: "s" })).toEqual({
      revision: "",
      removed: false,
    });
    await call(client, "Deregister", { tool_id: "s/t" });
    expect(targets).toEqual([
      ["default", { kind: "lease", leaseId: "l" }],
      ["n", { kind: "server", serverId: "s" }],
      ["default", { kind: "tool", toolId: "s/t" }],
    ]);
  });

  it("GetStubs passes stored bytes on, says when they are stale, and not modified", async () => {
    const stub = create(StubSchema, { toolId: "s/t", name: "t", availability: Availability.AVAILABLE });
    const frames = toBinary(GetStubsResponseSchema, create(GetStubsResponseSchema, { stubs: [stub, stub] }));
    let notModified = false;
    rig = await startRig({
      stubs: async () => ({ frames: [frames], nextPageToken: "next", position: POSITION, notModified, stale: true }),
    });
    const client = rig.client();
    const headers = await new Promise<grpc.Metadata>((resolve, reject) => {
      const request = client["GetStubs"]({}, (error: Error | null) => error && reject(error));
      request.on("metadata", resolve);
    });
    expect(headers.get("toolcrib-stale")).toEqual(["true"]);
    expect(await call(client, "GetStubs", {})).toMatchObject({
      stubs: [{ tool_id: "s/t", availability: "AVAILABILITY_AVAILABLE" }, { name: "t" }],
      next_page_token: "next",
      revision: formatRevision(POSITION),
      not_modified: false,
      stale: true,
    });
    notModified = true;
    expect(await call(client, "GetStubs", {})).toMatchObject({ not_modified: true });
  });

  it("GetFullSchema and the batch carry definitions byte for byte, and faults per tool", async () => {
    const definition = Buffer.from('{ "name":"t",\u00a0"n": 9007199254740993 }');
    const schema = {
      toolId: "s/t",
      definition,
      digest: "sha256:x",
      freshness: "live",
      fetchedAtMs: 1_700_000_000_123,
    } as const;
    const big = { ...schema, definition: Buffer.alloc(2 * 1024 * 1024, "x") };
    rig = await startRig({
      schema: async ({ view }) => ({ schema: { ...schema, digest: view }, position: POSITION, stale: true }),
      schemas: async () => ({
        results: [
          { kind: "schema", schema },
          { kind: "fault", fault: new Fault("LOAD_PENDING", "wait", { retryAfterMs: 1_250, substitutes: ["o/t"] }) },
          { kind: "schema", schema: big },
          { kind: "schema", schema: big },
          { kind: "schema", schema },
        ],
        position: POSITION,
        stale: false,
      }),
    });
    const client = rig.client();
    const one = await call(client, "GetFullSchema", { tool_id: "s/t", view: "SCHEMA_VIEW_INPUT_ONLY" });
    expect(one).toMatchObject({
      schema: {
        tool_id: "s/t",
        digest: "input-only",
        freshness: "FRESHNESS_LIVE",
        view: "SCHEMA_VIEW_INPUT_ONLY",
        fetched_at: { seconds: 1_700_000_000, nanos: 123_000_000 },
      },
      revision: formatRevision(POSITION),
    });
    expect(Buffer.compare(one.schema.definition, definition)).toBe(0);
    const { results } = await call(client, "BatchGetFullSchemas", { tool_ids: ["s/t", "s/u", "s/v", "s/w", "s/x"] });
    expect(results[0].schema.definition.equals(definition)).toBe(true);
    expect(results[1]).toMatchObject({
      tool_id: "s/u",
      error: {
        code: 14,
        reason: "LOAD_PENDING",
        message: "wait",
        substitutes: ["o/t"],
        retry_after: { seconds: 1, nanos: 250_000_000 },
      },
    });
    expect(results[2].schema.definition).toHaveLength(2 * 1024 * 1024);
    expect(results[3]).toMatchObject({ tool_id: "s/w", error: { code: 8, reason: "QUOTA_EXCEEDED" } });
    expect(results[4].schema.definition.equals(definition)).toBe(true);
  });

  it("servers are shown whole, without credentials, and a page shows at most 100 rejected tools", async () => {
    const record = (serverId: string, rejected: number): ServerRecord => ({
      revision: 12,
      header: {
        namespace: "default",
        serverId,
        title: "T",
        tags: ["a"],
        source: "introspected",
        retention: "standing",
        instances: [
          {
            instanceId: "instance-1",
            leaseId: "secret-lease",
            endpoint: "https://u:hunter2@h.example/mcp?key=hunter2#hunter2",
            transport: "streamable-http",
            setDigest: "sha256:s",
            ttlMs: 0,
            registeredAtMs: 1_000,
            revision: 12,
            requestId: "q",
            introspect: true,
            credential: "vault",
            sharePrivate: false,
            availability: "available",
            probing: DEFAULT_PROBING,
          },
        ],
        availability: "unavailable",
        breaker: { kind: "open", sinceMs: 1_500, untilMs: 9_000, attempt: 2 },
        conditions: [{ type: "Listed", status: "false", reason: "CONNECT_FAILED", message: "refused", sinceMs: 2_000 }],
        rejected: Array.from({ length: rejected }, (_, i) => ({ name: `r${i}`, reasons: ["bad"] })),
        rejectedCount: rejected,
        setDigest: "sha256:s",
        protocolVersion: "2025-11-25",
        listedAtMs: 0,
        pending: false,
        owner: "alice",
      },
      tools: [],
    });
    rig = await startRig({
      servers: async () => ({
        servers: [record("a", 60), record("b", 60)],
        nextPageToken: "n",
        position: POSITION,
        stale: true,
      }),
      server: async () => ({ server: record("a", 60), position: POSITION, stale: false }),
    });
    const client = rig.client();
    const { server } = await call(client, "GetServer", { server_id: "a" });
    expect(server).toMatchObject({
      server_id: "a",
      source: "TOOL_SOURCE_INTROSPECTED",
      retention: "RETENTION_STANDING",
      instances: [{ instance_id: "instance-1", endpoint: "https://h.example/mcp?key=***", lease_ttl: null }],
      availability: "AVAILABILITY_UNAVAILABLE",
      conditions: [
        {
          type: "CONDITION_TYPE_LISTED",
          status: "CONDITION_STATUS_FALSE",
          reason: "CONNECT_FAILED",
          since: { seconds: 2 },
        },
      ],
      etag: "r12",
      revision: formatRevision(POSITION),
      listed_at: null,
    });
    expect(JSON.stringify(server)).not.toMatch(/hunter2|secret-lease/);
    const page = await call(client, "ListServers", {});
    expect(page).toMatchObject({ next_page_token: "n", stale: true });
    expect(page.servers.map((s: any) => [s.rejected_tools.length, s.rejected_count])).toEqual([
      [60, 60],
      [40, 60],
    ]);
  });
});
