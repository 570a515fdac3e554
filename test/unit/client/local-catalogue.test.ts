import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LocalCatalogue } from "../../../src/client/follower/catalogue.js";
import { EventSchema } from "../../../src/gen/toolcrib/v1/registry_service_pb.js";
import { Availability, type Stub, StubSchema } from "../../../src/gen/toolcrib/v1/stub_pb.js";
import { stub } from "../../support/scripted-watch.js";

const digest = fc.constantFrom("", `sha256:${"0".repeat(64)}`, `sha256:${"1".repeat(64)}`);
const label = fc.record({
  digest,
  title: fc.constantFrom("", "A title"),
  tags: fc.constantFrom([], ["a"], ["a", "b"]),
  hints: fc.constantFrom(undefined, { readOnly: true }, { readOnly: false }),
  requires: fc.constantFrom([], [{ kind: { case: "scope", value: "s" } } as const]),
});
const tools = fc.dictionary(fc.constantFrom("t0", "t1", "t2", "t10"), label, { minKeys: 1 });
const server = fc.record({ availability: fc.constantFrom(Availability.AVAILABLE, Availability.UNAVAILABLE), tools });
const list = fc
  .dictionary(fc.constantFrom("a", "a-b", "a.b", "b"), server)
  .map((servers) =>
    Object.entries(servers).flatMap(([id, s]) =>
      Object.entries(s.tools).map(([name, more]) => plain(`${id}/${name}`, { ...more, availability: s.availability })),
    ),
  );

function plain(toolId: string, { hints, ...more }: Record<string, unknown>): Stub {
  return stub(toolId, { ...more, ...(hints ? { hints } : {}) } as Parameters<typeof stub>[1]);
}

function bytes(stubs: readonly Stub[]): string[] {
  return stubs.map((s) => Buffer.from(toBinary(StubSchema, s)).toString("hex"));
}

describe("the differences between two lists", () => {
  it("applied to the one make the other, and there are none between equals", () => {
    fc.assert(
      fc.property(list, list, (from, to) => {
        const before = LocalCatalogue.of(from);
        const after = LocalCatalogue.of(to);
        before.apply(after.differencesFrom(before));
        expect(bytes(before.stubs())).toEqual(bytes(after.stubs()));
        expect(before.servers()).toEqual(after.servers());
        expect(after.differencesFrom(before)).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  it("are at most one event a tool and one a server", () => {
    fc.assert(
      fc.property(list, list, (from, to) => {
        const events = LocalCatalogue.of(to).differencesFrom(LocalCatalogue.of(from));
        const about = events.map((e) => e.toolId || e.serverId);
        expect(new Set(about).size).toBe(about.length);
      }),
    );
  });

  it("see a field that this client does not know", () => {
    const known = stub("a/x");
    const more = create(StubSchema, { ...known, $unknown: [{ no: 99, wireType: 0, data: Uint8Array.of(1) }] });
    const events = LocalCatalogue.of([more]).differencesFrom(LocalCatalogue.of([known]));
    expect(events.map((e) => e.toolId)).toEqual(["a/x"]);
    expect(bytes([more])).not.toEqual(bytes([known]));
  });
});

describe("the list", () => {
  it("is in tool_id order, whatever the order of arrival", () => {
    fc.assert(
      fc.property(list, fc.infiniteStream(fc.nat()), (stubs, dice) => {
        const shuffled = [...stubs].map((s) => [dice.next().value ?? 0, s] as const).sort(([a], [b]) => a - b);
        const catalogue = new LocalCatalogue();
        for (const [, one] of shuffled)
          catalogue.apply([create(EventSchema, { toolId: one.toolId, serverId: one.serverId, stub: one })]);
        const ids = catalogue.stubs().map((s) => s.toolId);
        expect(ids).toEqual(stubs.map((s) => s.toolId).sort());
      }),
    );
  });

  it("forgets a server with its last tool", () => {
    const catalogue = LocalCatalogue.of([stub("a/x")]);
    catalogue.apply([create(EventSchema, { toolId: "a/x", serverId: "a" }), create(EventSchema, { toolId: "a/none" })]);
    expect([catalogue.servers(), catalogue.availability("a")]).toEqual([[], undefined]);
  });
});
