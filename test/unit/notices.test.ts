/** Found by chaos: while a catalogue grew anew, ListServers failed with INTERNAL, because the notice of it had a time with fractions. */
import { toBinary } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import type { Registry } from "../../src/catalogue/registry.js";
import { NoticeSchema } from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import { createNotices } from "../../src/notices.js";
import type { Panic } from "../../src/probe/panic.js";
import { fromNotices } from "../../src/rpc/translate/server.js";
import { FakeClock } from "../support/fake-clock.js";

it("the notice that a catalogue is growing can be sent, whatever fractions the monotonic clock counts", () => {
  const clock = new FakeClock();
  const broken = { index: 0, state: { kind: "growing" }, chainBrokenAtMs: clock.monotonic() - 1_500.328125 };
  const registry = { partitionOf: () => broken } as unknown as Registry;
  const [notice] = fromNotices(createNotices(() => registry, { state: undefined } as Panic, clock).of("default"));
  if (!notice?.since) throw new Error("there should be a notice");
  expect(toBinary(NoticeSchema, notice).byteLength).toBeGreaterThan(0);
  expect(timestampMs(notice.since)).toBe(Math.round(clock.now() - 1_500.328125));
});
