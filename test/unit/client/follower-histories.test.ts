/** Random histories of a real catalogue, followed over streams that break anywhere, on replicas with a short memory. */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Registry } from "../../../src/catalogue/registry.js";
import { createFollower } from "../../../src/client/follower/follower.js";
import type { WatchSource } from "../../../src/client/follower/source.js";
import { RegistryError } from "../../../src/client/registry-error.js";
import { Fault } from "../../../src/domain/fault.js";
import { everything } from "../../../src/domain/filter.js";
import { type WatchResponse, WatchResponseSchema } from "../../../src/gen/toolcrib/v1/registry_service_pb.js";
import { type Stub, StubSchema } from "../../../src/gen/toolcrib/v1/stub_pb.js";
import { SeededRandom } from "../../support/fake-clock.js";
import { declare, stubsOf, tool, World } from "../../support/replica.js";
import { timersOf } from "../../support/scripted-watch.js";

const RUNS = process.env["DEEP_TESTS"] === "1" ? 2_000 : 40;

/** Watches a replica in this process; after some messages (`lifeOf`) the stream breaks. */
function sourceOf(replicas: ReadonlyMap<string, Registry>, lifeOf: () => number): WatchSource {
  return async function* (target, request, signal, onOpen) {
    const registry = replicas.get(target.address);
    if (!registry) throw new Error(`no replica at ${target.address}`);
    const queue: WatchResponse[] = [];
    let fault: Fault | undefined;
    let wake = (): void => undefined;
    const sink = {
      write: (bytes: Uint8Array) => {
        queue.push(fromBinary(WatchResponseSchema, bytes));
        wake();
        return queue.length < 4;
      },
      fail: (why: Fault) => {
        fault = why;
        wake();
      },
    };
    signal.addEventListener("abort", () => wake(), { once: true });
    const { resumeToken = "", minRevision = "" } = request;
    const handle = await registry
      .watch({ filter: everything("default"), resumeToken, minRevision }, sink)
      .catch(refuse);
    onOpen();
    try {
      for (let left = lifeOf(); left > 0 && !signal.aborted; left--) {
        while (queue.length === 0 && !fault && !signal.aborted) await new Promise<void>((resolve) => (wake = resolve));
        const next = queue.shift();
        if (next) yield next;
        else if (fault) refuse(fault);
        if (queue.length === 0) handle.drained();
      }
    } finally {
      handle.close();
    }
  };
}

function refuse(thrown: unknown): never {
  if (!(thrown instanceof Fault)) throw thrown;
  const { reason, metadata, status: code } = thrown;
  throw new RegistryError(thrown.message, { code, reason, metadata });
}

function encoded(stubs: readonly Stub[]): string[] {
  return stubs.map((s) => `${s.toolId} ${Buffer.from(toBinary(StubSchema, s)).toString("base64")}`);
}

/** What must have happened for the runs to mean something. */
interface Seen {
  relists: number;
  /** Tools that were gone when the list was read again. */
  phantoms: number;
  splits: number;
}

async function history(seed: number, seen: Seen): Promise<void> {
  const random = new SeededRandom(seed);
  const pick = (n: number): number => Math.floor(random.next() * n);
  const world = new World({ revisions: 3, bytes: 1 << 20 });
  const ring = { revisions: 3, bytes: 1 << 20 };
  const [a, b] = [await world.replica(undefined, ring), await world.replica(undefined, ring)];
  const follower = createFollower({
    targets: ["a:1", "b:1"],
    timers: timersOf(world.clock),
    random: () => random.next(),
    source: sourceOf(
      new Map([
        ["a:1", a],
        ["b:1", b],
      ]),
      () => 1 + pick(25),
    ),
  });
  const held = new Map<string, Stub>();
  follower.on("relist", () => void seen.relists++);
  follower.on("change", ({ source, events }) => {
    if (source === "relist") seen.phantoms += [...held.keys()].filter((id) => !follower.stub(id)).length;
    else if (source === "registry" && events.length > 60) seen.splits++;
    for (const { toolId, stub } of events) {
      if (stub) held.set(toolId, stub);
      else held.delete(toolId);
    }
    expect([...held.keys()].sort(), `seed ${seed}`).toEqual(follower.stubs().map((s) => s.toolId));
  });
  follower.start();
  for (let step = 0; step < 40; step++) {
    const replica = pick(2) === 0 ? a : b;
    const action = pick(10);
    if (action === 0) await follower.stop();
    else if (action === 1) follower.start();
    else if (action === 2) await world.clock.advance(pick(3_000));
    else if (action < 5) await world.run(replica.deregister("", { kind: "server", serverId: `s${pick(4)}` }));
    else {
      const count = action === 5 ? 90 : 1 + pick(6);
      const tools = Array.from({ length: count }, (_, i) =>
        tool(`t${i}`, `${pick(3)} ${"x".repeat(count > 6 ? 500 : 1)}`),
      );
      await world.run(
        replica.register(
          declare(
            `s${pick(4)}`,
            tools.filter(() => pick(4) > 0),
            { allowEmpty: true, retention: { kind: "leased", ttlMs: 3_600_000 } },
          ),
        ),
      );
    }
  }
  follower.start();
  for (let i = 0; i < 300 && !(follower.state.kind === "live" && held.has("marker/last")); i++) {
    if (i === 0) await world.run(a.register(declare("marker", [tool("last")])));
    await world.clock.advance(1_000);
    // The lease of the marker must not end while streams go on to break.
    if (i % 10 === 9) await world.run(a.register(declare("marker", [tool("last")])));
  }
  const told = [follower.state.kind, encoded(follower.stubs())];
  expect(told, `seed ${seed}`).toEqual(["live", encoded(await stubsOf(a))]);
  await follower.stop();
  await world.stop();
}

describe("a follower of random histories", () => {
  it("ends with what the registry has, by its list and by its events alone", { timeout: RUNS * 2_000 }, async () => {
    const first = Math.floor(Math.random() * 1e9);
    onTestFinished(({ task }) => {
      if (task.result?.state === "fail") process.stderr.write(`first seed ${first}\n`);
    });
    const seen: Seen = { relists: 0, phantoms: 0, splits: 0 };
    for (let i = 0; i < RUNS; i++) await history(first + i, seen);
    expect(Math.min(...Object.values(seen)), `first seed ${first}: ${JSON.stringify(seen)}`).toBeGreaterThan(0);
  });
});
