/** Register, Renew, Deregister: between protobuf and the use-cases' values. What a value may be is decided there. */
import { create } from "@bufbuild/protobuf";
import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import type {
  DeclaredLabel,
  DeclaredTool,
  DeregisterOutput,
  DeregisterTarget,
  Offer,
  RegisterInput,
  RegisterOutput,
  RenewOutput,
  RenewState,
  ToolOutcome,
} from "../../catalogue/api.js";
import { checkRegister } from "../../domain/admission/register.js";
import { DEFAULT_PROBING, type Probing } from "../../domain/health/probing.js";
import { invalidRequest } from "../../domain/fault.js";
import { LIMITS } from "../../domain/limits.js";
import { formatRevision } from "../../domain/revision.js";
import type { Precondition } from "../../domain/stub.js";
import {
  type DeclaredTool as WireTool,
  type DeregisterRequest,
  type DeregisterResponse,
  DeregisterResponseSchema,
  LeaseSchema,
  type RegisterRequest,
  type RegisterResponse,
  RegisterResponseSchema,
  type RenewRequest,
  type RenewResponse,
  RenewResponseSchema,
  RenewResultSchema,
  RenewResult_State,
  ToolResultSchema,
  ToolResult_Outcome,
} from "../../gen/toolcrib/v1/registry_service_pb.js";
import { type ProbeSettings, Transport } from "../../gen/toolcrib/v1/server_pb.js";
import type { Precondition as WirePrecondition, Stub } from "../../gen/toolcrib/v1/stub_pb.js";
import { hintsOf, preconditionOf } from "../../store/codec/stub.js";
import { Checks } from "./checks.js";
import { fromWarnings } from "./quality.js";

const TRANSPORT: ReadonlyMap<Transport, RegisterInput["transport"]> = new Map([
  [Transport.UNSPECIFIED, "streamable-http"],
  [Transport.STREAMABLE_HTTP, "streamable-http"],
  [Transport.HTTP_SSE, "http-sse"],
]);

export function toRegisterInput(request: RegisterRequest): RegisterInput {
  const checks = new Checks();
  const transport = TRANSPORT.get(request.transport);
  if (!transport) checks.add("transport", `${String(request.transport)} is not a value of Transport`);
  const input = {
    namespace: request.namespace,
    serverId: request.serverId,
    instanceId: request.instanceId,
    endpoint: request.endpoint,
    transport: transport ?? "streamable-http",
    title: request.title,
    tags: request.tags,
    retention: toRetention(request.retention),
    offer: toOffer(request.offer),
    etag: request.etag,
    requestId: request.requestId,
    validateOnly: request.validateOnly,
    allowEmpty: request.allowEmpty,
    strict: request.strict,
    credential: request.credential,
    sharePrivate: request.sharePrivate,
    probing: toProbing(request.probe),
  };
  // What only the wire can get wrong is told together with all the rest.
  if (checks.violations.length > 0) throw invalidRequest([...checks.violations, ...checkRegister(input)]);
  return input;
}

function toProbing(probe: ProbeSettings | undefined): Probing {
  if (!probe) return DEFAULT_PROBING;
  const { interval, timeout, fall, rise, off } = probe;
  return { intervalMs: interval ? durationMs(interval) : 0, timeoutMs: timeout ? durationMs(timeout) : 0, fall, rise, off };
}

function toRetention(retention: RegisterRequest["retention"]): RegisterInput["retention"] {
  if (retention.case === "standing" && retention.value) return { kind: "standing" };
  if (retention.case !== "leaseTtl") return { kind: "leased", ttlMs: undefined };
  // Leases count whole milliseconds; rounded up, because a lease never ends early (P6).
  return { kind: "leased", ttlMs: Math.ceil(Number(retention.value.seconds) * 1_000 + retention.value.nanos / 1e6) };
}

function toOffer(offer: RegisterRequest["offer"]): Offer {
  switch (offer.case) {
    case "introspect":
      return { kind: "introspect" };
    case "declared":
      return { kind: "declared", tools: offer.value.tools.map(toTool) };
    default:
      return { kind: "none" };
  }
}

function toTool(tool: WireTool): DeclaredTool {
  const label = tool.stub && toLabel(tool.stub);
  const { definition, definitionJson } = tool;
  if (definitionJson === "") {
    // A copy: a slice would keep the whole request in memory for as long as the definition is cached.
    return { label, definition: definition.byteLength > 0 ? Uint8Array.from(definition) : undefined };
  }
  const read = { label, definition: Buffer.from(definitionJson, "utf8") };
  return definition.byteLength > 0
    ? { ...read, wireProblem: "holds both definition and definition_json: give one of the two" }
    : read;
}

