import { describe, expect, it } from "vitest";
import type { Transport } from "../../../../src/domain/server.js";
import { Breakers } from "../../../../src/gateway/forward/breakers.js";
import { inOrder } from "../../../../src/gateway/forward/choice.js";
import { ServerDirectory } from "../../../../src/gateway/forward/directory.js";
import { Places } from "../../../../src/gateway/forward/places.js";
import { headerText, paramHeaders } from "../../../../src/upstream/param-headers.js";
import { away, Servers } from "../../../support/forward.js";
import { silentLogger } from "../../../support/upstream.js";

/** A clock that stands until it is moved. */
class Hand {
  ms = 0;
  now = () => this.ms;
  monotonic = () => this.ms;
  sleep = async () => undefined;
}

describe("places", () => {
  it("are given in the order of coming, and those who leave the queue get none", async () => {
    const places = new Places(1, 2);
    const never = new AbortController().signal;
    const first = await places.take("a", never);
    const impatient = new AbortController();
    const second = places.take("a", impatient.signal);
    const third = places.take("a", never);
    expect((await places.take("a", never)).kind).toBe("full");
    expect((await places.take("b", never)).kind).toBe("taken");
    impatient.abort();
    expect((await second).kind).toBe("aborted");
    if (first.kind !== "taken") throw new Error("no place");
    first.leave();
    first.leave();
    expect((await third).kind).toBe("taken");
    expect((await places.take("a", impatient.signal)).kind).toBe("aborted");
  });
});

describe("the breaker of an endpoint", () => {
  const opened = (clock: Hand) => {
    const breakers = new Breakers(clock, () => 0.5);
    for (let i = 0; i < 5; i++) breakers.tell("e", undefined, { kind: "bad" });
    return breakers;
  };

  it("opens at the fifth failure in a row, and a good call in between counts from anew", () => {
    const breakers = new Breakers(new Hand(), () => 0.5);
    for (let i = 0; i < 4; i++) breakers.tell("e", undefined, { kind: "bad" });
    breakers.tell("e", undefined, { kind: "good" });
    for (let i = 0; i < 4; i++) breakers.tell("e", undefined, { kind: "bad" });
    expect(breakers.admit("e").kind).toBe("pass");
    breakers.tell("e", undefined, { kind: "bad" });
    expect(breakers.admit("e")).toEqual({ kind: "open", retryAfterMs: 1_000 });
    expect(breakers.admit("other").kind).toBe("pass");
  });

  it("lets one trial through, whose failure opens it for longer", () => {
    const clock = new Hand();
    const breakers = opened(clock);
    clock.ms = 1_000;
    const trial = breakers.admit("e");
    expect(trial).toMatchObject({ kind: "pass" });
    expect(breakers.admit("e").kind).toBe("open");
    breakers.tell("e", trial.kind === "pass" ? trial.trial : undefined, { kind: "bad" });
    expect(breakers.admit("e")).toEqual({ kind: "open", retryAfterMs: 2_000 });
  });

  it("goes on when a trial never comes back", () => {
    const clock = new Hand();
    const breakers = opened(clock);
    clock.ms = 1_000;
    breakers.admit("e");
    clock.ms = 17_000;
    expect(breakers.admit("e").kind).toBe("open");
    clock.ms = 30_000;
    expect(breakers.admit("e").kind).toBe("pass");
  });

  it("waits as long as the server asked for", () => {
    const breakers = new Breakers(new Hand(), () => 0.5);
    for (let i = 0; i < 5; i++) breakers.tell("e", undefined, { kind: "bad", retryAfterMs: 60_000 });
    expect(breakers.admit("e")).toEqual({ kind: "open", retryAfterMs: 60_000 });
  });
});

