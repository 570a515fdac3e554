/** Redis as a run has it: one server, one with Sentinels, or a Cluster; and each replica's own wires to it. */
import { partitionIndex } from "../../src/catalogue/placement.js";
import { partitionKeys } from "../../src/store/redis/keys.js";
import type { Redis } from "ioredis";
import { startRedis } from "../support/redis.js";
import { type RedisProcess, startCluster, startSentinelSet } from "../support/redis-topologies.js";
import type { Topology } from "./options.js";
import { renaming, Wire, type WireMode } from "./wire.js";

/** All wires of one replica. */
export interface Line {
  /** For `--store`. */
  readonly url: string;
  set(mode: WireMode): void;
}

/** What can be done to it. Each answers when it is over, and is to be told as a loss of acknowledged writes where it may be one. */
export interface RedisSide {
  readonly partitions: number;
  line(): Promise<Line>;
  /** FLUSHALL everywhere. */
  flush(): Promise<void>;
  /** CLIENT PAUSE everywhere. */
  pauseClients(ms: number): Promise<void>;
  /** Another server becomes the primary on request; undefined where there is none. */
  readonly failover: (() => Promise<void>) | undefined;
  /** kill -9 of a primary; it comes back empty, once another one has taken over if there is one. */
  kill(target: number): Promise<void>;
  /** SIGSTOP of a primary: whoever takes over meanwhile parts the histories. */
  freeze(target: number, ms: number): Promise<void>;
  readonly moveSlot: ((partition: number) => Promise<void>) | undefined;
  stop(): Promise<void>;
}

export const CLUSTER_PARTITIONS = 4;

export function startRedisSide(topology: Topology): Promise<RedisSide> {
  if (topology === "sentinel") return sentinelSide();
  return topology === "cluster" ? clusterSide() : singleSide();
}

/** A namespace for each partition. */
export function namespacesOf(partitions: number): string[] {
  if (partitions === 1) return ["default"];
  const found = new Map<number, string>();
  for (let i = 0; found.size < partitions; i++) {
    const partition = partitionIndex(`team-${i}`, partitions);
    if (!found.has(partition)) found.set(partition, `team-${i}`);
  }
  return Array.from({ length: partitions }, (_, partition) => found.get(partition) as string);
}

class Wires {
  readonly #all: Wire[] = [];

  async to(port: number, rewrite?: (bytes: Buffer) => Buffer): Promise<Wire> {
    const wire = await Wire.open(port, rewrite);
    this.#all.push(wire);
    return wire;
  }

