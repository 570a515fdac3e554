/** The follower against whole replicas on a real Redis: it loses them one way after the other, and its list stays right. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Client, credentials, type ServiceError, status } from "@grpc/grpc-js";
import { describe, expect, inject, it, onTestFinished, vi } from "vitest";
import { createFollower, type Follower } from "../../src/client/follower/follower.js";
import type { FollowerOptions } from "../../src/client/follower/options.js";
import type { FollowerState } from "../../src/client/follower/state.js";
import {
  EventType,
  GetStubsRequestSchema,
  GetStubsResponseSchema,
} from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import { type Stub, StubSchema } from "../../src/gen/toolcrib/v1/stub_pb.js";
import { SeededRandom } from "../support/fake-clock.js";
import { type Replica, startPair } from "../support/pair.js";
import { startWire } from "../support/proxy.js";
import { declared, RemoteRegistry, startRegistry } from "../support/registry.js";
import { eventually } from "../support/upstream.js";

// Whole processes on a machine that may be slow; each wait has its own end.
vi.setConfig({ testTimeout: 90_000 });

const HOUR = { leaseTtl: { seconds: 3600 } };
const tool = (name: string, description = `Does ${name}`) => ({ name, description, inputSchema: { type: "object" } });

interface Followed {
  readonly follower: Follower;
  readonly states: FollowerState[];
  readonly relists: string[];
  /** `TYPE id` of all events but those of the first list. */
  readonly told: string[];
  /** What somebody would hold who only heard the events. */
  readonly heldByEvents: Set<string>;
}

/** Begins with the first target. */
async function follow(targets: readonly string[], options: FollowerOptions = {}): Promise<Followed> {
  const follower = createFollower({ targets, random: () => 0, ...options });
  onTestFinished(() => follower.stop());
  const followed: Followed = { follower, states: [], relists: [], told: [], heldByEvents: new Set() };
  follower.on("state", (state) => followed.states.push(state));
  follower.on("relist", ({ cause }) => followed.relists.push(cause));
  follower.on("change", ({ source, events }) => {
    for (const { type, toolId, serverId, stub } of events) {
      if (source !== "snapshot") followed.told.push(`${EventType[type]} ${toolId || serverId}`);
      if (stub) followed.heldByEvents.add(toolId);
      else followed.heldByEvents.delete(toolId);
    }
    expect([...followed.heldByEvents].sort()).toEqual(idsOf(follower));
  });
  expect((await follower.start().ready()).kind).toBe("live");
  return followed;
}

function idsOf(follower: Follower): string[] {
  return follower.stubs().map((s) => s.toolId);
}

function becomes(follower: Follower, kind: FollowerState["kind"], ms?: number): Promise<unknown> {
  return eventually(
    () => follower.state.kind,
    (now) => now === kind,
    ms,
  );
}

function has(follower: Follower, toolId: string, ms?: number): Promise<unknown> {
  return eventually(
    () => follower.stub(toolId)?.toolId,
    (id) => id !== undefined,
    ms,
  );
}

/** The pages of a list as they came over the wire. */
async function rawPages(address: string): Promise<Buffer[]> {
  const client = new Client(address, credentials.createInsecure());
  const pages: Buffer[] = [];
  try {
    for (let pageToken: string | undefined = ""; pageToken !== undefined; ) {
      const request = Buffer.from(toBinary(GetStubsRequestSchema, create(GetStubsRequestSchema, { pageToken })));
      const page = await new Promise<Buffer>((resolve, reject) => {
        const pass = (bytes: Buffer): Buffer => bytes;
        const path = "/toolcrib.v1.RegistryService/GetStubs";
        client.makeUnaryRequest(path, pass, pass, request, (error, answer) =>
          error ? reject(error) : resolve(answer as Buffer),
        );
      });
      pages.push(page);
      pageToken = fromBinary(GetStubsResponseSchema, page).nextPageToken || undefined;
    }
  } finally {
    client.close();
  }
  return pages;
}

async function startReplicaAt(address: string, store: string): Promise<Replica> {
  const process = await startRegistry({ store, port: Number(address.split(":")[1]) });
  return { process, api: new RemoteRegistry(process.grpc) };
}

