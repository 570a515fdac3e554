import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Tool } from "../../../src/domain/server.js";
import {
  BookmarkSchema,
  ChangeSchema,
  EventSchema,
  EventType,
  GetStubsResponseSchema,
  SnapshotChunkSchema,
  WatchResponseSchema,
} from "../../../src/gen/toolcrib/v1/registry_service_pb.js";
import { Availability, StubSchema } from "../../../src/gen/toolcrib/v1/stub_pb.js";
import { createWatchCodec } from "../../../src/rpc/watch-codec.js";

/** A frame by the generated code: one element of `repeated Stub stubs = 1`. */
function frame(tool: Pick<Tool, "stub">, availability: "available" | "unavailable"): Uint8Array {
  const stub = fromBinary(StubSchema, tool.stub);
  stub.availability = availability === "available" ? Availability.AVAILABLE : Availability.UNAVAILABLE;
  return toBinary(GetStubsResponseSchema, create(GetStubsResponseSchema, { stubs: [stub] }));
}

function tool(name: string, brief: string): Tool {
  const stub = toBinary(
    StubSchema,
    create(StubSchema, { toolId: `s/${name}`, serverId: "s", name, briefDescription: brief }),
  );
  return { name, stub, tags: [], digest: "", digestDeclared: false };
}

const codec = createWatchCodec({ frame });
const text = fc.string({ maxLength: 300 });
const availability = fc.constantFrom("available" as const, "unavailable" as const);
const event = fc.record({
  type: fc.constantFrom(
    "REGISTERED" as const,
    "UPDATED" as const,
    "DEREGISTERED" as const,
    "EXPIRED" as const,
    "SCHEMA_INVALIDATED" as const,
  ),
  serverId: fc.constant("s"),
  toolName: fc.constantFrom("a", "b"),
  tool: fc.option(
    text.map((brief) => tool("a", brief)),
    { nil: undefined },
  ),
  availability,
  oldDigest: text,
  newDigest: text,
});

describe("createWatchCodec", () => {
  it("writes the bytes that the generated code reads, and would write", () => {
    fc.assert(
      fc.property(
        fc.array(event, { maxLength: 5 }),
        text,
        text,
        fc.integer({ min: 0, max: 4e12 }),
        (events, token, revision, atMs) => {
          const bytes = codec.change(
            events.map((e) => codec.event(e)),
            token,
            revision,
            atMs,
          );
          const read = fromBinary(WatchResponseSchema, bytes);
          const expected = create(ChangeSchema, {
            events: events.map((e) =>
              create(EventSchema, {
                type: EventType[e.type],
                toolId: `s/${e.toolName}`,
                serverId: "s",
                stub: e.tool && fromBinary(GetStubsResponseSchema, frame(e.tool, e.availability)).stubs[0],
                oldDigest: e.oldDigest,
                newDigest: e.newDigest,
              }),
            ),
            resumeToken: token,
            revision,
            committedAt: { seconds: BigInt(Math.floor(atMs / 1000)), nanos: (atMs % 1000) * 1_000_000 },
          });
          expect(read.message).toEqual({ case: "change", value: expected });
          expect(Buffer.from(toBinary(WatchResponseSchema, read)).equals(bytes)).toBe(true);
        },
      ),
    );
  });

  it("names only the server and its availability when that changed", () => {
    const bytes = codec.change(
      [
        codec.event({
          type: "AVAILABILITY_CHANGED",
          serverId: "s",
          toolName: "",
          tool: undefined,
          availability: "unavailable",
          oldDigest: "",
          newDigest: "",
        }),
      ],
      "",
      "r",
      0,
    );
    const { message } = fromBinary(WatchResponseSchema, bytes);
    expect(message.value).toMatchObject({
      events: [
        { type: EventType.AVAILABILITY_CHANGED, serverId: "s", toolId: "", availability: Availability.UNAVAILABLE },
      ],
      resumeToken: "",
    });
  });

  it("marks only the last chunk of a snapshot, which may be empty", () => {
    const frames = [frame(tool("a", "x"), "available"), frame(tool("b", "y"), "unavailable")];
    const first = fromBinary(WatchResponseSchema, codec.snapshot(frames, undefined, "r")).message;
    expect(first).toMatchObject({
      case: "snapshot",
      value: {
        stubs: [
          { name: "a", availability: 1 },
          { name: "b", availability: 2 },
        ],
        last: false,
        resumeToken: "",
      },
    });
    const last = fromBinary(WatchResponseSchema, codec.snapshot([], { token: "t" }, "r")).message;
    expect(last.value).toEqual(create(SnapshotChunkSchema, { last: true, resumeToken: "t", revision: "r" }));
  });

  it("writes bookmarks", () => {
    const { message } = fromBinary(WatchResponseSchema, codec.bookmark("t", "r"));
    expect(message).toEqual({ case: "bookmark", value: create(BookmarkSchema, { resumeToken: "t", revision: "r" }) });
  });

  it("answers Buffers, as the transport sends them", () => {
    for (const bytes of [codec.snapshot([], undefined, "r"), codec.change([], "t", "r", 1), codec.bookmark("t", "r")]) {
      expect(Buffer.isBuffer(bytes)).toBe(true);
    }
  });
});
