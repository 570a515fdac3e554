/**
 * Records and log entries as bytes (`toolcrib.storage.v1`, format 1). Fields and words of a newer format are passed over
 * where the rest can be read. Decoded stubs are views into the bytes that were given.
 */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Change, ToolChange } from "../../domain/change.js";
import { stampInstances } from "../../domain/change.js";
import { DEFAULT_PROBING, type Probing, sameProbing } from "../../domain/health/probing.js";
import {
  BREAKER_CLOSED,
  type Condition,
  type Instance,
  type PublishedBreaker,
  type ServerHeader,
  type ServerRecord,
  type Tool,
} from "../../domain/server.js";
import type {
  Breaker as WireBreaker,
  Condition as WireCondition,
  Header,
  Instance as WireInstance,
  Probing as WireProbing,
} from "../../gen/toolcrib/storage/v1/storage_pb.js";
import type { Tool as WireTool } from "../../gen/toolcrib/storage/v1/storage_pb.js";
import { BreakerSchema, ChangeSchema, HeaderSchema, RecordSchema, ToolSchema } from "../../gen/toolcrib/storage/v1/storage_pb.js";
import * as enums from "./enums.js";
import { stubFacts } from "./stub.js";

const FORMAT = 1;

export function encodeRecord(record: Omit<ServerRecord, "revision">): Uint8Array {
  const message = create(RecordSchema, {
    format: FORMAT,
    header: wireHeader(record.header),
    tools: record.tools.map(wireTool),
  });
  return toBinary(RecordSchema, message);
}

/** `revision` is kept beside the bytes; instances that say 0 get it. Throws an Error for bytes that are not a record. */
export function decodeRecord(bytes: Uint8Array, revision: number): ServerRecord {
  const message = fromBinary(RecordSchema, bytes);
  if (!message.header) throw new Error(`the stored record of revision ${revision} has no header`);
  return {
    revision,
    header: stampInstances(headerOf(message.header), revision),
    tools: message.tools.map(toolOf),
  };
}

export function encodeChange(change: Change): Uint8Array {
  const message = create(ChangeSchema, {
    format: FORMAT,
    ...(change.header && { header: wireHeader(change.header) }),
    namespace: change.namespace,
    serverId: change.serverId,
    cause: enums.causeNumber(change.cause),
    tools: change.tools.map((t) => ({
      name: t.name,
      ...(t.before && { before: wireTool(t.before) }),
      ...(t.after && { after: wireTool(t.after) }),
    })),
    availabilityBefore: change.availabilityBefore ? enums.availabilityNumber(change.availabilityBefore) : 0,
  });
  return toBinary(ChangeSchema, message);
}

/** Instances that say revision 0 keep saying so: they mean the entry's own. Throws an Error for bytes that are not a change. */
export function decodeChange(bytes: Uint8Array): Change {
  const message = fromBinary(ChangeSchema, bytes);
  return {
    namespace: message.namespace,
    serverId: message.serverId,
    // A cause of a newer version is read as the plainest one: only the kind of a removal depends on it.
    cause: enums.causeWord(message.cause) ?? "register",
    header: message.header ? headerOf(message.header) : null,
    tools: message.tools.map(
      (t): ToolChange => ({
        name: t.name,
        ...(t.before && { before: toolOf(t.before) }),
        ...(t.after && { after: toolOf(t.after) }),
      }),
    ),
    availabilityBefore: enums.availabilityWord(message.availabilityBefore) ?? null,
  };
}

function wireTool(tool: Tool): MessageInitShape<typeof ToolSchema> {
  return { name: tool.name, stub: tool.stub as Uint8Array<ArrayBuffer>, digestDeclared: tool.digestDeclared };
}

function toolOf(wire: WireTool): Tool {
  const { tags, digest } = stubFacts(wire.stub);
  return { name: wire.name, stub: wire.stub, tags, digest, digestDeclared: wire.digestDeclared };
}

function wireHeader(header: ServerHeader): MessageInitShape<typeof HeaderSchema> {
  return {
    namespace: header.namespace,
    serverId: header.serverId,
    title: header.title,
    tags: [...header.tags],
    source: enums.sourceNumber(header.source),
    retention: enums.retentionNumber(header.retention),
    instances: header.instances.map(wireInstance),
    availability: enums.availabilityNumber(header.availability),
    conditions: header.conditions.map((c) => ({
      type: enums.conditionTypeNumber(c.type),
      status: enums.conditionStatusNumber(c.status),
      reason: c.reason,
      message: c.message,
      sinceMs: BigInt(c.sinceMs),
    })),
    rejected: header.rejected.map((r) => ({ name: r.name, reasons: [...r.reasons] })),
    rejectedCount: header.rejectedCount,
    setDigest: header.setDigest,
    protocolVersion: header.protocolVersion,
    listedAtMs: BigInt(header.listedAtMs),
    pending: header.pending,
    owner: header.owner,
    ...(header.breaker.kind !== "closed" && { breaker: wireBreaker(header.breaker) }),
  };
}