function toLabel(stub: Stub): DeclaredLabel {
  return {
    name: stub.name,
    title: stub.title,
    briefDescription: stub.briefDescription,
    tags: stub.tags,
    keywords: stub.keywords,
    useWhen: stub.useWhen,
    schemaUri: stub.schemaUri,
    hints: hintsOf(stub.hints),
    requires: stub.requires.map(toPrecondition),
    substitutes: stub.substitutes,
    digest: stub.digest,
  };
}

/**
 * Dropping a precondition that cannot be read (unset, or of a kind that this version does not know) would offer a tool where
 * it must not be: it becomes an empty one, for which admission rejects this tool alone (P9).
 */
function toPrecondition(wire: WirePrecondition): Precondition {
  return preconditionOf(wire) ?? { kind: "scope", value: "" };
}

const OUTCOME: Readonly<Record<ToolOutcome["outcome"], ToolResult_Outcome>> = {
  accepted: ToolResult_Outcome.ACCEPTED,
  unchanged: ToolResult_Outcome.UNCHANGED,
  rejected: ToolResult_Outcome.REJECTED,
};

export function fromRegisterOutput(output: RegisterOutput): RegisterResponse {
  const { lease } = output;
  return create(RegisterResponseSchema, {
    revision: formatRevision(output.position),
    setDigest: output.setDigest,
    lease:
      lease &&
      create(LeaseSchema, {
        leaseId: lease.leaseId,
        ttl: durationFromMs(lease.ttlMs),
        renewAfter: durationFromMs(Math.round(lease.renewAfterMs)),
      }),
    tools: output.tools.map((tool) =>
      create(ToolResultSchema, {
        name: tool.name,
        outcome: OUTCOME[tool.outcome],
        reasons: [...tool.reasons],
        digest: tool.digest,
        warnings: fromWarnings(tool.warnings ?? []),
      }),
    ),
    etag: output.etag,
    pending: output.pending,
  });
}

export function toRenewals(request: RenewRequest): {
  namespace: string;
  leases: { leaseId: string; setDigest: string }[];
} {
  const checks = new Checks();
  const namespace = checks.namespace(request.namespace);
  checks.count("leases", request.leases.length, LIMITS.renewLeases);
  checks.done();
  return { namespace, leases: request.leases.map(({ leaseId, setDigest }) => ({ leaseId, setDigest })) };
}

const STATE: Readonly<Record<RenewState, RenewResult_State>> = {
  ok: RenewResult_State.OK,
  superseded: RenewResult_State.SUPERSEDED,
  "register-again": RenewResult_State.REGISTER_AGAIN,
  "unknown-lease": RenewResult_State.UNKNOWN_LEASE,
  deregistered: RenewResult_State.DEREGISTERED,
};

export function fromRenewals(outputs: readonly RenewOutput[]): RenewResponse {
  return create(RenewResponseSchema, {
    results: outputs.map((output) =>
      create(RenewResultSchema, {
        leaseId: output.leaseId,
        state: STATE[output.state],
        renewAfter: durationFromMs(Math.round(output.renewAfterMs)),
      }),
    ),
  });
}

export function toTarget(request: DeregisterRequest): { namespace: string; target: DeregisterTarget } {
  const checks = new Checks();
  const namespace = checks.namespace(request.namespace);
  const { target } = request;
  if (target.case === undefined) checks.add("target", "one of lease_id, server_id or tool_id must be set");
  if (target.case === "serverId") checks.name("server_id", "server_id", target.value);
  if (target.case === "toolId") checks.toolId("tool_id", target.value);
  checks.done();
  switch (target.case) {
    case "leaseId":
      return { namespace, target: { kind: "lease", leaseId: target.value } };
    case "serverId":
      return { namespace, target: { kind: "server", serverId: target.value } };
    case "toolId":
      return { namespace, target: { kind: "tool", toolId: target.value } };
    default:
      return { namespace, target: { kind: "none" } };
  }
}

export function fromDeregisterOutput(output: DeregisterOutput): DeregisterResponse {
  return create(DeregisterResponseSchema, {
    revision: output.position ? formatRevision(output.position) : "",
    removed: output.removed,
  });
}
