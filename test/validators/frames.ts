/** Stubs as they travel: elements of field 1, cut out without decoding what is in them. */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { type Stub, StubSchema } from "../../src/gen/toolcrib/v1/stub_pb.js";
import type { SeenStub } from "./history.js";

/** The elements of field 1 of an encoded message, tag and length included, one after the other. */
export function framesOf(message: Uint8Array): Buffer {
  const reader = new BinaryReader(message);
  const out: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const from = reader.pos;
    const [field, type] = reader.tag();
    reader.skip(type, field);
    if (field === 1 && type === WireType.LengthDelimited) out.push(message.subarray(from, reader.pos));
  }
  return Buffer.concat(out);
}

export function seenStub(stub: Stub): SeenStub {
  const bytes = Buffer.from(toBinary(StubSchema, stub)).toString("base64");
  return { toolId: stub.toolId, digest: stub.digest, tags: stub.tags, bytes };
}

/** The stubs of a run of frames. */
export function stubsIn(frames: string): SeenStub[] {
  const reader = new BinaryReader(Buffer.from(frames, "base64"));
  const out: SeenStub[] = [];
  while (reader.pos < reader.len) {
    reader.tag();
    out.push(seenStub(fromBinary(StubSchema, reader.bytes())));
  }
  return out;
}

/** The same label with another availability. */
export function withAvailability(stub: SeenStub, availability: number): SeenStub {
  return seenStub({ ...fromBinary(StubSchema, Buffer.from(stub.bytes, "base64")), availability });
}