function headerOf(wire: Header): ServerHeader {
  return {
    namespace: wire.namespace,
    serverId: wire.serverId,
    title: wire.title,
    tags: wire.tags,
    source: enums.sourceWord(wire.source) ?? "declared",
    retention: enums.retentionWord(wire.retention) ?? "leased",
    instances: wire.instances.map(instanceOf),
    availability: enums.availabilityWord(wire.availability) ?? "unavailable",
    conditions: wire.conditions.map(conditionOf).filter((c) => c !== undefined),
    rejected: wire.rejected.map((r) => ({ name: r.name, reasons: r.reasons })),
    rejectedCount: wire.rejectedCount,
    setDigest: wire.setDigest,
    protocolVersion: wire.protocolVersion,
    listedAtMs: Number(wire.listedAtMs),
    pending: wire.pending,
    owner: wire.owner,
    breaker: breakerOf(wire.breaker),
  };
}

function wireInstance(instance: Instance): NonNullable<MessageInitShape<typeof HeaderSchema>["instances"]>[number] {
  return {
    instanceId: instance.instanceId,
    leaseId: instance.leaseId,
    endpoint: instance.endpoint,
    transport: enums.transportNumber(instance.transport),
    setDigest: instance.setDigest,
    ttlMs: BigInt(instance.ttlMs),
    registeredAtMs: BigInt(instance.registeredAtMs),
    revision: BigInt(instance.revision),
    requestId: instance.requestId,
    introspect: instance.introspect,
    credential: instance.credential,
    sharePrivate: instance.sharePrivate,
    availability: enums.availabilityNumber(instance.availability),
    ...(!sameProbing(instance.probing, DEFAULT_PROBING) && { probing: instance.probing }),
  };
}

function instanceOf(wire: WireInstance): Instance {
  return {
    instanceId: wire.instanceId,
    leaseId: wire.leaseId,
    endpoint: wire.endpoint,
    transport: enums.transportWord(wire.transport) ?? "streamable-http",
    setDigest: wire.setDigest,
    ttlMs: Number(wire.ttlMs),
    registeredAtMs: Number(wire.registeredAtMs),
    revision: Number(wire.revision),
    requestId: wire.requestId,
    introspect: wire.introspect,
    credential: wire.credential,
    sharePrivate: wire.sharePrivate,
    // Instances in records from before they were probed are taken to be there until a probe says otherwise.
    availability: enums.availabilityWord(wire.availability) ?? "available",
    probing: wire.probing ? probingOf(wire.probing) : DEFAULT_PROBING,
  };
}

function probingOf({ intervalMs, timeoutMs, fall, rise, off }: WireProbing): Probing {
  return { intervalMs, timeoutMs, fall, rise, off };
}

function wireBreaker(breaker: PublishedBreaker): MessageInitShape<typeof BreakerSchema> {
  const state = enums.breakerNumber(breaker.kind);
  if (breaker.kind === "closed") return { state };
  const sinceMs = BigInt(breaker.sinceMs);
  if (breaker.kind === "isolated") return { state, sinceMs, by: breaker.by, why: breaker.why };
  return { state, sinceMs, untilMs: BigInt(breaker.untilMs), attempt: breaker.attempt };
}

/** A state that a newer version wrote is read as closed: the next probe says what is so. */
function breakerOf(wire: WireBreaker | undefined): PublishedBreaker {
  const kind = wire && enums.breakerWord(wire.state);
  if (!wire || !kind || kind === "closed") return BREAKER_CLOSED;
  const sinceMs = Number(wire.sinceMs);
  if (kind === "isolated") return { kind, sinceMs, by: wire.by, why: wire.why };
  return { kind, sinceMs, untilMs: Number(wire.untilMs), attempt: wire.attempt };
}

/** Undefined for a type that this version does not know. */
function conditionOf(wire: WireCondition): Condition | undefined {
  const type = enums.conditionTypeWord(wire.type);
  if (!type) return undefined;
  const status = enums.conditionStatusWord(wire.status) ?? "unknown";
  return { type, status, reason: wire.reason, message: wire.message, sinceMs: Number(wire.sinceMs) };
}
