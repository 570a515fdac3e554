/** A rolling restart of two replicas under load, and a store that a newer version writes to, too. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Metadata, type ServiceError } from "@grpc/grpc-js";
import { Redis } from "ioredis";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { ChangeSchema, RecordSchema } from "../../src/gen/toolcrib/storage/v1/storage_pb.js";
import { RegisterRequestSchema } from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import { chainOf } from "../../src/store/chain.js";
import { joinRow, splitRow } from "../../src/store/codec/rows.js";
import { partitionKeys } from "../../src/store/redis/keys.js";
import { callRaw, failing, SERVICE } from "../integration/grpc-support.js";
import { detailsOf } from "../support/details.js";
import { redisForTest, resume, startReplicaOn } from "../support/pair.js";
import { freePort } from "../support/ports.js";
import { declared, RemoteRegistry, type RemoteWatch, startRegistry } from "../support/registry.js";
import { eventually } from "../support/upstream.js";

const withRedis = describe.skipIf(inject("redisServer") === "");
const TOOL = { name: "a", description: "Does it.", inputSchema: { type: "object" } };
const KEYS = partitionKeys("toolcrib:", 0);
const leaseTtl = { seconds: 3_600 };

/** Both addresses, as any client with two of them: a refusal that promises to have done nothing is taken to the other one. */
class TwoAddresses {
  readonly refusals: Record<string, number> = {};
  readonly lost: string[] = [];
  answered = 0;

  constructor(readonly replicas: RemoteRegistry[]) {}

