/** Labels as bytes: the stored form of a stub, and its frame inside a list. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import type { StubCodec } from "../../catalogue/ports.js";
import { toolId } from "../../domain/ids.js";
import type { Availability, Tool } from "../../domain/server.js";
import type { AnnotationHints, Precondition, StubFields } from "../../domain/stub.js";
import { estimatedTokens } from "../../domain/stub.js";
import type { AnnotationHints as WireHints, Precondition as WirePrecondition } from "../../gen/toolcrib/v1/stub_pb.js";
import { AnnotationHintsSchema, StubSchema } from "../../gen/toolcrib/v1/stub_pb.js";
import { availabilityNumber } from "./enums.js";
import { overlayCodec } from "./overlay.js";
import { quarantineCodec } from "./quarantine.js";

/** Field numbers of `toolcrib.v1.Stub` that are read or written without decoding the rest. */
const TAGS_FIELD = 6;
const AVAILABILITY_TAG = (13 << 3) | WireType.Varint;
const DIGEST_FIELD = 14;
/** Tag of `repeated Stub stubs = 1`. */
const STUBS_TAG = (1 << 3) | WireType.LengthDelimited;
/** The availability field appended to a stub: a tag and a value, one byte each. */
const AVAILABILITY_BYTES = 2;

export const stubCodec: StubCodec = { encode, decode, frame, overlays: overlayCodec, quarantines: quarantineCodec };

function encode(stub: StubFields, digestDeclared: boolean): Tool {
  const message = create(StubSchema, {
    toolId: toolId(stub.serverId, stub.name),
    serverId: stub.serverId,
    name: stub.name,
    title: stub.title,
    briefDescription: stub.briefDescription,
    tags: [...stub.tags],
    keywords: [...stub.keywords],
    useWhen: stub.useWhen,
    schemaUri: stub.schemaUri,
    hints: wireHints(stub.hints),
    requires: stub.requires.map((r) => ({ kind: { case: r.kind, value: r.value } })),
    substitutes: [...stub.substitutes],
    digest: stub.digest,
    sizeBytes: stub.sizeBytes,
    estimatedTokens: estimatedTokens(stub.sizeBytes),
  });
  return {
    name: stub.name,
    stub: toBinary(StubSchema, message),
    tags: [...stub.tags],
    digest: stub.digest,
    digestDeclared,
  };
}

function decode(bytes: Uint8Array): StubFields {
  const stub = fromBinary(StubSchema, bytes);
  return {
    serverId: stub.serverId,
    name: stub.name,
    title: stub.title,
    briefDescription: stub.briefDescription,
    tags: stub.tags,
    keywords: stub.keywords,
    useWhen: stub.useWhen,
    schemaUri: stub.schemaUri,
    hints: hintsOf(stub.hints),
    requires: stub.requires.map(preconditionOf).filter((r) => r !== undefined),
    substitutes: stub.substitutes,
    digest: stub.digest,
    sizeBytes: stub.sizeBytes,
  };
}

function frame(tool: Tool, availability: Availability): Uint8Array {
  const length = tool.stub.byteLength + AVAILABILITY_BYTES;
  const prefix = 1 + varintSize(length);
  const out = Buffer.allocUnsafe(prefix + length);
  out[0] = STUBS_TAG;
  writeVarint(out, 1, length);
  out.set(tool.stub, prefix);
  out[out.length - 2] = AVAILABILITY_TAG;
  out[out.length - 1] = availabilityNumber(availability);
  return out;
}

/** The facts that filters and loads need, read from a stub's bytes without decoding the rest. */
export function stubFacts(stub: Uint8Array): { tags: readonly string[]; digest: string } {
  const reader = new BinaryReader(stub);
  const tags: string[] = [];
  let digest = "";
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === TAGS_FIELD && wireType === WireType.LengthDelimited) tags.push(reader.string());
    else if (field === DIGEST_FIELD && wireType === WireType.LengthDelimited) digest = reader.string();
    else reader.skip(wireType, field);
  }
  return { tags, digest };
}

function wireHints(hints: AnnotationHints): MessageInitShape<typeof AnnotationHintsSchema> | undefined {
  return Object.values(hints).some((v) => v !== undefined) ? { ...hints } : undefined;
}

export function hintsOf(hints: WireHints | undefined): AnnotationHints {
  return {
    ...(hints?.readOnly !== undefined && { readOnly: hints.readOnly }),
    ...(hints?.destructive !== undefined && { destructive: hints.destructive }),
    ...(hints?.idempotent !== undefined && { idempotent: hints.idempotent }),
    ...(hints?.openWorld !== undefined && { openWorld: hints.openWorld }),
  };
}

/** Undefined for a kind that this version does not know. */
export function preconditionOf(wire: WirePrecondition): Precondition | undefined {
  return wire.kind.case === undefined ? undefined : { kind: wire.kind.case, value: wire.kind.value };
}

function varintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 128)) size++;
  return size;
}

function writeVarint(out: Uint8Array, at: number, value: number): void {
  let rest = value;
  let i = at;
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) out[i++] = (rest % 128) | 0x80;
  out[i] = rest;
}
