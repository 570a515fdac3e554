/** A child process with watchers that wander from replica to replica, real followers, and readers of every replica. */
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { createFollower, type Follower } from "../../src/client/index.js";
import {
  GetFullSchemaRequestSchema,
  GetStubsRequestSchema,
  GetStubsResponseSchema,
  ListServersRequestSchema,
  WatchRequestSchema,
  WatchResponseSchema,
} from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import type { StubFilterSchema } from "../../src/gen/toolcrib/v1/stub_pb.js";
import { SeededRandom } from "../support/fake-clock.js";
import type { Failure, Link } from "../validators/links.js";
import type { FromChild, ToChild, WatcherOrders } from "./messages.js";
import { sleep } from "./redis-side.js";
import { tappedLink, tappedSource } from "./taps.js";
import { Tape } from "./tape.js";

type StubFilter = MessageInitShape<typeof StubFilterSchema>;

interface Asked {
  readonly namespace: string;
  readonly filter: StubFilter;
}

const say = (message: FromChild): void => void process.send?.(message);

/** How long a watch stays at one replica, at most. */
const STAY_MS = 90_000;
const READ_MS = 5_000;
/** A follower and the list may differ for a moment, while a change is under way. */
const AGREE_MS = 20_000;

class Gallery {
  readonly tape: Tape;
  readonly random: SeededRandom;
  readonly #links: readonly Link[];
  readonly #followers: { readonly asked: Asked; readonly follower: Follower }[] = [];
  readonly #droppers = new Set<() => void>();
  /** The newest revision that anyone here read, by namespace. */
  readonly #newest = new Map<string, string>();
  readonly #known = new Map<string, string[]>();

  constructor(private readonly orders: WatcherOrders) {
    this.tape = new Tape(orders.tape, `w${orders.index}`);
    this.random = new SeededRandom(orders.seed);
    this.#links = orders.replicas.map((replica) => tappedLink(this.tape, replica, READ_MS));
    setInterval(() => this.tape.flush(), 1_000).unref();
  }

  begin(): void {
    for (let i = 0; i < this.orders.watchers; i++) {
      const asked = this.#anyQuestion(i);
      if (i % 2 === 0) this.#follow(asked);
      else void this.#wander(asked);
    }
    for (const link of this.#links) void this.#read(link);
    say({ kind: "ready" });
  }

  drop(): void {
    for (const drop of this.#droppers) drop();
  }

  /** Half of them see everything that a few servers or a tag have; a few see all. */
  #anyQuestion(i: number): Asked {
    const { namespaces, servers } = this.orders;
    const namespace = namespaces[i % namespaces.length] as string;
    const mine = servers.filter((s) => s.namespace === namespace);
    const draw = this.random.next();
    if (draw < 0.2 || i < namespaces.length * 2) return { namespace, filter: {} };
    const one = (): number => Math.floor(this.random.next() * Math.max(1, mine.length));
    if (draw < 0.6) return { namespace, filter: { serverIds: [1, 2, 3, 4].map(() => mine[one()]?.serverId ?? "none") } };
    if (draw < 0.9) return { namespace, filter: { tagsAny: [mine[one()]?.tags[0] ?? "none"] } };
    return { namespace, filter: { namePrefix: "t3" } };
  }

  #follow(asked: Asked): void {
    const { replicas } = this.orders;
    const follower = createFollower({
      targets: replicas.map(({ address }) => ({ address, loopback: true, tls: false })),
      ...asked,
      random: () => this.random.next(),
      source: tappedSource(this.tape, replicas),
    });
    this.#followers.push({ asked, follower: follower.start() });
    this.#droppers.add(() => void follower.stop().then(() => follower.start()));
  }