function encoded(stubs: readonly Stub[]): string[] {
  return hex(stubs.map((s) => toBinary(StubSchema, s)));
}

function hex(texts: readonly Uint8Array[]): string[] {
  return texts.map((bytes) => Buffer.from(bytes).toString("hex"));
}

describe.skipIf(inject("redisServer") === "")("a follower of two replicas", () => {
  it("P12: after any registrations its labels are those of both replicas, byte for byte", async () => {
    const seed = Math.floor(Math.random() * 1e9);
    const random = new SeededRandom(seed);
    const pick = (n: number): number => Math.floor(random.next() * n);
    const { a, b } = await startPair();
    const { follower, told } = await follow([a.process.grpc, b.process.grpc]);
    for (let i = 0; i < 150; i++) {
      const { api } = pick(2) === 0 ? a : b;
      const serverId = `s${pick(8)}`;
      const action = pick(8);
      if (action < 2) {
        const target = pick(2) === 0 ? { all: true } : { toolName: `t${pick(9)}` };
        await api.call("deregister", { serverId, ...target });
        continue;
      }
      if (action === 2) {
        const method = pick(2) === 0 ? "isolateServer" : "resumeServer";
        await api
          .call(method, method === "isolateServer" ? { serverId, why: "A test." } : { serverId })
          .catch((error: ServiceError) => {
            // It may not be there now.
            expect(error.code).toBe(status.NOT_FOUND);
          });
        continue;
      }
      // Now and then a change of several messages.
      const tools = pick(15) === 0 ? 300 : 1 + pick(9);
      const names = Array.from({ length: tools }, (_, t) => `t${t}`).filter(() => pick(4) > 0);
      const label = (name: string): object =>
        tool(name, `${name} ${pick(3)} ${"x".repeat(tools > 9 ? 500 : pick(90))}`);
      await api.call(
        "register",
        declared(serverId, names.map(label), { ...HOUR, allowEmpty: true, tags: [`tag-${pick(3)}`] }),
      );
    }
    await a.api.call("register", declared("marker", [tool("last")], HOUR));
    await has(follower, "marker/last");
    await eventually(
      () => b.api.toolIds({ filter: { serverIds: ["marker"] } }),
      (ids) => ids.length === 1,
    );
    const lists = async () => {
      const [atA, atB] = [await rawPages(a.process.grpc), await rawPages(b.process.grpc)];
      const listed = atA.flatMap((page) => fromBinary(GetStubsResponseSchema, page).stubs);
      return [hex(atA), hex(atB), encoded(listed), encoded(follower.stubs())].map((list) => list.join());
    };
    // A server that was resumed becomes available when it has proved itself, which is a change of its own.
    await eventually(lists, ([atA, atB, listed, followed]) => atA === atB && listed === followed, 40_000).catch((error) => {
      throw new Error(`seed ${seed}`, { cause: error });
    });
    expect(told.length, `seed ${seed}`).toBeGreaterThan(100);
    expect(told.some((t) => t.startsWith("AVAILABILITY_CHANGED"))).toBe(true);
    expect(follower.state.kind).toBe("live");
  });

  it("kill -9 of the one it follows: it goes on at the other, no event missing, none twice", async () => {
    const { redis, a, b } = await startPair();
    await a.api.call("register", declared("seed", [tool("t")], HOUR));
    const followed = await follow([a.process.grpc, b.process.grpc]);
    const { follower } = followed;
    let alive: [Replica, Replica] = [a, b];
    let next = 0;
    let over = false;
    const register = async (): Promise<void> => {
      while (!over) await alive[1].api.call("register", declared(`s${next++}`, [tool("t")], HOUR));
    };
    for (let round = 0; round < 3; round++) {
      const writing = register();
      const [dying, other] = alive;
      await has(follower, `s${next + 5}/t`);
      expect(follower.target.address).toBe(dying.process.grpc);
      await dying.process.kill();
      await eventually(
        () => [follower.state.kind, follower.target.address],
        ([kind, address]) => kind === "live" && address === other.process.grpc,
      );
      over = true;
      await writing;
      over = false;
      // The one that starts takes the place of the one that died, under the address that the follower knows.
      alive = [other, await startReplicaAt(dying.process.grpc, redis.url)];
    }
    await alive[1].api.call("register", declared("marker", [tool("last")], HOUR));
    await has(follower, "marker/last");
    const expected = [...Array.from({ length: next }, (_, i) => `REGISTERED s${i}/t`), "REGISTERED marker/last"];
    expect(followed.told).toEqual(expected);
    expect(followed.relists).toEqual([]);
    expect(followed.states.some((s) => s.kind === "stale" && s.why === "disconnected")).toBe(true);
  });

  it("a flushed Redis: it says that it is stale, reads the list again, and keeps no phantom", {
    timeout: 150_000,
  }, async () => {
    const { redis, a, b } = await startPair();
    const short = { leaseTtl: { seconds: 10 } };
    const kept = declared("kept", [tool("t")], HOUR);
    await a.api.call("register", kept);
    await a.api.call("register", declared("phantom", [tool("t"), tool("u")], short));
    const { follower, states, relists, told } = await follow([a.process.grpc, b.process.grpc], { silenceMs: 12_000 });
    await has(follower, "phantom/u");
    await redis.flush();
    await b.api.call("register", kept);
    await becomes(follower, "stale", 40_000);
    expect(idsOf(follower)).toEqual(["kept/t", "phantom/t", "phantom/u"]);
    await eventually(
      () => [follower.state.kind, ...idsOf(follower)],
      (now) => now.join() === "live,kept/t",
      90_000,
    );
    expect(relists).toContain("chain");
    expect(states.every((s) => s.kind !== "stale" || s.why !== "relist" || s.error?.reason === "RELIST_REQUIRED")).toBe(
      true,
    );
    expect(told.filter((t) => t.includes("phantom")).sort()).toEqual([
      "DEREGISTERED phantom/t",
      "DEREGISTERED phantom/u",
    ]);
    expect(told.filter((t) => t.includes("kept"))).toEqual([]);
    await a.api.call("register", declared("after", [tool("t")], HOUR));
    await has(follower, "after/t");
  });

  it("a connection that swallows everything: it says that it is stale, and goes on at another replica", async () => {
    const { a, b } = await startPair();
    const wire = await startWire(Number(a.process.grpc.split(":")[1]));
    const through = `127.0.0.1:${wire.port}`;
    const followed = await follow([through, b.process.grpc], { silenceMs: 12_000 });
    const { follower } = followed;
    await b.api.call("register", declared("before", [tool("t")], HOUR));
    await has(follower, "before/t");
    wire.swallow();
    await b.api.call("register", declared("meanwhile", [tool("t")], HOUR));
    await becomes(follower, "stale", 30_000);
    expect(idsOf(follower)).toEqual(["before/t"]);
    await becomes(follower, "live", 30_000);
    expect(followed.states).toContainEqual(expect.objectContaining({ kind: "stale", why: "silent" }));
    expect(follower.target.address).toBe(b.process.grpc);
    expect(followed.told).toEqual(["REGISTERED before/t", "REGISTERED meanwhile/t"]);
    // The connection that leads nowhere is tried again when the other one is lost too, and costs only time.
    await b.process.kill();
    await becomes(follower, "stale");
    await eventually(
      () => wire.accepted,
      (n) => n > 1,
    );
    expect(idsOf(follower)).toEqual(["before/t", "meanwhile/t"]);
  });

  it("a store that is away: stale once the registry stops saying that all is here, live when it is back", async () => {
    const { redis, a, b } = await startPair();
    await a.api.call("register", declared("s", [tool("t")], HOUR));
    const { follower, relists } = await follow([a.process.grpc, b.process.grpc], { silenceMs: 12_000 });
    redis.pause();
    onTestFinished(() => redis.resume());
    await becomes(follower, "stale", 30_000);
    expect(idsOf(follower)).toEqual(["s/t"]);
    // Somebody who comes now gets the list, and is told that it may be old.
    const late = createFollower({ targets: [b.process.grpc] });
    onTestFinished(() => late.stop());
    expect(await late.start().ready()).toMatchObject({ kind: "stale", why: "unconfirmed" });
    expect(idsOf(late)).toEqual(["s/t"]);
    redis.resume();
    await becomes(follower, "live", 30_000);
    await becomes(late, "live", 30_000);
    expect(relists).toEqual([]);
  });
});
