/** Redis as operators run it: with TLS, users with few rights, prefixes, passwords in files, and settings that need a word. */
import { once } from "node:events";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { describe, expect, inject, it, onTestFinished, vi } from "vitest";
import type { Logger } from "../../src/catalogue/ports.js";
import { openRedisStore } from "../../src/store/redis/redis-store.js";
import { aclRule } from "../../src/store/redis/rights.js";
import { toolcribDone } from "../support/cli.js";
import { refusalOf } from "../support/details.js";
import { Authority, hasOpenssl } from "../support/identity.js";
import { redisForTest, startReplicaOn } from "../support/pair.js";
import { freePort } from "../support/ports.js";
import { spawnRedis, startRedis, type TestRedis } from "../support/redis.js";
import { startCluster, startSentinelSet } from "../support/redis-topologies.js";
import { declared, type RegistryProcess, RemoteRegistry, startRegistry, temporaryFolder } from "../support/registry.js";
import { eventually } from "../support/upstream.js";

vi.setConfig({ testTimeout: 60_000 });

const tool = (name: string) => ({ name, description: `Does ${name}`, inputSchema: { type: "object" } });
const HOUR = { leaseTtl: { seconds: 3600 } };
const withRedis = describe.skipIf(inject("redisServer") === "");
const random = { next: () => 0.5, id: () => "0".repeat(32) };

interface Line {
  readonly level: string;
  readonly text: string;
  readonly facts: Record<string, unknown>;
}

