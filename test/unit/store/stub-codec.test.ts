import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { StubFields } from "../../../src/domain/stub.js";
import { EMPTY_STUB } from "../../../src/domain/stub.js";
import { GetStubsResponseSchema } from "../../../src/gen/toolcrib/v1/registry_service_pb.js";
import { Availability, StubSchema } from "../../../src/gen/toolcrib/v1/stub_pb.js";
import { stubCodec, stubFacts } from "../../../src/store/codec/stub.js";

const words = fc.array(fc.string({ unit: "grapheme", minLength: 1 }), { maxLength: 4 });
const hint = fc.option(fc.boolean(), { nil: undefined });
const hints = fc
  .record({ readOnly: hint, destructive: hint, idempotent: hint, openWorld: hint })
  .map((all) => Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)));
const label: fc.Arbitrary<StubFields> = fc.record({
  serverId: fc.stringMatching(/^[a-z0-9]{1,20}$/),
  name: fc.stringMatching(/^[A-Za-z0-9_.-]{1,128}$/),
  title: fc.string({ unit: "grapheme" }),
  briefDescription: fc.string({ unit: "grapheme", maxLength: 600 }),
  tags: words,
  keywords: words,
  useWhen: fc.string(),
  schemaUri: fc.webUrl(),
  hints,
  requires: fc.array(fc.record({ kind: fc.constantFrom("scope", "state", "tool"), value: fc.string() }), { maxLength: 3 }),
  substitutes: words,
  digest: fc.constantFrom("", `sha256:${"a".repeat(64)}`),
  sizeBytes: fc.nat(1_048_576),
});

describe("labels as bytes", () => {
  test("come back as they were, absent hints absent", () => {
    fc.assert(
      fc.property(label, fc.boolean(), (stub, declared) => {
        const tool = stubCodec.encode(stub, declared);
        expect(stubCodec.decode(tool.stub)).toEqual(stub);
        expect(tool).toMatchObject({ name: stub.name, tags: stub.tags, digest: stub.digest, digestDeclared: declared });
        expect(stubFacts(tool.stub)).toEqual({ tags: stub.tags, digest: stub.digest });
      }),
    );
  });

  test("carry tool_id and estimated tokens, and no availability", () => {
    const tool = stubCodec.encode({ ...EMPTY_STUB, serverId: "s", name: "Tool.1", sizeBytes: 5 }, false);
    const stub = fromBinary(StubSchema, tool.stub);
    expect(stub).toMatchObject({ toolId: "s/Tool.1", sizeBytes: 5, estimatedTokens: 2 });
    expect(stub.availability).toBe(Availability.UNSPECIFIED);
    expect(stub.hints).toBeUndefined();
  });

  test("concatenated frames are a list", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(label, fc.constantFrom("available", "unavailable"))), (list) => {
        const frames = list.map(([stub, availability]) => stubCodec.frame(stubCodec.encode(stub, false), availability));
        const { stubs } = fromBinary(GetStubsResponseSchema, Buffer.concat(frames));
        expect(stubs.map((s) => s.toolId)).toEqual(list.map(([s]) => `${s.serverId}/${s.name}`));
        expect(stubs.map((s) => s.availability === Availability.AVAILABLE)).toEqual(list.map(([, a]) => a === "available"));
        for (const s of stubs) s.availability = Availability.UNSPECIFIED;
        expect(stubs.map((s) => stubCodec.decode(toBinary(StubSchema, s)))).toEqual(list.map(([s]) => s));
      }),
    );
  });

  test.each([0, 1, 100, 124, 125, 126, 127, 128, 16_000, 16_379, 16_380, 16_384, 2_097_152])(
    "frames of a label %i bytes long or so have a right length",
    (length) => {
      const title = "x".repeat(length);
      const tool = stubCodec.encode({ ...EMPTY_STUB, serverId: "s", name: "n", title }, false);
      const frame = stubCodec.frame(tool, "unavailable");
      const [stub, ...rest] = fromBinary(GetStubsResponseSchema, frame).stubs;
      expect(rest).toEqual([]);
      expect([stub?.title, stub?.availability]).toEqual([title, Availability.UNAVAILABLE]);
      expect(toBinary(GetStubsResponseSchema, create(GetStubsResponseSchema, { stubs: stub ? [stub] : [] })).byteLength).toBe(
        frame.byteLength,
      );
    },
  );
});
