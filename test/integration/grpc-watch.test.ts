import http2 from "node:http2";
import { afterEach, describe, expect, it } from "vitest";
import { Fault } from "../../src/domain/fault.js";
import { createWatchCodec } from "../../src/rpc/watch-codec.js";
import { RPC } from "../../src/rpc/limits.js";
import { type Rig, SERVICE, type Watching, failing, startRig, until } from "./grpc-support.js";

let rig: Rig | undefined;
afterEach(async () => {
  await rig?.stop();
  rig = undefined;
});

const codec = createWatchCodec({ frame: () => new Uint8Array() });
/** A frame of about 30 KiB: field 1, length 30,000. */
const FRAME = Buffer.concat([
  Buffer.from([0x0a, 0xb0, 0xea, 0x01]),
  Buffer.concat([Buffer.from([0x1a, 0xac, 0xea, 0x01]), Buffer.alloc(29_996, "n")]),
]);

function openSession(target: string) {
  const session = http2.connect(`http://${target}`);
  const stream = session.request({
    ":method": "POST",
    ":path": `/${SERVICE}/Watch`,
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.end(Buffer.alloc(5));
  return { session, stream };
}

/** Writes as the hub does: until the sink is full, and again only when it has drained. */
function hub(watching: Watching, message: Uint8Array, total: number) {
  let drainedBefore = -1;
  const state = {
    written: 0,
    pump(): void {
      if (watching.drainedTimes === drainedBefore) return;
      drainedBefore = watching.drainedTimes;
      while (state.written < total) {
        state.written++;
        if (!watching.sink.write(message)) return;
      }
    },
  };
  return state;
}

describe("a watch", () => {
  it("delivers messages in order, and the request arrives as a filter", async () => {
    rig = await startRig();
    const stream = rig
      .client()
      ["Watch"]({ namespace: "", filter: { tags_any: ["b", "a", "b"], server_ids: ["s"] }, resume_token: "tok" });
    const got: any[] = [];
    stream.on("data", (message: unknown) => got.push(message));
    stream.on("error", () => {});
    await until(() => rig?.watches.length === 1, "watch opened");
    const watching = rig.watches[0]!;
    expect(watching.input).toEqual({
      filter: {
        namespace: "default",
        tagsAny: ["a", "b"],
        tagsAll: [],
        serverIds: ["s"],
        namePrefix: "",
        availability: undefined,
      },
      resumeToken: "tok",
      minRevision: "",
    });
    expect(watching.sink.write(codec.bookmark("t1", "r1"))).toBe(true);
    watching.sink.write(
      codec.change(
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
        "t2",
        "r2",
        1_500,
      ),
    );
    await until(() => got.length === 2, "two messages");
    expect(got[0]).toMatchObject({ message: "bookmark", bookmark: { resume_token: "t1", revision: "r1" } });
    expect(got[1]).toMatchObject({
      change: {
        events: [{ type: "EVENT_TYPE_AVAILABILITY_CHANGED", server_id: "s", availability: "AVAILABILITY_UNAVAILABLE" }],
        resume_token: "t2",
        committed_at: { seconds: 1, nanos: 500_000_000 },
      },
    });
    stream.cancel();
    await until(() => watching.closedTimes === 1, "handle closed");
    expect(watching.sink.write(codec.bookmark("t3", "r3"))).toBe(false);
    await until(
      async () => (await rig!.metrics.registry.metrics()).includes('watch_ended_total{reason="client"} 1'),
      "metric",
    );
  });

  it("stops a hub whose watcher does not read, holds little for it, and goes on when it reads again, losing nothing", async () => {
    rig = await startRig();
    const { session, stream } = openSession(rig.target);
    stream.pause();
    await until(() => rig?.watches.length === 1, "stuck watch opened");
    const reading = rig.client()["Watch"]({});
    let read = 0;
    reading.on("data", () => read++);
    reading.on("error", () => {});
    await until(() => rig?.watches.length === 2, "reading watch opened");
    const message = codec.snapshot([FRAME], undefined, "r");
    const [stuck, fast] = rig.watches.map((watching) => hub(watching, message, 200));

    await until(() => {
      stuck!.pump();
      fast!.pump();
      return read === 200;
    }, "the reading watcher has everything");
    // The peer's HTTP/2 window takes 64 KiB, this side as much and one message over it.
    expect(stuck!.written * message.length).toBeLessThan(64 * 1024 + RPC.watchHighBytes + 3 * message.length);

    let received = 0;
    stream.on("data", (chunk: Buffer) => {
      received += chunk.length;
    });
    stream.resume();
    await until(() => {
      stuck!.pump();
      return received === 200 * (message.length + 5);
    }, "everything delivered after all");
    reading.cancel();
    session.destroy();
    await until(() => rig!.watches.every((w) => w.closedTimes === 1), "closed with their connections");
  });

  it("ends with its fault after what was written, and the hub is not told again", async () => {
    rig = await startRig();
    const stream = rig.client()["Watch"]({});
    const got: unknown[] = [];
    stream.on("data", (m: unknown) => got.push(m));
    const ended = failing(new Promise((_, reject) => stream.on("error", reject)));
    await until(() => rig?.watches.length === 1, "watch opened");
    const { sink } = rig.watches[0]!;
    for (let i = 0; i < 10; i++) sink.write(codec.snapshot([FRAME], undefined, "r"));
    sink.fail(new Fault("WATCHER_TOO_SLOW", "too slow", { metadata: { resume_token: "last" } }));
    sink.fail(new Fault("RELIST_REQUIRED", "a second end counts for nothing"));
    expect(await ended).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      reason: "WATCHER_TOO_SLOW",
      metadata: { resume_token: "last" },
    });
    expect(got).toHaveLength(10);
    expect(rig.watches[0]?.closedTimes).toBe(0);
    expect(rig.log).toHaveLength(1);
  });

  it("is reset when a watcher that failed does not even take its end", async () => {
    rig = await startRig({}, { lingerMs: 20 });
    const { session, stream } = openSession(rig.target);
    stream.pause();
    const closed = new Promise<number | undefined>((resolve) => stream.on("close", () => resolve(stream.rstCode)));
    stream.on("error", () => {});
    await until(() => rig?.watches.length === 1, "watch opened");
    const { sink } = rig.watches[0]!;
    for (let i = 0; i < 30; i++) sink.write(codec.snapshot([FRAME], undefined, "r"));
    sink.fail(new Fault("WATCHER_TOO_SLOW", "too slow"));
    expect(await closed).toBe(http2.constants.NGHTTP2_CANCEL);
    session.destroy();
  });

  it("that is refused closes a handle that comes too late", async () => {
    let closed = 0;
    rig = await startRig({
      watch: async (_input, sink) => {
        sink.fail(new Fault("RELIST_REQUIRED", "start over", { metadata: { cause: "chain" } }));
        return { drained: () => {}, close: () => void closed++ };
      },
    });
    const stream = rig.client()["Watch"]({});
    stream.on("data", () => {});
    expect(await failing(new Promise((_, reject) => stream.on("error", reject)))).toMatchObject({
      code: "OUT_OF_RANGE",
      metadata: { cause: "chain" },
    });
    expect(closed).toBe(1);
  });
});