  async call(method: string, request: object, first: number): Promise<any> {
    for (let attempt = 0; ; attempt++) {
      const replica = this.replicas[(first + attempt) % 2] as RemoteRegistry;
      try {
        const answer = await replica.call(method, request, 30_000);
        this.answered++;
        return answer;
      } catch (error) {
        const { reason } = detailsOf(error as ServiceError);
        const kind = reason || neverSent(error as ServiceError);
        if (!["DRAINING", "NOT_READY", "never sent"].includes(kind) || attempt > 2_000) {
          this.lost.push(`${method}: ${kind} ${(error as ServiceError).details}`);
          return undefined;
        }
        this.refusals[kind] = (this.refusals[kind] ?? 0) + 1;
        if (attempt > 1) await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  }
}

/** Of a call that failed without the registry's own word: whether it was refused before it began. */
function neverSent({ code, details }: ServiceError): string {
  return code === 14 && /ECONNREFUSED|No connection established/i.test(details) ? "never sent" : `code ${code}`;
}

withRedis("a rollout", () => {
  it("SIGTERM under load loses no unary call, and every watch goes on at the other replica (P2, P4)", async () => {
    const redis = await redisForTest();
    let [a, b] = await Promise.all([startReplicaOn(redis.url, [], {}, await freePort()), startReplicaOn(redis.url, [], {}, await freePort())]);
    const client = new TwoAddresses([a.api, b.api]);
    const { lease, setDigest } = await client.call("register", declared("kept", [TOOL], { leaseTtl }), 0);
    const leases = [{ leaseId: lease.leaseId, setDigest }];
    const watch = a.api.watch();
    await watch.ready();

    let going = true;
    let registered = 0;
    const worker = async (id: number): Promise<void> => {
      for (let i = id; going; i++) {
        await client.call("getStubs", { filter: { serverIds: ["kept"] } }, i);
        await client.call("getFullSchema", { toolId: "kept/a" }, i);
        const renewed = await client.call("renew", { leases }, i);
        expect(renewed?.results.map((r: { state: string }) => r.state)).toEqual(["STATE_OK"]);
        await client.call("register", declared(`worker-${id}`, [{ ...TOOL, description: `Turn ${i}.` }], { leaseTtl }), i);
        registered++;
      }
    };
    const work = Promise.all(Array.from({ length: 6 }, (_, id) => worker(id)));
    const more = (from = client.answered) => eventually(() => client.answered, (n) => n > from + 200, 60_000);
    await more();
    for (const turn of [0, 1]) {
      const old = turn === 0 ? a : b;
      const port = Number(old.process.grpc.split(":")[1]);
      expect(await old.process.stop(), old.process.output()).toBe(0);
      await more();
      const process = await startRegistry({ store: redis.url, port });
      const back = { process, api: new RemoteRegistry(process.grpc) };
      client.replicas[turn] = back.api;
      if (turn === 0) a = back;
      else b = back;
      await more();
    }
    going = false;
    await work;
    expect(client.lost).toEqual([]);
    expect(client.answered).toBe(registered * 4 + 1);

    // The watch was told to go, went on at the other one, and heard every change once: each begins where the one before had ended.
    expect(detailsOf(watch.error as ServiceError)).toMatchObject({ reason: "DRAINING" });
    const again: RemoteWatch = await resume(b.api, watch.token);
    const digest = (await b.api.call("getStubs", {})).stubs.map((s: { toolId: string; digest: string }) => `${s.toolId} ${s.digest}`);
    const last = new Map(watch.stubs.map((s) => [s.toolId, s.digest]));
    for (const e of [...watch.events, ...again.events]) {
      if (e.type === "SCHEMA_INVALIDATED") expect(e.oldDigest, `a gap before ${e.toolId}`).toBe(last.get(e.toolId));
      last.set(e.toolId, e.newDigest);
    }
    expect([...last].map(([id, d]) => `${id} ${d}`).sort()).toEqual(digest.sort());
    process.stdout.write(`rollout: ${client.answered} calls answered, none lost; taken elsewhere: ${JSON.stringify(client.refusals)}\n`);
  }, 180_000);
});

withRedis("beside a newer version", () => {
  const unknown = (no: number) => ({ no, wireType: 2, data: Buffer.from([2, 1, 2]) });

  async function rig() {
    const redis = await redisForTest();
    const store = new Redis(redis.url);
    onTestFinished(() => void store.disconnect());
    const writer = await startReplicaOn(redis.url);
    await writer.api.call("register", declared("s", [TOOL], { leaseTtl }));
    expect(await writer.process.stop()).toBe(0);
    const key = KEYS.records;
    const [field] = await store.hkeys(key);
    const row = splitRow((await store.hgetBuffer(key, field as string)) as Buffer);
    const put = (message: ReturnType<typeof stored>) => store.hset(key, field as string, joinRow(row.text, toBinary(RecordSchema, message)));
    const stored = () => fromBinary(RecordSchema, row.bytes);
    const now = async () => fromBinary(RecordSchema, splitRow((await store.hgetBuffer(key, field as string)) as Buffer).bytes);
    return { redis, put, stored, now };
  }

  it("serves what it understands, and leaves in place what it does not", async () => {
    const { redis, put, stored, now } = await rig();
    const message = stored();
    if (!message.header) throw new Error("a record without a header");
    message.header.$unknown = [unknown(900)];
    message.header.conditions.push(...create(RecordSchema, { header: { conditions: [{ type: 77, status: 1, reason: "TOMORROW" }] } }).header!.conditions);
    message.header.instances[0]!.transport = 99;
    message.header.instances[0]!.$unknown = [unknown(901)];
    await put(message);
    const old = await startReplicaOn(redis.url);
    expect(await old.api.toolIds()).toEqual(["s/a"]);
    const { server } = await old.api.call("getServer", { serverId: "s" });
    expect(server).toMatchObject({ serverId: "s", toolCount: 1 });
    expect((await old.api.call("getFullSchema", { toolId: "s/a" })).schema.toolId).toBe("s/a");
    const left = async () => {
      const { header } = await now();
      return {
        fields: [header?.$unknown, header?.instances[0]?.$unknown].map((fields) => fields?.map((f) => f.no)),
        conditions: header?.conditions.filter((c) => c.type === 77).map((c) => c.reason),
        transport: header?.instances[0]?.transport,
      };
    };
    const all = { fields: [[900], [901]], conditions: ["TOMORROW"], transport: 99 };
    await old.api.call("isolateServer", { serverId: "s", why: "a rewrite of other parts" });
    expect((await now()).header?.breaker?.why).toBe("a rewrite of other parts");
    expect(await left()).toEqual(all);
    // A second instance registers: what is of the server and of the first one stays.
    await old.api.call("register", declared("s", [TOOL], { leaseTtl, instanceId: "instance-2" }));
    expect((await now()).header?.instances).toHaveLength(2);
    expect(await left()).toEqual(all);
  }, 60_000);

  it("does not take up a format that it does not know: not ready, in one sentence, and nothing is changed", async () => {
    const { redis, put, stored, now } = await rig();
    await put({ ...stored(), format: 2 });
    const old = await startRegistry({ store: redis.url, unready: true });
    const says = async (): Promise<string> => (await fetch(`${old.ops}/readyz`)).text();
    expect(await eventually(says, (text) => text.includes("format"))).toMatch(/is in format 2, and this version reads formats up to 1: .* upgrade this replica/);
    expect((await fetch(`${old.ops}/livez`)).status).toBe(200);
    const error = await failing(new RemoteRegistry(old.grpc).call("register", declared("t", [TOOL], { leaseTtl })));
    expect(error).toMatchObject({ code: "UNAVAILABLE", reason: "NOT_READY" });
    expect((await now()).format).toBe(2);
    expect(await old.stop()).toBe(0);
  }, 60_000);

  it("a running one goes on from memory, stale, when the log goes over to a format that it does not know", async () => {
    const redis = await redisForTest();
    const store = new Redis(redis.url);
    onTestFinished(() => void store.disconnect());
    const old = await startReplicaOn(redis.url);
    await old.api.call("register", declared("s", [TOOL], { leaseTtl }));
    const [revision, chain] = (await store.hmget(KEYS.head, "revision", "chain")) as [string, string];
    const body = Buffer.from(toBinary(ChangeSchema, create(ChangeSchema, { format: 2, serverId: "s" })));
    const next = Number(revision) + 1;
    const nextChain = chainOf(chain, next, body, "");
    await store
      .multi()
      .xadd(KEYS.log, `${next}-0`, "body", body, "prev", chain, "chain", nextChain, "at", String(Date.now()))
      .hset(KEYS.head, "revision", String(next), "chain", nextChain)
      .exec();
    const page = await eventually(() => old.api.call("getStubs"), (p) => p.stale);
    expect(page.stubs).toHaveLength(1);
    const told = () => old.process.logs().filter((l) => String(l["msg"]).startsWith("the log cannot be read"));
    expect(JSON.stringify(await eventually(told, (lines) => lines.length > 0))).toContain("upgrade this replica");
  }, 60_000);
});

it("unknown fields and enum values of a request are read as documented: passed over, and the default or a violation", async () => {
  const registry = await startRegistry({ store: "memory" });
  const remote = new RemoteRegistry(registry.grpc);
  const raw = remote.client;
  const request = create(RegisterRequestSchema, {
    serverId: "s",
    instanceId: "instance-1",
    offer: { case: "declared", value: { tools: [{ definition: Buffer.from(JSON.stringify(TOOL)) }] } },
  });
  request.$unknown = [{ no: 1_000, wireType: 2, data: Buffer.from([2, 1, 2]) }];
  await callRaw(raw, `/${SERVICE}/Register`, Buffer.from(toBinary(RegisterRequestSchema, request)), new Metadata());
  expect(await remote.toolIds()).toEqual(["s/a"]);
  const strange = create(RegisterRequestSchema, { ...request, serverId: "t", transport: 99 as 1 });
  const error = await failing(callRaw(raw, `/${SERVICE}/Register`, Buffer.from(toBinary(RegisterRequestSchema, strange)), new Metadata()));
  expect(error).toMatchObject({ code: "INVALID_ARGUMENT", reason: "INVALID_REQUEST", violations: [{ field: "transport" }] });
  expect(await remote.toolIds()).toEqual(["s/a"]);
});
