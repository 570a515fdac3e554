/** Requests and answers as a history tells them. */
import { fromBinary } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { readDefinition } from "../../src/domain/definition.js";
import { everything, type Filter } from "../../src/domain/filter.js";
import { DEFAULT_NAMESPACE } from "../../src/domain/ids.js";
import { LIMITS } from "../../src/domain/limits.js";
import {
  DeregisterRequestSchema,
  DeregisterResponseSchema,
  EventType,
  Freshness,
  GetFullSchemaRequestSchema,
  GetFullSchemaResponseSchema,
  GetStubsRequestSchema,
  GetStubsResponseSchema,
  ListServersRequestSchema,
  ListServersResponseSchema,
  GetServerRequestSchema,
  GetServerResponseSchema,
  RegisterRequestSchema,
  RegisterResponseSchema,
  RenewRequestSchema,
  RenewResponseSchema,
  RenewResult_State as RenewState,
  SchemaView,
  ToolResult_Outcome as ToolOutcome,
  WatchRequestSchema,
  WatchResponseSchema,
} from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import { IsolateServerRequestSchema, IsolateServerResponseSchema } from "../../src/gen/toolcrib/v1/admin_service_pb.js";
import { BreakerState, type Server } from "../../src/gen/toolcrib/v1/server_pb.js";
import { Availability, type StubFilter } from "../../src/gen/toolcrib/v1/stub_pb.js";
import { Checks } from "../../src/rpc/translate/checks.js";
import { toFilter } from "../../src/rpc/translate/filter.js";
import { framesOf, seenStub } from "./frames.js";
import type { AnyCall, SeenServer, SentTool, WatchMessage } from "./history.js";
import type { MethodName } from "./methods.js";

/** What of a call is known when it is made; `read` makes the rest from the answer. */
export interface Decoded {
  readonly known: Omit<AnyCall, "call" | "back" | "outcome" | "replica">;
  read(answer: Uint8Array): unknown;
}

/** Undefined for a method that no promise asks about. */
export function decodeCall(method: MethodName, request: Uint8Array): Decoded | undefined {
  switch (method) {
    case "register":
      return registerCall(request);
    case "renew":
      return renewCall(request);
    case "deregister":
      return deregisterCall(request);
    case "getStubs":
      return stubsCall(request);
    case "getFullSchema":
      return schemaCall(request);
    case "listServers":
    case "getServer":
      return serversCall(method, request);
    case "isolateServer":
    case "resumeServer":
    case "refreshServer":
      return operatorCall(method, request);
    case "quarantineTool":
    case "approveTool":
    case "batchGetFullSchemas":
      return undefined;
  }
}

const namespaceOf = (asked: string): string => asked || DEFAULT_NAMESPACE;
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");

function registerCall(bytes: Uint8Array): Decoded {
  const request = fromBinary(RegisterRequestSchema, bytes);
  const { retention, offer } = request;
  const leaseMs = retention.case === "leaseTtl" ? durationMs(retention.value) : LIMITS.leaseDefaultMs;
  const known = {
    kind: "register",
    namespace: namespaceOf(request.namespace),
    serverId: request.serverId,
    instanceId: request.instanceId,
    requestId: request.requestId,
    offer: offer.case ?? "none",
    ttlMs: retention.case === "standing" && retention.value ? 0 : leaseMs,
    validateOnly: request.validateOnly,
    tools: offer.case === "declared" ? offer.value.tools.map((t) => sentTool(t.stub, definitionOf(t))) : [],
  } as const;
  return {
    known,
    read(answer) {
      const { revision, lease, tools } = fromBinary(RegisterResponseSchema, answer);
      const results = tools.map((t) => ({ name: t.name, rejected: t.outcome === ToolOutcome.REJECTED }));
      return { revision, leaseId: lease?.leaseId ?? "", tools: results };
    },
  };
}

function definitionOf({ definition, definitionJson }: { definition: Uint8Array; definitionJson: string }): Uint8Array {
  return definition.byteLength > 0 ? definition : Buffer.from(definitionJson);
}

function sentTool(stub: { name: string; digest: string } | undefined, definition: Uint8Array): SentTool {
  if (definition.byteLength === 0) return { name: stub?.name ?? "", digest: stub?.digest ?? "", bytes: "" };
  const read = readDefinition(definition);
  if (!read.ok) return { name: stub?.name ?? "", digest: "", bytes: base64(definition) };
  return { name: read.definition.name, digest: read.definition.digest, bytes: base64(definition) };
}

function renewCall(bytes: Uint8Array): Decoded {
  const { namespace, leases } = fromBinary(RenewRequestSchema, bytes);
  const known = { kind: "renew", namespace: namespaceOf(namespace), leaseIds: leases.map((l) => l.leaseId) } as const;
  return {
    known,
    read: (answer) => ({
      states: fromBinary(RenewResponseSchema, answer).results.map((r) => RenewState[r.state] as string),
    }),
  };
}

