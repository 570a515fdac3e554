/** Everything that runs during chaos: Redis, replicas, registrars, watchers; and how they are. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { GetStubsRequestSchema, GetStubsResponseSchema, RegisterRequestSchema } from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import { Child } from "./children.js";
import type { FromChild, ServerSpec } from "./messages.js";
import type { TapeFile } from "./merge.js";
import type { ChaosOptions } from "./options.js";
import { namespacesOf, type Line, type RedisSide, sleep, startRedisSide } from "./redis-side.js";
import { ReplicaProcess } from "./replica.js";
import { type NamedReplica, tappedLink } from "./taps.js";
import { Tape } from "./tape.js";

export interface Unit extends NamedReplica {
  readonly process: ReplicaProcess;
  readonly line: Line;
  readonly link: ReturnType<typeof tappedLink>;
  /** Acknowledged canaries, and when the last one was. */
  canaries: number;
  canaryMs: number;
}

interface Belief {
  readonly namespace: string;
  readonly serverId: string;
  readonly tools: readonly string[] | undefined;
  readonly sinceMs: number;
}

const CANARY_EVERY_MS = 1_500;
const CALL_MS = 5_000;
/** Whoever changed its mind since then may be listed either way. */
const FRESH_MS = 6_000;
const SERVERS_PER_CHILD = 30;
const WATCHERS_PER_CHILD = 25;

export class World {
  readonly folder = mkdtempSync(join(tmpdir(), "toolcrib-chaos-"));
  readonly tape = new Tape(join(this.folder, "run.jsonl"), "run");
  readonly units: Unit[] = [];
  readonly registrars: Child[] = [];
  readonly watchers: Child[] = [];
  /** How long no canary was taken: by one replica, by any. */
  readonly silence = { oneMs: 0, anyMs: 0 };
  /** The most memory that a replica had, MiB. */
  largestReplicaMb = 0;
  #redis: RedisSide | undefined;
  #namespaces: readonly string[] = [];
  #specs: ServerSpec[] = [];
  #beliefs = new Map<string, Belief>();
  #old: Child[] = [];
  #stopped = false;
  #takenMs = 0;
  #calm = false;
  #births = 0;

  constructor(
    private readonly options: ChaosOptions,
    private readonly root: string,
    private readonly clock: string | undefined,
  ) {}

