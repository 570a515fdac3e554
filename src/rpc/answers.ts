/**
 * Answers of the hot reads, put together from stored bytes: a protobuf message is the concatenation of its fields, so
 * stubs and definitions are never decoded and never encoded again.
 */
import type { Freshness, FullSchema, SchemaResult, SchemaView, StubsPage } from "../catalogue/api.js";
import { Fault } from "../domain/fault.js";
import { LIMITS } from "../domain/limits.js";
import { type Position, formatRevision } from "../domain/revision.js";
import { Freshness as WireFreshness, SchemaView as WireView } from "../gen/toolcrib/v1/registry_service_pb.js";
import { CODE_OF } from "./errors.js";
import { WireWriter } from "./wire-writer.js";

/** The same bytes as a Buffer, without a copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** An encoded google.protobuf.Timestamp. */
export function timestamp(ms: number): Buffer {
  const seconds = Math.floor(ms / 1_000);
  return new WireWriter()
    .int(1, seconds)
    .int(2, Math.floor(ms - seconds * 1_000) * 1_000_000)
    .finish();
}

/** An encoded GetStubsResponse, in parts that nobody has copied yet. */
export function stubsAnswer(page: StubsPage): readonly Uint8Array[] {
  const tail = new WireWriter()
    .text(2, page.nextPageToken)
    .text(3, formatRevision(page.position))
    .flag(4, page.notModified)
    .flag(5, page.stale);
  return [...page.frames, tail.finish()];
}

const FRESHNESS: Readonly<Record<Freshness, WireFreshness>> = {
  live: WireFreshness.LIVE,
  cached: WireFreshness.CACHED,
  stale: WireFreshness.STALE,
};

const VIEW: Readonly<Record<SchemaView, WireView>> = {
  full: WireView.FULL,
  "input-only": WireView.INPUT_ONLY,
  compact: WireView.COMPACT,
};

/** The parts of an encoded FullSchema; the definition itself is not copied. */
export function schemaParts(schema: FullSchema, view: SchemaView): readonly Uint8Array[] {
  const head = new WireWriter().text(1, schema.toolId);
  if (schema.definition.byteLength > 0) head.opening(2, schema.definition.byteLength);
  const tail = new WireWriter()
    .text(3, schema.digest)
    .int(4, FRESHNESS[schema.freshness])
    .nested(5, timestamp(schema.fetchedAtMs))
    .int(6, VIEW[view]);
  return [head.finish(), schema.definition, tail.finish()];
}

/** An encoded GetFullSchemaResponse, in parts: the definition is not copied here. */
export function schemaAnswer(schema: FullSchema, view: SchemaView, position: Position): readonly Uint8Array[] {
  const parts = schemaParts(schema, view);
  let length = 0;
  for (const part of parts) length += part.byteLength;
  const revision = new WireWriter().text(2, formatRevision(position)).finish();
  return [new WireWriter().opening(1, length).finish(), ...parts, revision];
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
  const writer = new WireWriter();
  let total = 0;
  for (const [i, result] of results.entries()) {
    const toolId = toolIds[i] ?? "";
    let element = resultBytes(toolId, result, view);
    if (result.kind === "schema" && total + element.byteLength > LIMITS.batchBytes) {
      element = resultBytes(toolId, { kind: "fault", fault: batchFull() }, view);
    }
    total += element.byteLength;
    writer.nested(1, element);
  }
  return writer.text(2, formatRevision(position)).finish();
}

function batchFull(): Fault {
  const message = `the answer would pass ${LIMITS.batchBytes} bytes: ask for this tool in another call`;
  return new Fault("QUOTA_EXCEEDED", message, { metadata: { quota: "batch_bytes", limit: String(LIMITS.batchBytes) } });
}

function resultBytes(toolId: string, result: SchemaResult, view: SchemaView): Buffer {
  const writer = new WireWriter().text(1, toolId);
  if (result.kind === "schema") writer.nested(2, ...schemaParts(result.schema, view));
  else writer.nested(3, errorBytes(result.fault));
  return writer.finish();
}

/** An encoded SchemaError. */
export function errorBytes(fault: Fault): Buffer {
  const writer = new WireWriter().int(1, CODE_OF[fault.status]).text(2, fault.reason).text(3, fault.message);
  for (const id of fault.substitutes) writer.text(4, id);
  if (fault.retryAfterMs !== undefined) writer.nested(5, duration(fault.retryAfterMs));
  return writer.finish();
}

function duration(ms: number): Buffer {
  const whole = Math.max(0, Math.ceil(ms));
  return new WireWriter()
    .int(1, Math.floor(whole / 1_000))
    .int(2, (whole % 1_000) * 1_000_000)
    .finish();
}