function deregisterCall(bytes: Uint8Array): Decoded {
  const { namespace, target } = fromBinary(DeregisterRequestSchema, bytes);
  const kinds = { leaseId: "lease", serverId: "server", toolId: "tool" } as const;
  const known = {
    kind: "deregister",
    namespace: namespaceOf(namespace),
    target: target.case ? { kind: kinds[target.case], id: target.value } : { kind: "none", id: "" },
  } as const;
  return {
    known,
    read(answer) {
      const { revision, removed } = fromBinary(DeregisterResponseSchema, answer);
      return { revision, removed };
    },
  };
}

function operatorCall(method: "isolateServer" | "resumeServer" | "refreshServer", bytes: Uint8Array): Decoded {
  // The three requests and answers share the numbers of the fields that are read here.
  const { namespace, serverId } = fromBinary(IsolateServerRequestSchema, bytes);
  const action = method.replace("Server", "") as "isolate" | "resume" | "refresh";
  const known = { kind: "operator", namespace: namespaceOf(namespace), action, serverId } as const;
  return { known, read: (answer) => ({ revision: fromBinary(IsolateServerResponseSchema, answer).revision }) };
}

function stubsCall(bytes: Uint8Array): Decoded {
  const request = fromBinary(GetStubsRequestSchema, bytes);
  const { pageSize, pageToken, minRevision } = request;
  const filter = readFilter(request.namespace, request.filter);
  const known = { kind: "stubs", namespace: filter.namespace, filter, pageSize, pageToken, minRevision } as const;
  return {
    known,
    read(answer) {
      const { revision, stale, notModified, nextPageToken } = fromBinary(GetStubsResponseSchema, answer);
      return { revision, stale, notModified, nextPageToken, frames: base64(framesOf(answer)) };
    },
  };
}

const FRESHNESS = { [Freshness.LIVE]: "live", [Freshness.STALE]: "stale" } as Record<number, string>;

function schemaCall(bytes: Uint8Array): Decoded {
  const { namespace, key, view, minRevision } = fromBinary(GetFullSchemaRequestSchema, bytes);
  const known = {
    kind: "schema",
    namespace: namespaceOf(namespace),
    toolId: key.case === "toolId" ? key.value : "",
    view: view === SchemaView.UNSPECIFIED || view === SchemaView.FULL ? "full" : "part",
    minRevision,
  } as const;
  return {
    known,
    read(answer) {
      const { schema, revision } = fromBinary(GetFullSchemaResponseSchema, answer);
      const freshness = FRESHNESS[schema?.freshness ?? 0] ?? "cached";
      return { revision, digest: schema?.digest ?? "", bytes: base64(schema?.definition ?? new Uint8Array()), freshness };
    },
  };
}

function serversCall(method: "listServers" | "getServer", bytes: Uint8Array): Decoded {
  const schema = method === "getServer" ? GetServerRequestSchema : ListServersRequestSchema;
  const { namespace, minRevision } = fromBinary<typeof GetServerRequestSchema | typeof ListServersRequestSchema>(schema, bytes);
  const known = { kind: "servers", namespace: namespaceOf(namespace), minRevision } as const;
  return {
    known,
    read(answer) {
      if (method === "getServer") {
        const { server, revision, stale } = fromBinary(GetServerResponseSchema, answer);
        return { revision, stale, servers: server ? [seenServer(server)] : [] };
      }
      const { servers, revision, stale } = fromBinary(ListServersResponseSchema, answer);
      return { revision, stale, servers: servers.map(seenServer) };
    },
  };
}

function seenServer({ serverId, availability, breaker }: Server): SeenServer {
  const word = (BreakerState[breaker] as string).toLowerCase().replace("_", "-");
  return { serverId, available: availability === Availability.AVAILABLE, breaker: word };
}

/** A filter that the registry refuses stands for everything: nothing is answered under it. */
export function readFilter(asked: string, filter: StubFilter | undefined): Filter {
  const namespace = namespaceOf(asked);
  try {
    return { ...toFilter(namespace, filter, new Checks()), namespace };
  } catch {
    return everything(namespace);
  }
}

export function decodeWatch(bytes: Uint8Array): { filter: Filter; resumeToken: string } {
  const request = fromBinary(WatchRequestSchema, bytes);
  return { filter: readFilter(request.namespace, request.filter), resumeToken: request.resumeToken };
}

export function decodeMessage(bytes: Uint8Array): WatchMessage {
  const { message: m } = fromBinary(WatchResponseSchema, bytes);
  switch (m.case) {
    case "snapshot": {
      const { stubs, last, resumeToken: token, revision } = m.value;
      return { kind: "snapshot", stubs: stubs.map(seenStub), last, token, revision };
    }
    case "change": {
      const { resumeToken: token, revision } = m.value;
      const events = m.value.events.map((e) => ({
        type: EventType[e.type] as string,
        toolId: e.toolId,
        serverId: e.serverId,
        stub: e.stub && seenStub(e.stub),
        oldDigest: e.oldDigest,
        newDigest: e.newDigest,
        availability: e.availability,
      }));
      return { kind: "change", events, token, revision };
    }
    case "bookmark":
      return { kind: "bookmark", token: m.value.resumeToken, revision: m.value.revision };
    default:
      throw new Error("a watch message that is none of those that this test knows");
  }
}