  get redis(): RedisSide {
    if (!this.#redis) throw new Error("Redis was not started");
    return this.#redis;
  }

  async start(): Promise<void> {
    const { options } = this;
    this.#redis = await startRedisSide(options.topology);
    this.#namespaces = namespacesOf(this.redis.partitions);
    this.#specs = Array.from({ length: options.servers }, (_, i) => this.#spec(i));
    for (let i = 0; i < options.replicas; i++) await this.#addReplica(String.fromCharCode(97 + i));
    const groups = split(this.#specs, SERVERS_PER_CHILD);
    for (const i of groups.keys()) this.registrars.push(await this.#startRegistrars(i));
    const parts = split(Array.from({ length: options.watchers }, (_, i) => i), WATCHERS_PER_CHILD);
    for (const [index, part] of parts.entries()) {
      const orders = {
        kind: "watchers" as const,
        index,
        seed: options.seed + 100 + index,
        tape: join(this.folder, `watchers-${index}.jsonl`),
        replicas: this.#names,
        namespaces: this.#namespaces,
        servers: this.#specs,
        watchers: part.length,
        readEveryMs: 700 * parts.length,
      };
      this.watchers.push(await Child.start(orders, this.folder, () => undefined));
    }
    for (const unit of this.units) void this.#sing(unit);
  }

  get tapes(): TapeFile[] {
    return [{ path: join(this.folder, "run.jsonl") }, ...[...this.#old, ...this.registrars, ...this.watchers].map((c) => c.tape)];
  }

  /** No more changes, by anybody. */
  calm(): void {
    this.#calm = true;
    for (const child of this.registrars) child.send({ kind: "calm" });
  }

  /** kill -9, and a new process for the same servers. */
  async restartRegistrars(target: number, awayMs: number): Promise<void> {
    const index = target % this.registrars.length;
    const old = this.registrars[index] as Child;
    this.#old.push(old);
    await old.kill();
    await sleep(awayMs);
    this.registrars[index] = await this.#startRegistrars(index);
    if (this.#calm) this.registrars[index]?.send({ kind: "calm" });
  }

  /** Processes that ended though nobody here ended them. */
  get casualties(): string[] {
    const replicas = this.units.filter((u) => u.process.died).map((u) => `replica ${u.name} ended by itself`);
    const children = [...this.registrars, ...this.watchers].filter((c) => c.died).map((c) => `a child ended by itself: ${c.tape.path}`);
    return [...replicas, ...children];
  }

  /** Why the world is not whole; undefined when every replica takes writes since `sinceMs`, is current, and lists what is registered. */
  async ailing(sinceMs: number): Promise<string | undefined> {
    const silent = this.units.find((u) => u.canaryMs < sinceMs);
    if (silent) return `replica ${silent.name} took no write`;
    for (const unit of this.units) {
      for (const namespace of this.#namespaces) {
        const text = await this.#unlike(unit, namespace).catch((error: Error) => error.message);
        if (text !== undefined) return `replica ${unit.name}: ${text}`;
      }
    }
    return undefined;
  }

  /** Lists of every replica, read until all have one revision; for the history, and answers whether that came about. */
  async readAll(ms: number): Promise<boolean> {
    const until = performance.now() + ms;
    for (;;) {
      const pages = await Promise.all(this.#namespaces.map((namespace) => Promise.all(this.units.map((unit) => this.#list(unit, namespace).catch(() => undefined)))));
      const agreed = pages.every((lists) => lists.every((list) => list !== undefined && list.revision === lists[0]?.revision && !list.stale));
      if (agreed || performance.now() > until) return agreed;
      await sleep(250);
    }
  }

  async compareFollowers(): Promise<{ followers: number; differences: string[] }> {
    for (const child of this.watchers) child.send({ kind: "compare" });
    const answers = await Promise.all(this.watchers.map((child) => child.told("compared")));
    return { followers: answers.reduce((sum, a) => sum + a.followers, 0), differences: answers.flatMap((a) => a.differences) };
  }

  /** All tapes are whole afterwards. */
  async finish(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.registrars, ...this.watchers].map((child) => child.finish().catch(() => undefined)));
    this.tape.flush();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const { link } of this.units) link.close();
    await Promise.allSettled([...this.registrars, ...this.watchers].map((child) => child.kill()));
    await Promise.allSettled(this.units.map(({ process }) => process.kill()));
    await this.#redis?.stop();
  }

  get #names(): NamedReplica[] {
    return this.units.map(({ name, address }) => ({ name, address }));
  }

  #spec(i: number): ServerSpec {
    const namespace = this.#namespaces[i % this.#namespaces.length] as string;
    return { namespace, serverId: `srv-${String(i).padStart(3, "0")}`, tags: [`tag-${i % 10}`], dialled: i % 12 === 5 };
  }

  async #addReplica(name: string): Promise<void> {
    const line = await this.redis.line();
    const { folder, root, clock } = this;
    const process = await ReplicaProcess.create({ name, root, folder, store: line.url, partitions: this.redis.partitions, clock });
    await process.start();
    const { address } = process;
    this.units.push({ name, address, process, line, link: tappedLink(this.tape, { name, address }, CALL_MS), canaries: 0, canaryMs: 0 });
  }

  async #startRegistrars(index: number): Promise<Child> {
    const birth = ++this.#births;
    const orders = {
      kind: "registrars" as const,
      index,
      seed: this.options.seed + birth * 1_000 + index,
      tape: join(this.folder, `registrars-${index}-${birth}.jsonl`),
      replicas: this.#names,
      servers: split(this.#specs, SERVERS_PER_CHILD)[index] ?? [],
    };
    return Child.start(orders, this.folder, (message) => this.#hear(message));
  }

  #hear(message: FromChild): void {
    if (message.kind !== "belief") return;
    const { namespace, serverId, tools } = message;
    this.#beliefs.set(serverId, { namespace, serverId, tools, sinceMs: performance.now() });
  }

  /** A small write through one replica again and again: how long none is taken is how long writes are out. */
  async #sing(unit: Unit): Promise<void> {
    const serverId = `canary-${unit.name}`;
    let last = performance.now();
    for (let i = 0; !this.#stopped; i++) {
      await sleep(CANARY_EVERY_MS);
      if (this.#stopped) return;
      const namespace = this.#namespaces[i % this.#namespaces.length] as string;
      // In the quiet time it goes on as it is: nothing is to change then.
      const text = JSON.stringify({ name: "sing", description: `Song ${this.#calm ? "last" : i}.`, inputSchema: { type: "object" } });
      const request = create(RegisterRequestSchema, {
        namespace,
        serverId,
        instanceId: serverId,
        retention: { case: "leaseTtl", value: durationFromMs(60_000) },
        offer: { case: "declared", value: { tools: [{ definition: Buffer.from(text) }] } },
      });
      const sentMs = performance.now();
      const taken = await unit.link.unary("register", toBinary(RegisterRequestSchema, request)).then(
        () => true,
        () => false,
      );
      if (!taken) continue;
      const now = performance.now();
      this.silence.oneMs = Math.max(this.silence.oneMs, now - last - CANARY_EVERY_MS);
      this.silence.anyMs = Math.max(this.silence.anyMs, this.#takenMs === 0 ? 0 : now - this.#takenMs);
      last = now;
      this.#takenMs = now;
      this.largestReplicaMb = Math.max(this.largestReplicaMb, unit.process.memoryMb);
      unit.canaries++;
      // A write that was asked for before a fault proves nothing about the time after it.
      unit.canaryMs = sentMs;
    }
  }

  async #unlike(unit: Unit, namespace: string): Promise<string | undefined> {
    const { stale, names } = await this.#list(unit, namespace);
    if (stale) return "stale";
    const since = performance.now() - FRESH_MS;
    for (const belief of this.#beliefs.values()) {
      if (belief.namespace !== namespace || belief.sinceMs > since) continue;
      const listed = (names.get(belief.serverId) ?? []).sort().join(" ");
      const held = [...(belief.tools ?? [])].sort().join(" ");
      if (listed !== held) return `${belief.serverId} is listed with [${listed}], and its registrant holds [${held}]`;
    }
    return undefined;
  }

  async #list({ link }: Unit, namespace: string): Promise<{ revision: string; stale: boolean; names: Map<string, string[]> }> {
    const names = new Map<string, string[]>();
    let stale = false;
    for (let pageToken = ""; ; ) {
      const request = create(GetStubsRequestSchema, { namespace, pageSize: 1_000, pageToken });
      const page = fromBinary(GetStubsResponseSchema, await link.unary("getStubs", toBinary(GetStubsRequestSchema, request)));
      for (const { serverId, name } of page.stubs) names.set(serverId, [...(names.get(serverId) ?? []), name]);
      stale ||= page.stale;
      pageToken = page.nextPageToken;
      if (pageToken === "") return { revision: page.revision, stale, names };
    }
  }
}

function split<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size));
}