describe("the order of instances", () => {
  const instance = (endpoint: string, more: object = {}) => ({
    endpoint,
    transport: "streamable-http" as const satisfies Transport,
    credential: "",
    available: true,
    setDigest: "",
    ...more,
  });
  const server = (...instances: ReturnType<typeof instance>[]) => ({
    namespace: "default",
    serverId: "srv",
    setDigest: "d",
    breaker: { kind: "closed" } as const,
    instances,
  });
  const order = (s: ReturnType<typeof server>, facts: Partial<Parameters<typeof inOrder>[1]> = {}) =>
    inOrder(s, { stale: false, session: undefined, load: () => 0, ...facts }).map(({ endpoint }) => endpoint);

  it("is the newest first, the least busy before it, an old set last", () => {
    const three = server(instance("a"), instance("b"), instance("c", { setDigest: "old" }));
    expect(order(three)).toEqual(["b", "a", "c"]);
    expect(order(three, { load: (endpoint) => (endpoint === "b" ? 3 : 0) })).toEqual(["a", "b", "c"]);
  });

  it("leaves out what is down, unless that is old news", () => {
    const two = server(instance("a"), instance("b", { available: false }));
    expect(order(two)).toEqual(["a"]);
    expect(order(two, { stale: true })).toEqual(["a", "b"]);
  });

  it("keeps sessions where they are when another instance comes or goes", () => {
    const all = ["a", "b", "c", "d"].map((one) => instance(one));
    const moved = Array.from({ length: 200 }, (_, n) => `session-${n}`).filter((session) => {
      const before = order(server(...all), { session })[0];
      const after = order(server(...all.filter(({ endpoint }) => endpoint !== "b")), { session })[0];
      return before !== after && before !== "b";
    });
    expect(moved).toEqual([]);
    const firsts = new Set(Array.from({ length: 200 }, (_, n) => order(server(...all), { session: `session-${n}` })[0]));
    expect([...firsts].sort()).toEqual(["a", "b", "c", "d"]);
  });
});

describe("the directory", () => {
  const start = () => {
    const clock = new Hand();
    const servers = new Servers();
    servers.put("srv", { url: "http://127.0.0.1:1/mcp" });
    return { clock, servers, directory: new ServerDirectory(servers.source, clock, silentLogger) };
  };

  it("asks once for many, and anew after two seconds or a change", async () => {
    const { clock, servers, directory } = start();
    await Promise.all([1, 2, 3].map(() => directory.find("default", "srv")));
    await directory.find("default", "srv");
    expect(servers.asked).toBe(1);
    clock.ms = 2_000;
    await directory.find("default", "srv");
    directory.changed("default", "srv");
    await directory.find("default", "srv");
    expect(servers.asked).toBe(3);
  });

  it("a registry that is away is not asked at every call", async () => {
    const { clock, servers, directory } = start();
    await directory.find("default", "srv");
    servers.failure = away;
    clock.ms = 2_000;
    expect(await directory.find("default", "srv")).toMatchObject({ kind: "known", stale: true });
    await directory.find("default", "srv");
    expect(servers.asked).toBe(2);
    servers.failure = undefined;
    clock.ms = 3_000;
    expect(await directory.find("default", "srv")).toMatchObject({ kind: "known", stale: false });
  });

  it("a server that was deregistered is forgotten", async () => {
    const { clock, servers, directory } = start();
    await directory.find("default", "srv");
    servers.placed.delete("srv");
    clock.ms = 2_000;
    expect(await directory.find("default", "srv")).toEqual({ kind: "unknown" });
    servers.failure = away;
    clock.ms = 4_000;
    expect(await directory.find("default", "srv")).toMatchObject({ kind: "away" });
  });
});

describe("headers that repeat arguments", () => {
  it("stand for what the schema marks, along properties", () => {
    const schema = {
      properties: {
        region: { type: "string", "x-mcp-header": "Region" },
        where: { properties: { n: { type: "integer", "x-mcp-header": "N" } } },
        list: { items: { "x-mcp-header": "No" } },
        bad: { "x-mcp-header": "a b" },
        left: { "x-mcp-header": "Left" },
        nil: { "x-mcp-header": "Nil" },
        half: { "x-mcp-header": "Half" },
      },
    };
    const args = { region: "eu", where: { n: 3 }, list: [1], bad: "x", nil: null, half: 0.5 };
    expect(paramHeaders(schema, args)).toEqual({ "mcp-param-region": "eu", "mcp-param-n": "3" });
    expect(paramHeaders(undefined, args)).toEqual({});
  });

  it.each([
    ["plain", "plain"],
    ["with spaces inside", "with spaces inside"],
    [" edge", "=?base64?IGVkZ2U=?="],
    ["", "=?base64??="],
    ["é", "=?base64?w6k=?="],
    ["a\r\nb: c", "=?base64?YQ0KYjogYw==?="],
    ["=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="],
  ])("%j is written as %s", (text, written) => {
    expect(headerText(text)).toBe(written);
  });
});