  close(): void {
    for (const wire of this.#all) wire.close();
  }
}

async function singleSide(): Promise<RedisSide> {
  const redis = await startRedis();
  const wires = new Wires();
  return {
    partitions: 1,
    async line() {
      const wire = await wires.to(redis.port);
      return { url: `redis://127.0.0.1:${wire.port}`, set: (mode) => wire.set(mode) };
    },
    flush: () => redis.flush(),
    pauseClients: (ms) => pause([redis.admin], ms),
    failover: undefined,
    kill: () => redis.restart(),
    async freeze(_target, ms) {
      redis.pause();
      await sleep(ms);
      redis.resume();
    },
    moveSlot: undefined,
    async stop() {
      wires.close();
      redis.resume();
      await redis.stop();
    },
  };
}

async function sentinelSide(): Promise<RedisSide> {
  const set = await startSentinelSet();
  const wires = new Wires();
  return {
    partitions: 1,
    async line() {
      const ports = new Map<number, number>();
      const rename = renaming(ports);
      const mine: Wire[] = [];
      const wireTo = async ({ port }: RedisProcess, rewrite?: (bytes: Buffer) => Buffer): Promise<Wire> => {
        const wire = await wires.to(port, rewrite);
        ports.set(port, wire.port);
        mine.push(wire);
        return wire;
      };
      for (const server of set.servers) await wireTo(server);
      const guards: Wire[] = [];
      for (const guard of set.sentinels) guards.push(await wireTo(guard, rename));
      const addresses = guards.map(({ port }) => `127.0.0.1:${port}`).join(",");
      return { url: `redis+sentinel://${addresses}/${set.name}`, set: (mode) => mine.forEach((wire) => void wire.set(mode)) };
    },
    async flush() {
      await (await set.primary()).admin.flushall();
    },
    async pauseClients(ms) {
      await pause([(await set.primary()).admin], ms);
      await set.settled();
    },
    async failover() {
      await set.failover();
      await set.settled();
    },
    async kill() {
      const old = await set.killPrimary();
      await set.promoted(old);
      await old.start();
      await set.settled();
    },
    async freeze(_target, ms) {
      const primary = await set.primary();
      primary.pause();
      await sleep(ms);
      primary.resume();
      await set.settled();
    },
    moveSlot: undefined,
    async stop() {
      wires.close();
      for (const server of set.servers) server.resume();
      await set.stop();
    },
  };
}

async function clusterSide(): Promise<RedisSide> {
  const cluster = await startCluster({ primaries: 3, replicas: 1 });
  const wires = new Wires();
  const slotOf = (partition: number): Promise<number> => cluster.slotOf(partitionKeys("toolcrib:", partition % CLUSTER_PARTITIONS).head);
  const primaries = async (): Promise<RedisProcess[]> => {
    const roles = await Promise.all(cluster.servers.map(async (s) => ({ s, role: (await s.admin.call("ROLE")) as [string] })));
    return roles.filter(({ role }) => role[0] === "master").map(({ s }) => s);
  };
  const ownerOf = async (partition: number): Promise<RedisProcess> => cluster.ownerOf(await slotOf(partition));
  return {
    partitions: CLUSTER_PARTITIONS,
    async line() {
      const ports = new Map<number, number>();
      const rename = renaming(ports);
      const mine: Wire[] = [];
      for (const { port } of cluster.servers) {
        const wire = await wires.to(port, rename);
        ports.set(port, wire.port);
        mine.push(wire);
      }
      const addresses = mine.map(({ port }) => `127.0.0.1:${port}`).join(",");
      return { url: `redis+cluster://${addresses}`, set: (mode) => mine.forEach((wire) => void wire.set(mode)) };
    },
    async flush() {
      for (const { admin } of await primaries()) await admin.flushall();
    },
    pauseClients: async (ms) => pause((await primaries()).map(({ admin }) => admin), ms),
    async failover() {
      const owner = await ownerOf(0);
      const follower = await followerOf(owner, cluster.servers);
      await follower.admin.call("CLUSTER", "FAILOVER");
      await until(async () => (await ownerOf(0)) === follower);
      await cluster.settled();
    },
    async kill(target) {
      const owner = await ownerOf(target);
      await owner.kill();
      await until(async () => (await ownerOf(target)) !== owner);
      await owner.start();
      await cluster.settled();
    },
    async freeze(target, ms) {
      const owner = await ownerOf(target);
      owner.pause();
      await sleep(ms);
      owner.resume();
      await cluster.settled();
    },
    async moveSlot(partition) {
      const slot = await slotOf(partition);
      const owner = await cluster.ownerOf(slot);
      const to = (await primaries()).find((server) => server !== owner);
      if (to) await cluster.moveSlot(slot, to);
    },
    async stop() {
      wires.close();
      for (const server of cluster.servers) server.resume();
      await cluster.stop();
    },
  };
}

async function followerOf(owner: RedisProcess, all: readonly RedisProcess[]): Promise<RedisProcess> {
  for (const server of all) {
    const [role, , port] = (await server.admin.call("ROLE")) as [string, string, number];
    if (role === "slave" && port === owner.port) return server;
  }
  throw new Error(`the primary at port ${owner.port} has no replica`);
}

async function pause(admins: readonly Redis[], ms: number): Promise<void> {
  for (const admin of admins) await admin.call("CLIENT", "PAUSE", String(ms), "ALL");
  await sleep(ms);
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export async function until(look: () => boolean | Promise<boolean>, ms = 60_000): Promise<void> {
  const end = performance.now() + ms;
  while (!(await Promise.resolve(look()).catch(() => false))) {
    if (performance.now() > end) throw new Error(`it did not come true within ${ms} ms: ${look.toString()}`);
    await sleep(50);
  }
}