  /** One watch after the other, each at another replica, with the token of the one before while it is good. */
  async #wander(asked: Asked): Promise<void> {
    let token = "";
    for (let at = Math.floor(this.random.next() * this.#links.length); ; at++) {
      const link = this.#links[at % this.#links.length] as Link;
      const end = await this.#stay(link, asked, token, (given) => {
        token = given;
      });
      if (end && ["RELIST_REQUIRED", "INVALID_TOKEN"].includes(end.reason)) token = "";
      await sleep(end ? 200 + this.random.next() * 800 : 0);
    }
  }

  #stay(link: Link, { namespace, filter }: Asked, resumeToken: string, onToken: (token: string) => void): Promise<Failure | undefined> {
    return new Promise((resolve) => {
      let leave = (): void => undefined;
      const done = (end: Failure | undefined): void => {
        clearTimeout(timer);
        this.#droppers.delete(go);
        leave();
        resolve(end);
      };
      const go = (): void => done(undefined);
      const timer = setTimeout(go, 5_000 + this.random.next() * STAY_MS);
      this.#droppers.add(go);
      leave = link.watch(toBinary(WatchRequestSchema, create(WatchRequestSchema, { namespace, filter, resumeToken })), {
        message(bytes) {
          const { message } = fromBinary(WatchResponseSchema, bytes);
          // Only what is whole has a token, and only what is whole may be gone on from.
          if (message.value?.resumeToken) onToken(message.value.resumeToken);
        },
        ended: done,
      });
    });
  }

  async #read(link: Link): Promise<void> {
    for (;;) {
      await sleep(this.orders.readEveryMs * (0.5 + this.random.next()));
      // What a reader is refused is on the tape, which is all that it is for.
      await this.#readOnce(link).catch(() => undefined);
    }
  }

  async #readOnce(link: Link): Promise<void> {
    const { namespaces } = this.orders;
    const namespace = namespaces[Math.floor(this.random.next() * namespaces.length)] as string;
    const minRevision = this.random.next() < 0.15 ? (this.#newest.get(namespace) ?? "") : "";
    const known = this.#known.get(namespace) ?? [];
    const draw = this.random.next();
    if (draw < 0.5 && known.length > 0) {
      const toolId = known[Math.floor(this.random.next() * known.length)] as string;
      const request = { namespace, key: { case: "toolId" as const, value: toolId }, minRevision };
      await link.unary("getFullSchema", toBinary(GetFullSchemaRequestSchema, create(GetFullSchemaRequestSchema, request)));
    } else if (draw < 0.7) {
      await link.unary("listServers", toBinary(ListServersRequestSchema, create(ListServersRequestSchema, { namespace, pageSize: 500, minRevision })));
    } else {
      const filter = draw < 0.9 && known.length > 0 ? this.#anyQuestion(1_000).filter : {};
      const all = Object.keys(filter).length === 0;
      const ids = await this.#list(link, { namespace, filter }, this.random.next() < 0.3 ? 40 : 0, minRevision);
      if (all) this.#known.set(namespace, [...ids.keys()]);
    }
  }

  /** tool_id → digest, page after page. */
  async #list(link: Link, { namespace, filter }: Asked, pageSize = 0, minRevision = ""): Promise<Map<string, string>> {
    const out = new Map<string, string>();
    for (let pageToken = ""; ; ) {
      const request = create(GetStubsRequestSchema, { namespace, filter, pageSize, pageToken, minRevision });
      const page = fromBinary(GetStubsResponseSchema, await link.unary("getStubs", toBinary(GetStubsRequestSchema, request)));
      for (const stub of page.stubs) out.set(stub.toolId, `${stub.digest} ${stub.availability}`);
      this.#newest.set(namespace, page.revision);
      pageToken = page.nextPageToken;
      if (pageToken === "") return out;
    }
  }

  /** Each follower is live, and holds what its filter selects. */
  async compare(): Promise<void> {
    const differences = await Promise.all(this.#followers.map(({ asked, follower }) => this.#difference(asked, follower)));
    const told = differences.filter((d): d is string => d !== undefined);
    say({ kind: "compared", followers: this.#followers.length, differences: told });
  }

  async #difference(asked: Asked, follower: Follower): Promise<string | undefined> {
    const until = performance.now() + AGREE_MS;
    for (;;) {
      const text = await this.#differenceNow(asked, follower).catch((error: unknown) => String(error));
      if (text === undefined || performance.now() > until) return text;
      await sleep(500);
    }
  }

  async #differenceNow(asked: Asked, follower: Follower): Promise<string | undefined> {
    const who = `a follower of ${asked.namespace} ${JSON.stringify(asked.filter)}`;
    if (follower.state.kind !== "live") return `${who} is ${JSON.stringify({ ...follower.state, error: undefined })}`;
    const listed = await this.#list(this.#links[0] as Link, asked);
    const held = new Map(follower.stubs().map((s) => [s.toolId, `${s.digest} ${s.availability}`]));
    const wrong = [...new Set([...listed.keys(), ...held.keys()])].filter((id) => listed.get(id) !== held.get(id));
    return wrong.length === 0 ? undefined : `${who} holds other tools than are listed: ${wrong.slice(0, 5).join(", ")}`;
  }
}

let gallery: Gallery | undefined;
process.on("disconnect", () => process.exit(0));
process.on("message", (message: ToChild) => {
  if (message.kind === "begin" && message.orders.kind === "watchers") {
    gallery = new Gallery(message.orders);
    gallery.begin();
  } else if (message.kind === "drop") gallery?.drop();
  else if (message.kind === "compare") void gallery?.compare();
  else if (message.kind === "finish") {
    gallery?.tape.close();
    say({ kind: "finished" });
    process.exit(0);
  }
});
