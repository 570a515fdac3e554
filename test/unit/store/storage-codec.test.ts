import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import type { Change } from "../../../src/domain/change.js";
import { ChangeSchema, RecordSchema } from "../../../src/gen/toolcrib/storage/v1/storage_pb.js";
import { chainOf } from "../../../src/store/chain.js";
import { joinRow, splitRow } from "../../../src/store/codec/rows.js";
import { decodeChange, decodeRecord, encodeChange, encodeRecord } from "../../../src/store/codec/storage.js";
import { plain } from "../../conformance/check.js";
import * as v from "../../conformance/values.js";

/** Field 1000, a length and two bytes: what a newer version may have added. */
const UNKNOWN_FIELD = Buffer.from([0xc2, 0x3e, 2, 0xff, 0]);

describe("records and changes as bytes", () => {
  const tools = [v.tool("s", "a", "", `sha256:${"b".repeat(64)}`), v.tool("s", "b")];
  const record = v.record("s", tools, [v.instance("i1", "l1"), { ...v.instance("i2", "l2"), revision: 4 }]);

  test("a record comes back as it was, at the revision that carries it", () => {
    const back = decodeRecord(encodeRecord(record), 9);
    expect(back.revision).toBe(9);
    expect(back.header.instances.map((i) => i.revision)).toEqual([9, 4]);
    const instances = back.header.instances.map((i) => ({ ...i, revision: i.revision === 9 ? 0 : i.revision }));
    expect(plain({ header: { ...back.header, instances }, tools: back.tools })).toEqual(plain(record));
  });

  test.each(["register", "deregister", "expire", "listing", "condition", "learned"] as const)("a %s change comes back", (cause) => {
    const change: Change = {
      namespace: "n",
      serverId: "s",
      cause,
      header: cause === "deregister" ? null : record.header,
      tools: [
        { name: "a", before: tools[0]! },
        { name: "b", after: tools[1]! },
        { name: "c", before: tools[0]!, after: tools[1]! },
      ],
      availabilityBefore: cause === "register" ? null : "unavailable",
    };
    expect(plain(decodeChange(encodeChange(change)))).toEqual(plain(change));
  });

  test("what a newer version adds is passed over, and its words are read as the plainest ones", () => {
    const newer = Buffer.concat([encodeRecord(record), UNKNOWN_FIELD]);
    expect(decodeRecord(newer, 9).tools).toHaveLength(2);
    const message = create(RecordSchema, {
      format: 1,
      header: { serverId: "s", source: 9, retention: 9, availability: 9, conditions: [{ type: 9 }, { type: 1, status: 9 }] },
    });
    const { header } = decodeRecord(toBinary(RecordSchema, message), 1);
    expect(header).toMatchObject({ source: "declared", retention: "leased", availability: "unavailable" });
    expect(header.conditions.map((c) => [c.type, c.status])).toEqual([["Reachable", "unknown"]]);
    const change = toBinary(ChangeSchema, create(ChangeSchema, { format: 1, serverId: "s", cause: 99 }));
    expect(decodeChange(change)).toMatchObject({ serverId: "s", header: null });
  });

  test("what a newer version added is still there when the rest is rewritten", () => {
    const strange = (no: number) => ({ no, wireType: 2, data: Buffer.from([2, 0xff, no % 256]) });
    const stored = create(RecordSchema, {
      format: 1,
      header: {
        serverId: "s",
        conditions: [{ type: 1, status: 1, reason: "ANSWERED" }, { type: 77, status: 3, reason: "NEW", message: "of tomorrow" }],
        instances: [{ instanceId: "i1", transport: 9 }, { instanceId: "i2", transport: 2 }],
      },
      tools: [{ name: "a", stub: tools[0]!.stub as Uint8Array<ArrayBuffer> }],
    });
    const [one, two, three] = [strange(500), strange(501), strange(502)];
    stored.header!.$unknown = [one];
    stored.header!.instances[0]!.$unknown = [two];
    stored.tools[0]!.$unknown = [three];
    const read = decodeRecord(toBinary(RecordSchema, stored), 4);
    expect(read.header).toMatchObject({ conditions: [{ type: "Reachable" }], instances: [{ transport: "streamable-http" }, { transport: "http-sse" }] });
    const rewritten = { ...read, header: { ...read.header, title: "another", conditions: [], availability: "unavailable" as const } };
    const after = fromBinary(RecordSchema, encodeRecord(rewritten));
    expect(after.header).toMatchObject({ title: "another", availability: 2, conditions: [{ type: 77, status: 3, reason: "NEW", message: "of tomorrow" }] });
    expect(after.header!.instances.map((i) => i.transport)).toEqual([9, 2]);
    const kept = [after.header, after.header!.instances[0], after.tools[0]].map((m) => m!.$unknown?.map(({ no, data }) => [no, plain(data)]));
    expect(kept).toEqual([one, two, three].map(({ no, data }) => [[no, plain(data)]]));
    const change = { namespace: "n", serverId: "s", cause: "condition" as const, header: rewritten.header, tools: [], availabilityBefore: null };
    expect(plain(decodeChange(encodeChange(change)))).toEqual(plain(change));
  });

  test("a format that this version does not know is refused, with what to do", () => {
    const record2 = Buffer.concat([encodeRecord(record), Buffer.from([0x08, 2])]);
    expect(() => decodeRecord(record2, 9)).toThrow(/record of revision 9 is in format 2, and this version reads formats up to 1: .* upgrade this replica/);
    const change = toBinary(ChangeSchema, create(ChangeSchema, { format: 2, serverId: "s" }));
    expect(() => decodeChange(change)).toThrow(/log entry about server s is in format 2/);
  });

  test("a transport comes back; none, and one of a newer version, is Streamable HTTP", () => {
    const sse = v.record("s", tools, [{ ...v.instance("i1", "l1"), transport: "http-sse" }]);
    expect(decodeRecord(encodeRecord(sse), 9).header.instances).toMatchObject([{ transport: "http-sse" }]);
    const stored = create(RecordSchema, { format: 1, header: { serverId: "s", instances: [{ instanceId: "i1" }, { instanceId: "i2", transport: 9 }] } });
    const { header } = decodeRecord(toBinary(RecordSchema, stored), 1);
    expect(header.instances.map(({ transport }) => transport)).toEqual(["streamable-http", "streamable-http"]);
  });

  test("what is no record is refused", () => {
    expect(() => decodeRecord(Buffer.from([0xff, 0xff]), 1)).toThrow();
    expect(() => decodeRecord(Buffer.alloc(0), 1)).toThrow("the stored record of revision 1 has no header");
  });
});

describe("rows", () => {
  test("keep their bytes, in memory of their own", () => {
    const row = joinRow("12", v.NASTY);
    const { text, bytes } = splitRow(row);
    expect([text, plain(bytes)]).toEqual(["12", plain(v.NASTY)]);
    expect(bytes.buffer.byteLength).toBe(v.NASTY.length);
    expect(splitRow(Buffer.from("a:"))).toEqual({ text: "a", bytes: new Uint8Array() });
    expect(() => splitRow(Buffer.from("none"))).toThrow("has no prefix");
  });
});

test("only a first entry's chain depends on the seed", () => {
  const body = Buffer.from("body");
  expect(chainOf("0", 1, body, "x")).not.toBe(chainOf("0", 1, body, "y"));
  expect(chainOf("a", 2, body, "x")).toBe(chainOf("a", 2, body, "y"));
  expect(chainOf("a", 2, body, "")).not.toBe(chainOf("b", 2, body, ""));
  expect(chainOf("a", 2, body, "")).not.toBe(chainOf("a", 3, body, ""));
});
