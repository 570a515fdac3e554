import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { expect, test } from "vitest";
import { WireWriter } from "../../../src/rpc/wire-writer.js";

const field = fc.integer({ min: 1, max: 2 ** 29 - 1 });

test("writes what the library's writer writes", () => {
  const part = fc.record({
    field,
    text: fc.string({ unit: "binary", maxLength: 400 }),
    number: fc.oneof(fc.integer({ min: 1, max: 300 }), fc.maxSafeNat().map((n) => n + 1).filter(Number.isSafeInteger)),
    double: fc.double().filter((n) => n !== 0),
    bytes: fc.uint8Array({ maxLength: 400 }),
  });
  fc.assert(
    fc.property(fc.array(part, { maxLength: 20 }), (parts) => {
      const ours = new WireWriter();
      const theirs = new BinaryWriter();
      for (const p of parts) {
        ours.text(p.field, p.text).int(p.field, p.number).double(p.field, p.double).nested(p.field, p.bytes, p.bytes);
        if (p.text !== "") theirs.tag(p.field, WireType.LengthDelimited).string(p.text);
        theirs.tag(p.field, WireType.Varint).int64(p.number);
        theirs.tag(p.field, WireType.Bit64).double(p.double);
        theirs.tag(p.field, WireType.LengthDelimited).bytes(Buffer.concat([p.bytes, p.bytes]));
      }
      expect(ours.finish().equals(theirs.finish())).toBe(true);
    }),
  );
});

test("leaves out defaults, but not an empty message", () => {
  const message = new WireWriter().text(1, "").int(2, 0).flag(3, false).double(5, 0).nested(4).finish();
  expect([...message]).toEqual([(4 << 3) | 2, 0]);
});

test("a field can be opened for bytes that come from elsewhere", () => {
  const bytes = Buffer.alloc(5_000, 7);
  const opened = Buffer.concat([new WireWriter().opening(2, bytes.byteLength).finish(), bytes]);
  expect(opened.equals(new WireWriter().nested(2, bytes).finish())).toBe(true);
});

test("refuses a number that it cannot write", () => {
  for (const bad of [-1, 0.5, Number.NaN, 2 ** 53]) expect(() => new WireWriter().int(1, bad)).toThrow(`cannot hold ${bad}`);
});
