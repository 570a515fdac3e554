/**
 * Answers of the hot reads, put together from stored bytes: a protobuf message is the concatenation of its fields, so
 * stubs and definitions are never decoded and never encoded again.
 */
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { Freshness, FullSchema, SchemaResult, SchemaView, StubsPage } from "../catalogue/api.js";
import { Fault } from "../domain/fault.js";
import { LIMITS } from "../domain/limits.js";
import { type Position, formatRevision } from "../domain/revision.js";
import { Freshness as WireFreshness, SchemaView as WireView } from "../gen/toolcrib/v1/registry_service_pb.js";
import { CODE_OF } from "./errors.js";

/** The same bytes as a Buffer, without a copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function text(writer: BinaryWriter, field: number, value: string): BinaryWriter {
  return value === "" ? writer : writer.tag(field, WireType.LengthDelimited).string(value);
}

export function flag(writer: BinaryWriter, field: number, value: boolean): BinaryWriter {
  return value ? writer.tag(field, WireType.Varint).bool(true) : writer;
}

export function int(writer: BinaryWriter, field: number, value: number): BinaryWriter {
  return value === 0 ? writer : writer.tag(field, WireType.Varint).int32(value);
}

/** A nested message, given in parts; present even when it is empty. */
export function nested(writer: BinaryWriter, field: number, ...parts: readonly Uint8Array[]): BinaryWriter {
  writer.tag(field, WireType.LengthDelimited).uint32(parts.reduce((sum, part) => sum + part.byteLength, 0));
  for (const part of parts) writer.raw(part);
  return writer;
}

/** An encoded google.protobuf.Timestamp. */
export function timestamp(ms: number): Uint8Array {
  const seconds = Math.floor(ms / 1_000);
  const writer = new BinaryWriter();
  if (seconds !== 0) writer.tag(1, WireType.Varint).int64(seconds);
  return int(writer, 2, Math.floor(ms - seconds * 1_000) * 1_000_000).finish();
}

/** An encoded GetStubsResponse. */
export function stubsAnswer(page: StubsPage): Buffer {
  const tail = new BinaryWriter();
  text(tail, 2, page.nextPageToken);
  text(tail, 3, formatRevision(page.position));
  flag(tail, 4, page.notModified);
  flag(tail, 5, page.stale);
  return Buffer.concat([page.frames, tail.finish()]);
}

const FRESHNESS: Readonly<Record<Freshness, WireFreshness>> = {
  live: WireFreshness.LIVE,
  cached: WireFreshness.CACHED,
  stale: WireFreshness.STALE,
};

const VIEW: Readonly<Record<SchemaView, WireView>> = {
  full: WireView.FULL,
  "input-only": WireView.INPUT_ONLY,
};

/** The parts of an encoded FullSchema; the definition itself is not copied. */
function schemaParts(schema: FullSchema, view: SchemaView): readonly Uint8Array[] {
  const head = text(new BinaryWriter(), 1, schema.toolId);
  if (schema.definition.byteLength > 0) head.tag(2, WireType.LengthDelimited).uint32(schema.definition.byteLength);
  const tail = new BinaryWriter();
  text(tail, 3, schema.digest);
  int(tail, 4, FRESHNESS[schema.freshness]);
  nested(tail, 5, timestamp(schema.fetchedAtMs));
  int(tail, 6, VIEW[view]);
  return [head.finish(), schema.definition, tail.finish()];
}

/** An encoded GetFullSchemaResponse. */
export function schemaAnswer(schema: FullSchema, view: SchemaView, position: Position): Buffer {
  const writer = new BinaryWriter();
  nested(writer, 1, ...schemaParts(schema, view));
  text(writer, 2, formatRevision(position));
  return asBuffer(writer.finish());
}

/**
 * An encoded BatchGetFullSchemasResponse, results in the order asked. Definitions that would take it past
 * LIMITS.batchBytes are replaced by QUOTA_EXCEEDED.
 */
export function schemasAnswer(
  toolIds: readonly string[],
  results: readonly SchemaResult[],
  view: SchemaView,
  position: Position,
): Buffer {
  const writer = new BinaryWriter();
  let total = 0;
  for (const [i, result] of results.entries()) {
    const toolId = toolIds[i] ?? "";
    let element = resultBytes(toolId, result, view);
    if (result.kind === "schema" && total + element.byteLength > LIMITS.batchBytes) {
      element = resultBytes(toolId, { kind: "fault", fault: batchFull() }, view);
    }
    total += element.byteLength;
    nested(writer, 1, element);
  }
  text(writer, 2, formatRevision(position));
  return asBuffer(writer.finish());
}

function batchFull(): Fault {
  const message = `the answer would pass ${LIMITS.batchBytes} bytes: ask for this tool in another call`;
  return new Fault("QUOTA_EXCEEDED", message, { metadata: { quota: "batch_bytes", limit: String(LIMITS.batchBytes) } });
}

function resultBytes(toolId: string, result: SchemaResult, view: SchemaView): Uint8Array {
  const writer = new BinaryWriter();
  text(writer, 1, toolId);
  if (result.kind === "schema") nested(writer, 2, ...schemaParts(result.schema, view));
  else nested(writer, 3, errorBytes(result.fault));
  return writer.finish();
}

function errorBytes(fault: Fault): Uint8Array {
  const writer = new BinaryWriter();
  int(writer, 1, CODE_OF[fault.status]);
  text(writer, 2, fault.reason);
  text(writer, 3, fault.message);
  for (const id of fault.substitutes) text(writer, 4, id);
  if (fault.retryAfterMs !== undefined) nested(writer, 5, duration(fault.retryAfterMs));
  return writer.finish();
}

function duration(ms: number): Uint8Array {
  const whole = Math.max(0, Math.ceil(ms));
  const writer = new BinaryWriter();
  int(writer, 1, Math.floor(whole / 1_000));
  int(writer, 2, (whole % 1_000) * 1_000_000);
  return writer.finish();
}