function listener(): { readonly logger: Logger; readonly lines: Line[] } {
  const lines: Line[] = [];
  const at = (level: string) => (facts: object, text: string) => void lines.push({ level, text, facts: { ...facts } });
  return { lines, logger: { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") } };
}

/** What a registry says of a Redis when it opens its store there. */
async function saidOf(redis: Pick<TestRedis, "url">): Promise<Line[]> {
  const { logger, lines } = listener();
  const store = await openRedisStore({ url: redis.url, random, logger });
  await store.close();
  return lines;
}

async function redisWith(...args: string[]): Promise<TestRedis> {
  const redis = await startRedis(...args);
  onTestFinished(() => redis.stop());
  return redis;
}

const KEPT = ["--appendonly", "yes", "--appendfsync", "everysec"];

withRedis("what is said of an address that is none of a Redis as --store says", () => {
  const warned = async (url: string) => (await saidOf({ url })).filter(({ level }) => level === "warn");

  it.each([
    ["a Redis taken for a Sentinel", (at: string) => `redis+sentinel://${at}/main`, /^a Redis and no Sentinel listens/],
    ["a Redis taken for a Cluster", (at: string) => `redis+cluster://${at}`, /is no node of a Cluster/],
  ])("%s", async (_what, url, text) => {
    const redis = await redisWith(...KEPT);
    expect(await warned(url(`127.0.0.1:${redis.port}`))).toEqual([expect.objectContaining({ text: expect.stringMatching(text) as string })]);
  });

  it("a Sentinel taken for a Redis, and a primary that no Sentinel knows", async () => {
    const set = await startSentinelSet();
    onTestFinished(() => set.stop());
    const nodes = set.url.replace("redis+sentinel://", "").replace(/\/.*/, "");
    const [alone] = await warned(`redis://${nodes.split(",")[0]}`);
    expect(alone?.text).toMatch(/runs no scripts, as a Sentinel does not/);
    expect(JSON.stringify(alone)).not.toContain("#!lua");
    expect((await warned(`redis+sentinel://${nodes}/nope`))[0]?.text).toMatch(/know no primary by the name of nope; trying again/);
  });

  it("something that is no Redis", async () => {
    const web = createServer((_request, response) => response.end("hello")).listen(0, "127.0.0.1");
    onTestFinished(() => void web.close());
    await once(web, "listening");
    const [line] = await warned(`redis://127.0.0.1:${(web.address() as AddressInfo).port}`);
    expect(line?.text).toMatch(/is no Redis; trying again/);
    expect(JSON.stringify(line)).not.toContain("report");
  });
});

withRedis("what is said of a Redis's settings", () => {
  it.each([
    ["as it should be", [...KEPT, "--maxmemory", "64mb", "--maxmemory-policy", "noeviction"], undefined, {}],
    ["without a limit nothing is evicted", [...KEPT, "--maxmemory-policy", "allkeys-lru"], undefined, {}],
    [
      "any key may be evicted",
      [...KEPT, "--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lfu"],
      /parts of the catalogue.*Set maxmemory-policy noeviction/,
      { "maxmemory-policy": "allkeys-lfu" },
    ],
    [
      "keys with an expiry may be evicted, which only claims have",
      [...KEPT, "--maxmemory", "64mb", "--maxmemory-policy", "volatile-ttl"],
      /The catalogue, its leases and definitions have none and stay; the claims.*Set maxmemory-policy noeviction/,
      { "maxmemory-policy": "volatile-ttl" },
    ],
    ["nothing is kept", [], /keeps nothing over a restart.*Set appendonly yes/, { appendonly: "no", save: "" }],
    [
      "snapshots only",
      ["--save", "3600", "1"],
      /back to the last snapshot.*Set appendonly yes/,
      { appendonly: "no", save: "3600 1" },
    ],
    [
      "written when the system likes",
      ["--appendonly", "yes", "--appendfsync", "no"],
      /up to 30 s.*Set appendfsync everysec/,
      { appendonly: "yes", appendfsync: "no" },
    ],
  ])("%s", async (_case, args, text, facts) => {
    const redis = await redisWith(...args);
    const lines = await saidOf(redis);
    if (!text) return expect(lines).toEqual([]);
    expect(lines).toEqual([
      { level: "warn", text: expect.stringMatching(text) as string, facts: { redis: `Redis at 127.0.0.1:${redis.port}`, ...facts } },
    ]);
  });

  it("once, however often the connection comes back", async () => {
    const redis = await redisWith();
    const { logger, lines } = listener();
    const store = await openRedisStore({ url: redis.url, random, logger });
    onTestFinished(() => store.close());
    for (let i = 1; i <= 2; i++) {
      await redis.admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      await eventually(
        () => lines.filter(({ text }) => text === "Redis is back").length,
        (count) => count >= i,
      );
    }
    expect(lines.filter(({ text }) => text.includes("keeps nothing"))).toHaveLength(1);
  });

  it("again when a setting has changed; and a flush does not free the number of partitions", async () => {
    const redis = await redisWith(...KEPT, "--maxmemory", "64mb", "--maxmemory-policy", "noeviction");
    const { logger, lines } = listener();
    const store = await openRedisStore({ url: redis.url, random, logger, partitions: 4, lookMs: 50 });
    onTestFinished(() => store.close());
    expect(lines).toEqual([]);
    await redis.admin.config("SET", "maxmemory-policy", "allkeys-lru");
    await eventually(
      () => lines.map(({ facts }) => facts["maxmemory-policy"]),
      (told) => told.includes("allkeys-lru"),
    );
    await redis.flush();
    await eventually(
      () => redis.admin.hget("toolcrib:meta", "partitions"),
      (count) => count === "4",
    );
    // A look that a busy machine answers late tells of a Redis that was away for a moment.
    expect(lines.filter(({ facts }) => "maxmemory-policy" in facts)).toHaveLength(1);
  });

  it("a primary that has replicas and does not wait for them", async () => {
    const redis = await redisWith(...KEPT);
    const replica = await redisWith("--replicaof", "127.0.0.1", String(redis.port));
    await eventually(
      () => redis.admin.info("replication"),
      (info) => info.includes("connected_slaves:1"),
    );
    expect(await saidOf(redis)).toMatchObject([{ level: "info", text: expect.stringContaining("min-replicas-to-write 1") as string }]);
    await redis.admin.config("SET", "min-replicas-to-write", "1");
    await eventually(
      () => redis.admin.info("replication"),
      (info) => info.includes("min_slaves_good_slaves:1"),
    );
    expect(await saidOf(redis)).toEqual([]);
    expect(replica.port).not.toBe(redis.port);
  });

  it("what a user may not look at is said to be unchecked, and what INFO tells is used", async () => {
    const redis = await redisWith(...KEPT, "--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru");
    await redis.admin.acl("SETUSER", "blind", "on", ">pw", ...rule("toolcrib:"), "-config|get");
    const url = `redis://blind:pw@127.0.0.1:${redis.port}`;
    const lines = await saidOf({ url });
    expect(lines.map(({ level }) => level)).toEqual(["info", "warn"]);
    expect(lines[0]?.text).toMatch(/appendfsync and save were not checked: allow \+config\|get/);
    expect(lines[1]?.facts).toMatchObject({ "maxmemory-policy": "allkeys-lru" });
    await redis.admin.acl("SETUSER", "blind", "-info");
    const fewer = await saidOf({ url });
    expect(fewer).toMatchObject([{ level: "info", text: expect.stringContaining("allow +info and +config|get") as string }]);
  });
});

function rule(prefix: string, kind: "single" | "cluster" = "single"): string[] {
  return aclRule(prefix, kind).split(" ");
}

/** Everything that a registry does in its store. */
async function cycle(replica: { readonly process: RegistryProcess; readonly api: RemoteRegistry }): Promise<void> {
  const { api, process } = replica;
  const watch = api.watch();
  await watch.ready();
  const { lease, setDigest } = await api.call("register", declared("s", [tool("t")], HOUR));
  await api.call("register", declared("mortal", [tool("t")], { leaseTtl: { seconds: 10 } }));
  const { results } = await api.call("renew", { leases: [{ leaseId: lease.leaseId, setDigest }] });
  expect(results[0].state).toBe("STATE_OK");
  expect(await api.toolIds()).toEqual(["mortal/t", "s/t"]);
  // Claims of it are notes.
  await api.call("register", { serverId: "away", endpoint: `http://127.0.0.1:${await freePort()}/mcp`, standing: true, introspect: {} });
  expect((await api.call("deregister", { leaseId: lease.leaseId })).removed).toBe(true);
  expect((await api.call("deregister", { serverId: "away", all: true })).removed).toBe(true);
  await eventually(
    () => watch.told,
    (told) => told.includes("EXPIRED mortal/t"),
    40_000,
  );
  expect(watch.told).toEqual(["REGISTERED s/t", "REGISTERED mortal/t", "DEREGISTERED s/t", "EXPIRED mortal/t"]);
  for (const { level, msg } of process.logs()) expect(["warn", "error"].includes(String(level)) ? msg : "").not.toMatch(/denied|may not|permission/i);
}

withRedis("an ACL user", () => {
  it("with exactly the documented rights does everything, its password in a file and in no output", async () => {
    const documented = readFileSync(new URL("../../deploy/README.md", import.meta.url), "utf8");
    expect(documented).toContain(aclRule("toolcrib:", "single"));
    const redis = await redisWith();
    const secret = "planted-secret-word";
    await redis.admin.acl("SETUSER", "toolcrib", "on", `>${secret}`, ...rule("toolcrib:"));
    const file = join(await temporaryFolder(), "password");
    writeFileSync(file, `${secret}\n`);
    const replica = await startReplicaOn(`redis://toolcrib@127.0.0.1:${redis.port}`, ["--redis-password-file", file]);
    await cycle(replica);
    await redis.admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await eventually(
      () => replica.process.output(),
      (text) => text.includes("Redis is back"),
    );
    const inUrl = await startReplicaOn(`redis://toolcrib:${secret}@127.0.0.1:${redis.port}`);
    for (const { process } of [replica, inUrl]) {
      expect(process.output()).not.toContain(secret);
      expect(await (await fetch(`${process.ops}/metrics`)).text()).not.toContain(secret);
    }
  });

  it("of a Cluster needs three rights more", async () => {
    const cluster = await startCluster();
    onTestFinished(() => cluster.stop());
    for (const { admin } of cluster.servers) await admin.acl("SETUSER", "toolcrib", "on", ">pw", ...rule("crib:", "cluster"));
    const url = cluster.url.replace("://", "://toolcrib:pw@");
    await cycle(await startReplicaOn(url, ["--redis-prefix", "crib:", "--partitions", "3"]));
  });

  it.each([
    [["-xadd", "-zadd"], /the user few of this Redis may not run ZADD, XADD: grant it \+zadd \+xadd/],
    [["-eval"], /may not run EVAL: grant it \+eval/],
    [["-evalsha"], /may not run EVALSHA: grant it \+evalsha/],
    [["resetkeys", "~other:*"], /the user few of this Redis may not use the keys toolcrib:\*: grant them \(ACL SETUSER few ~toolcrib:\*\)/],
  ])("without %j ends the start with a sentence that names it", async (change, sentence) => {
    const redis = await redisWith();
    await redis.admin.acl("SETUSER", "few", "on", ">pw", ...rule("toolcrib:"), ...change);
    await expect(startRegistry({ store: `redis://few:pw@127.0.0.1:${redis.port}` })).rejects.toThrow(sentence);
  });

  it("that loses a right makes the store unavailable, and all is well when it has it again", async () => {
    const redis = await redisWith();
    await redis.admin.acl("SETUSER", "toolcrib", "on", ">pw", ...rule("toolcrib:"));
    const { api, process } = await startReplicaOn(`redis://toolcrib:pw@127.0.0.1:${redis.port}`);
    await api.call("register", declared("s", [tool("t")], HOUR));
    await redis.admin.acl("SETUSER", "toolcrib", "-xadd");
    const refused = await refusalOf(api.call("register", declared("t", [tool("t")], HOUR)));
    expect(refused).toMatchObject({ code: status.UNAVAILABLE, reason: "STORE_UNAVAILABLE" });
    await redis.admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await eventually(
      () => process.logs().some(({ level, reason }) => level === "error" && /may not run XADD: grant it \+xadd/.test(String(reason))),
      (said) => said,
    );
    expect(await api.toolIds()).toEqual(["s/t"]);
    await redis.admin.acl("SETUSER", "toolcrib", "+xadd");
    await eventually(
      () => api.call("register", declared("t", [tool("t")], HOUR)).then(() => true, () => false),
      (done) => done,
    );
  });

  it("with a wrong password is told so", async () => {
    const redis = await redisWith();
    await redis.admin.acl("SETUSER", "toolcrib", "on", ">pw", ...rule("toolcrib:"));
    const process = await startRegistry({ store: `redis://toolcrib:wrong-word@127.0.0.1:${redis.port}`, unready: true });
    await eventually(
      () => process.logs().some(({ msg }) => String(msg).includes("does not take the user or password of --store")),
      (said) => said,
    );
    expect(process.output()).not.toContain("wrong-word");
  });
});

withRedis("Sentinels", () => {
  it("with passwords of their own and of their servers", async () => {
    const passwords = { servers: "servers-word", sentinels: "sentinels-word" };
    const set = await startSentinelSet({ passwords });
    onTestFinished(() => set.stop());
    const folder = await temporaryFolder();
    const [file, sentinels] = [join(folder, "servers"), join(folder, "sentinels")] as const;
    writeFileSync(file, passwords.servers);
    writeFileSync(sentinels, passwords.sentinels);
    const { api, process } = await startReplicaOn(set.url, [
      ...["--redis-password-file", file, "--redis-sentinel-password-file", sentinels],
    ]);
    await api.call("register", declared("s", [tool("t")], HOUR));
    await set.failover();
    await eventually(
      () => api.call("register", declared("t", [tool("t")], HOUR)).then(() => true, () => false),
      (done) => done,
      30_000,
    );
    for (const word of Object.values(passwords)) expect(process.output()).not.toContain(word);
  });
});

withRedis("key prefixes", () => {
  it("two registries on one Redis do not see each other", async () => {
    const redis = await redisForTest();
    const [a, b] = await Promise.all(["one:", "two:"].map((prefix) => startReplicaOn(redis.url, ["--redis-prefix", prefix])));
    if (!a || !b) throw new Error("two replicas");
    const watch = b.api.watch();
    await watch.ready();
    const { lease, setDigest } = await a.api.call("register", declared("s", [tool("t")], HOUR));
    const { results } = await b.api.call("renew", { leases: [{ leaseId: lease.leaseId, setDigest }] });
    expect(results[0].state).toBe("STATE_UNKNOWN_LEASE");
    expect(await a.api.toolIds()).toEqual(["s/t"]);
    await b.api.call("register", declared("other", [tool("u")], HOUR));
    await eventually(
      () => watch.told,
      (told) => told.length > 0,
    );
    expect(watch.told).toEqual(["REGISTERED other/u"]);
    expect(await b.api.toolIds()).toEqual(["other/u"]);
    expect((await redis.admin.keys("*")).every((key) => key.startsWith("one:") || key.startsWith("two:"))).toBe(true);
  });
});

describe.skipIf(!hasOpenssl || inject("redisServer") === "")("rediss://", () => {
  async function tlsRedis(folder: string, clients: "yes" | "no"): Promise<{ url: string; authority: Authority }> {
    const authority = new Authority(folder, "redis-authority");
    const { cert, key } = authority.issue("redis", "DNS:localhost,IP:127.0.0.1");
    const port = await freePort();
    const tls = ["--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", authority.cert, "--tls-auth-clients", clients];
    const listens = ["--port", "0", "--tls-port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
    const child = await spawnRedis(folder, [...listens, ...tls], "Ready to accept connections");
    onTestFinished(() => void child.kill("SIGKILL"));
    return { url: `rediss://127.0.0.1:${port}`, authority };
  }

  it("is judged by --redis-ca; without that the reason is told", async () => {
    const folder = await temporaryFolder();
    const { url, authority } = await tlsRedis(folder, "no");
    const trusting = await startReplicaOn(url, ["--redis-ca", authority.cert]);
    await trusting.api.call("register", declared("s", [tool("t")], HOUR));
    expect(await trusting.api.toolIds()).toEqual(["s/t"]);
    const doubting = await startRegistry({ store: url, unready: true });
    expect(doubting.output()).toMatch(/is not ready yet, waiting for Redis at 127\.0\.0\.1:\d+ \(.*certificate/);
    expect(doubting.output()).not.toContain("is up");
    const absent = join(folder, "absent.pem");
    await expect(startRegistry({ store: url, args: ["--redis-ca", absent] })).rejects.toThrow(
      `the file of --redis-ca, ${absent}, cannot be read (ENOENT)`,
    );
  });

  it("that wants a certificate is shown --redis-cert, a renewed one without a restart", async () => {
    const folder = await temporaryFolder();
    const { url, authority } = await tlsRedis(folder, "yes");
    const good = authority.issue("registry", "DNS:registry");
    const stranger = new Authority(folder, "stranger").issue("strange", "DNS:registry");
    const [cert, key] = [join(folder, "shown.pem"), join(folder, "shown.key")] as const;
    copyFileSync(stranger.cert, cert);
    copyFileSync(stranger.key, key);
    const process = await startRegistry({
      store: url,
      args: ["--redis-ca", authority.cert, "--redis-cert", cert, "--redis-key", key],
      unready: true,
    });
    expect(process.output()).toContain("is not ready yet, waiting for Redis at");
    copyFileSync(good.key, key);
    copyFileSync(good.cert, cert);
    await eventually(
      () => process.output(),
      (text) => text.includes("is up: gRPC"),
    );
    const api = new RemoteRegistry(process.grpc);
    await api.call("register", declared("s", [tool("t")], HOUR));
  });
});

withRedis("a registry whose Redis is not there", () => {
  it("says what it waits for, in its greeting, at /readyz and to the doctor", async () => {
    const port = await freePort();
    const process = await startRegistry({ store: `redis://someone:planted-word@127.0.0.1:${port}`, unready: true });
    const waits = `waiting for Redis at 127.0.0.1:${port} (connect ECONNREFUSED 127.0.0.1:${port})`;
    expect(process.output()).toContain(`is not ready yet, ${waits}\n`);
    expect(process.output()).not.toContain("is up");
    expect((await fetch(`${process.ops}/livez`)).status).toBe(200);
    const answer = await fetch(`${process.ops}/readyz`);
    expect(answer.status).toBe(503);
    expect(await answer.json()).toEqual({ status: "not ready", reasons: [waits] });
    const { stdout, code } = await toolcribDone(["doctor", "--registry", process.grpc, "--ops", process.ops]);
    expect(code).toBe(1);
    expect(stdout).toContain(`FAIL  readiness: not ready: ${waits}`);
    expect(stdout).toContain("→ start that Redis, mend the way to it, or correct --store; the registry becomes ready by itself");
    // Callers hear that it is not ready, and not where its store is.
    const refused = await refusalOf(new RemoteRegistry(process.grpc).call("getStubs"));
    expect(refused).toMatchObject({ code: status.UNAVAILABLE, reason: "NOT_READY" });
    expect(refused.message).not.toContain(String(port));
    expect(process.output()).not.toContain("planted-word");
  });
});
