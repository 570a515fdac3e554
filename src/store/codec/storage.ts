/**
 * Records and log entries as bytes (`toolcrib.storage.v1`, format 1). Decoded stubs are views into the bytes that were given.
 *
 * Versions that run side by side read each other's bytes. What a newer one adds (fields, conditions, transports) does not raise
 * the format: it is passed over here, and kept in `beyond` for whoever rewrites the rest. Other words that are not known
 * (an availability, a state of a breaker) are read as the plainest one and written back as that. A higher format means that passing
 * over is not enough, and is refused: a version that needs one reads both, and writes it once all replicas do.
 */
import { create, type DescMessage, fromBinary, type Message, mergeFromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
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
import { BreakerSchema, ChangeSchema, HeaderSchema, InstanceSchema, RecordSchema, ToolSchema } from "../../gen/toolcrib/storage/v1/storage_pb.js";
import * as enums from "./enums.js";
import { laidOf, wireLaid } from "./overlay.js";
import { quarantineOf, wireQuarantine } from "./quarantine.js";
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
  refuseNewer(message.format, `the stored record of revision ${revision}`);
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
  refuseNewer(message.format, `a log entry about server ${message.serverId}`);
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

/** A newer version of the registry wrote what this one does not read. The message is a sentence for the operator. */
export class NewerFormatError extends Error {
  override readonly name = "NewerFormatError";
}

function refuseNewer(format: number, what: string): void {
  if (format <= FORMAT) return;
  throw new NewerFormatError(
    `${what} is in format ${format}, and this version reads formats up to ${FORMAT}: a newer version of the registry uses this store, ` +
      "so upgrade this replica",
  );
}

/** What was read and is not understood: fields without a name here, and what `known` names. Undefined when that is nothing. */
function beyondOf<D extends DescMessage>(
  desc: D,
  { $unknown }: Message,
  known: MessageInitShape<D> | undefined,
): { readonly beyond?: Uint8Array } {
  if (!known && !$unknown?.length) return {};
  const message = create(desc, known);
  if ($unknown) (message as Message).$unknown = $unknown;
  return { beyond: toBinary(desc, message) };
}

function withBeyond<D extends DescMessage>(
  desc: D,
  known: MessageInitShape<D>,
  beyond: Uint8Array | undefined,
): MessageShape<D> {
  const message = create(desc, known);
  return beyond ? mergeFromBinary(desc, message, beyond) : message;
}

function wireTool({ name, stub, digestDeclared, overlay, quarantine, beyond }: Tool): WireTool {
  const known: MessageInitShape<typeof ToolSchema> = {
    name,
    stub: stub as Uint8Array<ArrayBuffer>,
    digestDeclared,
    ...(overlay && { overlay: wireLaid(overlay) }),
    ...(quarantine && { quarantine: wireQuarantine({ ...quarantine, toolName: "" }) }),
  };
  return withBeyond(ToolSchema, known, beyond);
}

function toolOf(wire: WireTool): Tool {
  const { tags, digest } = stubFacts(wire.stub);
  const { name, stub, digestDeclared, overlay, quarantine } = wire;
  return {
    name,
    stub,
    tags,
    digest,
    digestDeclared,
    ...(overlay && { overlay: laidOf(overlay, name, stub) }),
    ...(quarantine && { quarantine: quarantineOf(quarantine, name) }),
    ...beyondOf(ToolSchema, wire, undefined),
  };
}

function wireHeader(header: ServerHeader): Header {
  const known: MessageInitShape<typeof HeaderSchema> = {
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
  return withBeyond(HeaderSchema, known, header.beyond);
}

function headerOf(wire: Header): ServerHeader {
  const strange = wire.conditions.filter((c) => !enums.conditionTypeWord(c.type));
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
    ...beyondOf(HeaderSchema, wire, strange.length > 0 ? { conditions: strange } : undefined),
  };
}

function wireInstance(instance: Instance): WireInstance {
  const known: MessageInitShape<typeof InstanceSchema> = {
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
  return withBeyond(InstanceSchema, known, instance.beyond);
}

function instanceOf(wire: WireInstance): Instance {
  const transport = enums.transportWord(wire.transport);
  return {
    instanceId: wire.instanceId,
    leaseId: wire.leaseId,
    endpoint: wire.endpoint,
    transport: transport ?? "streamable-http",
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
    ...beyondOf(InstanceSchema, wire, transport || wire.transport === 0 ? undefined : { transport: wire.transport }),
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
