/** Redis with Sentinels, and a small Redis Cluster, as real processes on free ports of this machine, without files that stay. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { freePort } from "./ports.js";
import { spawnRedis } from "./redis.js";
import { eventually } from "./upstream.js";

/** One server of a topology. */
export interface RedisProcess {
  readonly port: number;
  /** An ordinary connection for looks and changes; it comes back when the server does. */
  readonly admin: Redis;
  readonly running: boolean;
  pause(): void;
  resume(): void;
  /** As a crash: SIGKILL. Nothing is kept. */
  kill(): Promise<void>;
  /** Starts again, empty, on the same port. */
  start(): Promise<void>;
}

export interface SentinelSet {
  /** For `--store`. */
  readonly url: string;
  readonly name: string;
  readonly servers: readonly RedisProcess[];
  readonly sentinels: readonly RedisProcess[];
  /** The server that most Sentinels call the primary. */
  primary(): Promise<RedisProcess>;
  /** Asks for a failover, as before maintenance; the old primary lives on. Answers the new primary. */
  failover(): Promise<RedisProcess>;
  /** kill -9 of the primary; answers it. The Sentinels choose another one by themselves. */
  killPrimary(): Promise<RedisProcess>;
  /** Waits until the Sentinels agree on a primary other than `old`, and it takes writes. */
  promoted(old: RedisProcess): Promise<RedisProcess>;
  /** Waits until every server that runs is the primary or an up-to-date replica of it. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

export interface ClusterSet {
  /** For `--store`. */
  readonly url: string;
  readonly servers: readonly RedisProcess[];
  slotOf(key: string): Promise<number>;
  /** The primary that has the slot. */
  ownerOf(slot: number): Promise<RedisProcess>;
  /** Moves a slot with all its keys, a few at a time, while it is in use. */
  moveSlot(slot: number, to: RedisProcess): Promise<void>;
  /** Waits until every running node says that all slots are served. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

const HOST = "127.0.0.1";
const WITHOUT_FILES = ["--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"];
const READY = "Ready to accept connections";

/**
 * A primary with `replicas` replicas and `sentinels` Sentinels that call it down after a second. With passwords, those
 * of the servers and of the Sentinels differ.
 */
export async function startSentinelSet({
  replicas = 1,
  sentinels = 3,
  name = "main",
  passwords = { servers: "", sentinels: "" },
} = {}): Promise<SentinelSet> {
  const scene = await openScene();
  const servers: RedisProcess[] = [];
  for (let i = 0; i <= replicas; i++) {
    const of = servers[0] ? ["--replicaof", HOST, String(servers[0].port)] : [];
    const locked = passwords.servers ? ["--requirepass", passwords.servers, "--masterauth", passwords.servers] : [];
    const password = passwords.servers;
    servers.push(await scene.server(READY, (port) => [...at(port), ...WITHOUT_FILES, ...of, ...locked], { password }));
  }
  const watched = servers[0] as RedisProcess;
  const quorum = Math.floor(sentinels / 2) + 1;
  const guards: RedisProcess[] = [];
  for (let i = 0; i < sentinels; i++) {
    const port = await freePort();
    const file = join(scene.folder, `sentinel-${port}.conf`);
    await writeFile(file, sentinelFile({ port, name, primary: watched.port, quorum, passwords }));
    const password = passwords.sentinels;
    guards.push(await scene.server("Sentinel ID is", () => [file, "--sentinel"], { port, password }));
  }
  const masterOf = async (guard: RedisProcess): Promise<number> => {
    const [, port] = (await guard.admin.call("SENTINEL", "get-master-addr-by-name", name)) as [string, string];
    return Number(port);
  };
  const agreed = async (): Promise<RedisProcess | undefined> => {
    const ports = await Promise.all(guards.filter((g) => g.running).map((g) => masterOf(g).catch(() => 0)));
    return ports.every((port) => port === ports[0]) ? servers.find((s) => s.port === ports[0]) : undefined;
  };
  const set: SentinelSet = {
    url: `redis+sentinel://${guards.map(({ port }) => `${HOST}:${port}`).join(",")}/${name}`,
    name,
    servers,
    sentinels: guards,
    primary: async () => (await eventually(agreed, (server) => server !== undefined)) as RedisProcess,
    async failover() {
      const old = await set.primary();
      await eventually(
        async () => guards[0]?.admin.call("SENTINEL", "FAILOVER", name).catch((error: Error) => error.message),
        (answer) => answer === "OK",
        30_000,
      );
      return set.promoted(old);
    },
    async killPrimary() {
      const primary = await set.primary();
      await primary.kill();
      return primary;
    },
    async promoted(old) {
      const found = await eventually(
        async () => {
          const server = await agreed();
          const role = server && server !== old && server.running ? ((await server.admin.call("ROLE")) as string[])[0] : "";
          return role === "master" ? server : undefined;
        },
        (server) => server !== undefined,
        60_000,
      );
      return found as RedisProcess;
    },
    async settled() {
      await eventually(
        async () => {
          const primary = await agreed();
          const running = servers.filter((s) => s.running);
          const roles = await Promise.all(running.map((s) => s.admin.call("ROLE").catch(() => [])));
          return primary !== undefined && roles.every((role, i) => settledRole(role, running[i] === primary, primary.port));
        },
        (yes) => yes,
        60_000,
      );
    },
    stop: () => scene.stop(),
  };
  await set.settled();
  await eventually(
    async () => Promise.all(guards.map((guard) => knows(guard, name))),
    (known) => known.every(({ others, slaves }) => others === sentinels - 1 && slaves === replicas),
    30_000,
  );
  return set;
}

function sentinelFile(of: {
  readonly port: number;
  readonly name: string;
  readonly primary: number;
  readonly quorum: number;
  readonly passwords: { readonly servers: string; readonly sentinels: string };
}): string {
  const { port, name, primary, quorum, passwords } = of;
  return [
    ...(passwords.sentinels ? [`requirepass ${passwords.sentinels}`, `sentinel sentinel-pass ${passwords.sentinels}`] : []),
    `port ${port}`,
    `bind ${HOST}`,
    `sentinel monitor ${name} ${HOST} ${primary} ${quorum}`,
    `sentinel down-after-milliseconds ${name} 1000`,
    `sentinel failover-timeout ${name} 3000`,
    ...(passwords.servers ? [`sentinel auth-pass ${name} ${passwords.servers}`] : []),
    "",
  ].join("\n");
}

async function knows({ admin }: RedisProcess, name: string): Promise<{ others: number; slaves: number }> {
  const flat = (await admin.call("SENTINEL", "MASTER", name)) as string[];
  const value = (field: string): number => Number(flat[flat.indexOf(field) + 1]);
  return { others: value("num-other-sentinels"), slaves: value("num-slaves") };
}

function settledRole(role: unknown, isPrimary: boolean, primaryPort: number): boolean {
  const [kind, , port, link] = role as [string, string, number, string];
  return isPrimary ? kind === "master" : kind === "slave" && port === primaryPort && link === "connected";
}

const SLOTS = 16_384;

/** `primaries` nodes that share all slots evenly, each with `replicas` replicas. */
export async function startCluster({ primaries = 3, replicas = 0 } = {}): Promise<ClusterSet> {
  const scene = await openScene();
  const servers: RedisProcess[] = [];
  const buses = new Map<RedisProcess, number>();
  for (let i = 0; i < primaries * (1 + replicas); i++) {
    const bus = await freePort();
    const node = (port: number): string[] => ["--cluster-enabled", "yes", "--cluster-port", String(bus), "--cluster-config-file", `nodes-${port}.conf`];
    const server = await scene.server(READY, (port) => [...at(port), ...WITHOUT_FILES, ...node(port), "--cluster-node-timeout", "2000"]);
    servers.push(server);
    buses.set(server, bus);
  }
  const first = servers[0] as RedisProcess;
  for (const [i, server] of servers.slice(0, primaries).entries()) {
    const [from, to] = [i, i + 1].map((n) => Math.floor((n * SLOTS) / primaries)) as [number, number];
    await server.admin.call("CLUSTER", "ADDSLOTSRANGE", from, to - 1);
    await server.admin.call("CLUSTER", "SET-CONFIG-EPOCH", i + 1);
  }
  for (const server of servers.slice(1)) await first.admin.call("CLUSTER", "MEET", HOST, server.port, buses.get(server) ?? 0);
  const idOf = async ({ admin }: RedisProcess): Promise<string> => (await admin.call("CLUSTER", "MYID")) as string;
  const set: ClusterSet = {
    url: `redis+cluster://${servers.map(({ port }) => `${HOST}:${port}`).join(",")}`,
    servers,
    slotOf: async (key) => (await running(servers).admin.call("CLUSTER", "KEYSLOT", key)) as number,
    async ownerOf(slot) {
      const ranges = (await running(servers).admin.call("CLUSTER", "SLOTS")) as [number, number, [string, number]][];
      const port = ranges.find(([from, to]) => from <= slot && slot <= to)?.[2][1];
      const owner = servers.find((server) => server.port === port);
      if (!owner) throw new Error(`nobody has slot ${slot}`);
      return owner;
    },
    async moveSlot(slot, to) {
      const from = await set.ownerOf(slot);
      await to.admin.call("CLUSTER", "SETSLOT", slot, "IMPORTING", await idOf(from));
      await from.admin.call("CLUSTER", "SETSLOT", slot, "MIGRATING", await idOf(to));
      for (;;) {
        const keys = (await from.admin.call("CLUSTER", "GETKEYSINSLOT", slot, 3)) as string[];
        if (keys.length === 0) break;
        await from.admin.call("MIGRATE", HOST, to.port, "", 0, 5_000, "KEYS", ...keys);
      }
      const id = await idOf(to);
      // The new owner first: otherwise the old one would send its callers to a node that does not know yet.
      for (const server of [to, from, ...servers.filter((s) => s !== to && s !== from)]) {
        // A replica hears of it from its primary.
        const [role] = (await server.admin.call("ROLE")) as [string];
        if (role === "master") await server.admin.call("CLUSTER", "SETSLOT", slot, "NODE", id);
      }
    },
    async settled() {
      await eventually(
        async () => Promise.all(servers.filter((s) => s.running).map((s) => clusterState(s, servers.length))),
        (states) => states.every((ok) => ok),
        60_000,
      );
    },
    stop: () => scene.stop(),
  };
  await set.settled();
  for (const [i, server] of servers.slice(primaries).entries())
    await server.admin.call("CLUSTER", "REPLICATE", await idOf(servers[i % primaries] as RedisProcess));
  await set.settled();
  return set;
}

async function clusterState({ admin }: RedisProcess, nodes: number): Promise<boolean> {
  const info = String(await admin.call("CLUSTER", "INFO").catch(() => ""));
  return info.includes("cluster_state:ok") && info.includes(`cluster_known_nodes:${nodes}\r\n`);
}

function running(servers: readonly RedisProcess[]): RedisProcess {
  const one = servers.find((server) => server.running);
  if (!one) throw new Error("no node of the cluster runs");
  return one;
}

function at(port: number): string[] {
  return ["--port", String(port), "--bind", HOST];
}

interface Scene {
  readonly folder: string;
  /** On a free port unless one is given. */
  server(
    ready: string,
    args: (port: number) => readonly string[],
    given?: { readonly port?: number; readonly password?: string },
  ): Promise<RedisProcess>;
  stop(): Promise<void>;
}

async function openScene(): Promise<Scene> {
  const folder = await mkdtemp(join(tmpdir(), "toolcrib-redis-"));
  const started: RedisProcess[] = [];
  return {
    folder,
    async server(ready, args, { port: given, password = "" } = {}) {
      const port = given ?? (await freePort());
      const server = await startProcess({ folder, port, args: args(port), ready, password });
      started.push(server);
      return server;
    },
    async stop() {
      for (const { admin } of started) admin.disconnect();
      await Promise.all(started.map((server) => server.kill()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function startProcess(of: {
  readonly folder: string;
  readonly port: number;
  readonly args: readonly string[];
  readonly ready: string;
  readonly password: string;
}): Promise<RedisProcess> {
  const { folder, port, args, ready, password } = of;
  let child: ChildProcess = await spawnRedis(folder, args, ready);
  const patient = { maxRetriesPerRequest: 20, retryStrategy: () => 50, enableReadyCheck: false };
  const admin = new Redis({ host: HOST, port, protocol: 2, ...patient, ...(password && { password }) });
  admin.on("error", () => {});
  await admin.ping();
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null;
  return {
    port,
    admin,
    get running() {
      return isRunning();
    },
    pause: () => void child.kill("SIGSTOP"),
    resume: () => void child.kill("SIGCONT"),
    async kill() {
      if (!isRunning()) return;
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    },
    async start() {
      if (isRunning()) return;
      await rm(join(folder, "dump.rdb"), { force: true });
      child = await spawnRedis(folder, args, ready);
      await admin.ping();
    },
  };
}
