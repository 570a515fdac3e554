/** Overlays as stored: inside a tool, and as a note; older versions carry along what they do not understand. */
import { fromBinary } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { bareTool, type Overlay } from "../../../src/domain/overlay.js";
import { EMPTY_STUB } from "../../../src/domain/stub.js";
import { laid } from "../../../src/catalogue/overlays/lay.js";
import { RecordSchema } from "../../../src/gen/toolcrib/storage/v1/storage_pb.js";
import { overlayCodec } from "../../../src/store/codec/overlay.js";
import { decodeRecord, encodeRecord } from "../../../src/store/codec/storage.js";
import { stubCodec } from "../../../src/store/codec/stub.js";
import { recordOf } from "../../support/records.js";

const overlay = (trial: boolean): Overlay => ({
  toolName: "close",
  texts: { briefDescription: "Closes an order once it is paid", keywords: ["settle", "结清"], useWhen: "It is paid" },
  madeFor: { briefDescription: "Closes it", keywords: [], useWhen: "" },
  digest: `sha256:${"1".repeat(64)}`,
  trial,
  by: "operator",
  atMs: 1_700_000_000_123,
});
const own = stubCodec.encode({ ...EMPTY_STUB, serverId: "shop", name: "close", briefDescription: "Closes it", digest: overlay(false).digest }, true);

it.each([false, true])("a tool with an overlay is read as it was written (trial: %s)", (trial) => {
  const tool = laid(own, overlay(trial), stubCodec);
  const read = decodeRecord(encodeRecord(recordOf([tool], { serverId: "shop" })), 7).tools[0];
  expect(read).toEqual(tool);
  expect(bareTool(tool)).toEqual(own);
  expect(Buffer.compare(tool.stub, own.stub) === 0, "lists show a trial to nobody").toBe(trial);
  expect(stubCodec.decode(tool.stub).briefDescription).toBe(trial ? "Closes it" : overlay(trial).texts.briefDescription);
});

it("a tool without one takes not a byte more", () => {
  const bytes = encodeRecord(recordOf([own], { serverId: "shop" }));
  expect(fromBinary(RecordSchema, bytes).tools[0]?.overlay).toBeUndefined();
  expect(decodeRecord(bytes, 7).tools[0]).toEqual(own);
});

it("notes are read as they were written, and a higher format is refused in a sentence", () => {
  const shelf = [overlay(false), { ...overlay(true), toolName: "open" }];
  expect(overlayCodec.decodeShelf(overlayCodec.encodeShelf(shelf))).toEqual(shelf);
  const counts = [{ toolName: "close", version: "o1", overlaySuccesses: 2 ** 40, overlayFailures: 0, ownSuccesses: 3, ownFailures: 4 }];
  expect(overlayCodec.decodeOutcomes(overlayCodec.encodeOutcomes(counts))).toEqual(counts);
  expect(() => overlayCodec.decodeShelf(Buffer.from([0x08, 0x02]))).toThrow(/format 2.*upgrade/);
  expect(() => overlayCodec.decodeOutcomes(Buffer.from([0x08, 0x02]))).toThrow(/format 2.*upgrade/);
});
