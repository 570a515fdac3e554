import { describe, expect, it } from "vitest";
import { UpstreamError } from "../../../src/catalogue/upstream-port.js";
import type { SeenHealth } from "../../../src/catalogue/writer-port.js";
import { DEFAULT_PROBING, PROBE_RULES } from "../../../src/domain/health/probing.js";
import { BREAKER_CLOSED, type Instance, type ServerHeader } from "../../../src/domain/server.js";
import { Monitor } from "../../../src/probe/monitor.js";
import { createPanic } from "../../../src/probe/panic.js";
import { createSlots } from "../../../src/probe/slots.js";
import { FakeClock, SeededRandom } from "../../support/fake-clock.js";
import { HandDirectory, HandUpstream, instanceOf, NAMESPACE, recordOf, SILENT, toolOf } from "../../support/records.js";

const refused = () => new UpstreamError("connect", "refused");
const endpoint = (i: number) => `http://127.0.0.1:${i}/mcp`;
const EVER_SEEN = [{ type: "Reachable", status: "true", reason: "ANSWERED", message: "", sinceMs: 1 }] as const;

function bench() {
  const clock = new FakeClock();
  const records = new HandDirectory();
  const upstream = new HandUpstream();
  const random = new SeededRandom(5);
  const panic = createPanic({ clock, logger: SILENT });
  const slots = createSlots(64);
  let revision = 1;

  /** A server of as many instances, each at an endpoint of its own, and its holder. */
  function server(serverId: string, ports: readonly number[], facts: Partial<ServerHeader> = {}, more: Partial<Instance> = {}) {
    const published: SeenHealth[] = [];
    const ups: number[] = [];
    const held = { signal: new AbortController(), still: true };
    const set = (changed: Partial<ServerHeader> = {}, moreNow: Partial<Instance> = {}) => {
      const instances = ports.map((p) => instanceOf({ instanceId: `at-${p}`, endpoint: endpoint(p), ...more, ...moreNow }));
      records.set(recordOf([toolOf("alpha")], { serverId, instances, ...facts, ...changed }, revision++));
    };
    set();
    const monitor = new Monitor(
      {
        records,
        upstream,
        writer: { health: (_ns, _id, seen) => void published.push(seen) },
        panic,
        slots,
        rules: PROBE_RULES,
        stretched: (ms) => ms,
        onLook: () => undefined,
        clock,
        random,
        logger: SILENT,
      },
      { namespace: NAMESPACE, serverId },
      () => void ups.push(clock.monotonic()),
    );
    void monitor.run(held.signal.signal, () => held.still);
    const availabilities = () => published.map((p) => p.availability).filter((a, i, all) => a !== all[i - 1]);
    return { monitor, published, ups, held, set, availabilities };
  }
  const down = new Set<number>();
  upstream.look = (url) => (down.has(Number(new URL(url).port)) ? refused() : undefined);
  const probed = (port: number) => upstream.probed.filter((e) => e === endpoint(port)).length;
  return { clock, records, upstream, panic, server, down, probed };
}

describe("a monitored server", () => {
  it("is looked at every 10 s, falls in 4 s, and comes back by itself with nobody asking for it", async () => {
    const b = bench();
    const s = b.server("srv", [1]);
    await b.clock.advance(60_000);
    expect(b.probed(1)).toBeGreaterThanOrEqual(6);
    expect(b.probed(1)).toBeLessThanOrEqual(8);
    b.down.add(1);
    await b.clock.advance(15_100);
    expect(s.availabilities()).toEqual(["available", "unavailable"]);
    const fall = s.published.find((p) => p.availability === "unavailable");
    expect(fall).toMatchObject({ open: { attempt: 1 }, instances: new Map([["at-1", "unavailable"]]) });
    await b.clock.advance(3_600_000);
    b.down.clear();
    await b.clock.advance(300_000 + 2_000);
    expect(s.availabilities()).toEqual(["available", "unavailable", "available"]);
    expect(s.ups).toHaveLength(1);
  });

  it("stays available while one of its instances answers, and each has its own health", async () => {
    const b = bench();
    const s = b.server("srv", [1, 2]);
    await b.clock.advance(20_000);
    b.down.add(1);
    await b.clock.advance(20_000);
    expect(s.availabilities()).toEqual(["available"]);
    expect(s.published.at(-1)?.instances).toEqual(new Map([["at-1", "unavailable"], ["at-2", "available"]]));
    b.down.add(2);
    await b.clock.advance(20_000);
    expect(s.availabilities()).toEqual(["available", "unavailable"]);
    expect(s.published.at(-1)?.open).toBeDefined();
  });

  it("is given up after its total deadline, however it goes on, and falls after three", async () => {
    const b = bench();
    b.upstream.look = () => "silence";
    const s = b.server("srv", [1], { conditions: EVER_SEEN });
    await b.clock.advance(4_999);
    expect(s.published).toEqual([]);
    await b.clock.advance(3 * 5_000 + 2 * 2_000 - 4_999);
    expect(s.availabilities()).toEqual(["available", "unavailable"]);
    expect(s.published.at(-1)?.conditions).toMatchObject([{ type: "Reachable", status: "false", reason: "TIMEOUT" }]);
  });

  it("is seen again with its first answer after it was resumed, and not dialled while it is isolated", async () => {
    const b = bench();
    const s = b.server("srv", [1], { conditions: EVER_SEEN });
    await b.clock.advance(20_000);
    s.set({ breaker: { kind: "isolated", sinceMs: 1, by: "ann", why: "drops rows" }, availability: "unavailable" });
    s.monitor.sync();
    const before = b.probed(1);
    await b.clock.advance(60_000);
    expect(b.probed(1)).toBe(before);
    expect(s.monitor.view()).toEqual({ halfOpen: false, nextProbeMs: undefined });
    s.published.length = 0;
    s.set({ breaker: { kind: "open", sinceMs: 1, untilMs: 1, attempt: 1 }, availability: "unavailable" });
    s.monitor.sync();
    await b.clock.advance(10);
    expect(s.published).toMatchObject([{ availability: "available", open: undefined }]);
  });

  it("a look of an instance that registered anew meanwhile changes nothing", async () => {
    const b = bench();
    b.upstream.look = () => "silence";
    const s = b.server("srv", [1], { conditions: EVER_SEEN });
    await b.clock.advance(1_000);
    b.upstream.look = () => undefined;
    s.set({}, { revision: 2 });
    s.monitor.sync();
    await b.clock.advance(8_000);
    expect(s.published).toMatchObject([{ availability: "available" }]);
  });

  it("that is never probed is not dialled, and is there", async () => {
    const b = bench();
    const s = b.server("srv", [1], {}, { probing: { ...DEFAULT_PROBING, off: true } });
    await b.clock.advance(60_000);
    expect([b.probed(1), s.published]).toEqual([0, []]);
    await s.monitor.ready(new AbortController().signal);
  });

  it("is probed as its registrant asked", async () => {
    const b = bench();
    const s = b.server("srv", [1], {}, { probing: { ...DEFAULT_PROBING, intervalMs: 60_000, timeoutMs: 1_000, fall: 1 } });
    await b.clock.advance(200_000);
    expect(b.probed(1)).toBe(4);
    b.upstream.look = () => "silence";
    await b.clock.advance(67_000 + 1_000);
    expect(s.availabilities()).toEqual(["available", "unavailable"]);
  });

  it("asking for its list waits while it is down, and goes on when it answers", async () => {
    const b = bench();
    b.down.add(1);
    const s = b.server("srv", [1], { conditions: EVER_SEEN });
    await b.clock.advance(10_000);
    let ready = false;
    void s.monitor.ready(new AbortController().signal).then(() => (ready = true));
    await b.clock.advance(60_000);
    expect(ready).toBe(false);
    b.down.clear();
    await b.clock.advance(300_000);
    expect(ready).toBe(true);
  });

  it("whose listing fails three times is down, and up again when its probes say so", async () => {
    const b = bench();
    const s = b.server("srv", [1], { conditions: EVER_SEEN }, { probing: { ...DEFAULT_PROBING, intervalMs: 3_600_000 } });
    await b.clock.advance(1_000);
    for (let i = 0; i < 3; i++)
      s.monitor.heard(endpoint(1), { kind: "failed", reachable: true, reason: "HTTP_ERROR", message: "500", retryAfterMs: undefined });
    s.monitor.heard("http://127.0.0.1:2/mcp", { kind: "ok", tookMs: undefined });
    expect(s.availabilities()).toEqual(["available", "unavailable"]);
    await b.clock.advance(10_000);
    expect(s.availabilities()).toEqual(["available", "unavailable", "available"]);
  });
});

describe("a holder", () => {
  it("that takes over goes on from what is published: a server that was down is looked at once, and needs two answers", async () => {
    const b = bench();
    const open = { kind: "open", sinceMs: 1, untilMs: 2_000_000_000_000, attempt: 7 } as const;
    const s = b.server("srv", [1], { breaker: open, availability: "unavailable" }, { availability: "unavailable" });
    await b.clock.advance(100);
    expect(b.probed(1)).toBe(1);
    expect(s.availabilities()).toEqual(["unavailable"]);
    await b.clock.advance(2_000);
    expect(s.availabilities()).toEqual(["unavailable", "available"]);
  });

  it("that takes over knows one that was there: one failed look changes nothing", async () => {
    const b = bench();
    b.down.add(1);
    const s = b.server("srv", [1], { conditions: EVER_SEEN });
    await b.clock.advance(100);
    expect(b.probed(1)).toBe(1);
    expect(s.published).toMatchObject([{ availability: "available", conditions: [{ type: "Reachable", status: "true" }] }]);
  });

  it("that takes over goes on with a flapping server where the last one was", async () => {
    const b = bench();
    const flapping = { type: "Flapping", status: "true", reason: "FLAPPING", message: "", sinceMs: 1 } as const;
    const conditions = [flapping, ...EVER_SEEN];
    const open = { kind: "open", sinceMs: 1, untilMs: 1, attempt: 1 } as const;
    const s = b.server("srv", [1], { breaker: open, availability: "unavailable", conditions }, { availability: "unavailable" });
    await b.clock.advance(45_000);
    expect(s.availabilities()).toEqual(["unavailable"]);
    expect(s.published.at(-1)?.conditions.map((c) => c.type)).toContain("Flapping");
    await b.clock.advance(20_000);
    expect(s.availabilities()).toEqual(["unavailable", "available"]);
  });

  it("whose claim ran out says nothing more: not by a look, not by a listing, and asks nobody", async () => {
    const b = bench();
    b.upstream.look = () => "silence";
    const s = b.server("srv", [1], { conditions: EVER_SEEN });
    await b.clock.advance(1_000);
    s.held.still = false;
    await b.clock.advance(60_000);
    for (let i = 0; i < 3; i++)
      s.monitor.heard(endpoint(1), { kind: "failed", reachable: false, reason: "TIMEOUT", message: "", retryAfterMs: undefined });
    expect(s.published).toEqual([]);
    expect(b.probed(1)).toBe(1);
    s.held.still = true;
    b.upstream.look = () => undefined;
    await b.clock.advance(5_000);
    expect(s.availabilities()).toEqual(["available"]);
  });

  it("whose claim is lost lets nobody publish what it saw before", async () => {
    const b = bench();
    const s = b.server("srv", [1]);
    await b.clock.advance(100);
    expect(s.published[0]?.stillTrue()).toBe(true);
    s.held.signal.abort();
    await b.clock.settle();
    expect(s.published[0]?.stillTrue()).toBe(false);
    expect(b.clock.sleeping).toBe(0);
  });

  it("what it saw before an isolation is not published after it", async () => {
    const b = bench();
    const s = b.server("srv", [1]);
    await b.clock.advance(100);
    s.set({ breaker: { kind: "isolated", sinceMs: 1, by: "ann", why: "drops rows" }, availability: "unavailable" });
    s.monitor.sync();
    s.set({ breaker: BREAKER_CLOSED });
    expect(s.published[0]?.stillTrue()).toBe(false);
  });

  it("that slept through a look says nothing by it", async () => {
    const b = bench();
    const s = b.server("srv", [1], { conditions: EVER_SEEN }, { probing: { ...DEFAULT_PROBING, fall: 1 } });
    await b.clock.advance(100);
    s.published.length = 0;
    // The process is stopped while it waits for the answer, and the answer's deadline has long passed when it goes on.
    const { sleep } = b.clock;
    b.upstream.look = () => "silence";
    b.clock.sleep = (ms, signal) => sleep.call(b.clock, ms === 5_000 ? 14_000 : ms, signal);
    await b.clock.advance(24_000);
    expect(s.published).toEqual([]);
    b.clock.sleep = sleep;
    await b.clock.advance(20_000);
    expect(s.availabilities().at(-1)).toBe("unavailable");
  });

  it("that slept through a trial does not dial at once: the breaker is open again", async () => {
    const b = bench();
    b.down.add(1);
    const s = b.server("srv", [1], { conditions: EVER_SEEN });
    await b.clock.advance(4_100);
    expect(s.availabilities()).toEqual(["available", "unavailable"]);
    const before = b.probed(1);
    const { sleep } = b.clock;
    b.upstream.look = () => "silence";
    b.clock.sleep = (ms, signal) => sleep.call(b.clock, ms === 5_000 ? 14_000 : ms, signal);
    await b.clock.advance(6_000);
    expect(b.probed(1)).toBe(before + 1);
    await b.clock.advance(15_000);
    expect(b.probed(1)).toBe(before + 1);
  });

  it("goes on looking after a look that broke inside the registry", async () => {
    const b = bench();
    const s = b.server("srv", [1]);
    await b.clock.advance(100);
    const { server } = b.records;
    b.records.server = () => {
      throw new Error("the catalogue is being replaced");
    };
    await b.clock.advance(30_000);
    b.records.server = server;
    s.published.length = 0;
    await b.clock.advance(30_000);
    expect(s.availabilities()).toEqual(["available"]);
  });
});

describe("ten servers that stop answering at once", () => {
  function ten() {
    const b = bench();
    const servers = Array.from({ length: 10 }, (_, i) => b.server(`srv-${i}`, [i + 1], { conditions: EVER_SEEN }));
    const unavailable = () => servers.filter((s) => s.availabilities().includes("unavailable")).length;
    return { ...b, servers, unavailable };
  }

  it("are not called down, and when half of them answer again it is over, and nothing was said", async () => {
    const b = ten();
    await b.clock.advance(60_000);
    for (let i = 1; i <= 10; i++) b.down.add(i);
    await b.clock.advance(120_000);
    expect(b.unavailable()).toBe(0);
    expect(b.panic.state).toMatchObject({ bad: 10, servers: 10 });
    b.down.clear();
    await b.clock.advance(15_000);
    expect([b.panic.state, b.unavailable()]).toEqual([undefined, 0]);
  });

  it("unless four of them go: those are down", async () => {
    const b = ten();
    await b.clock.advance(60_000);
    for (let i = 1; i <= 4; i++) b.down.add(i);
    await b.clock.advance(60_000);
    expect([b.panic.state, b.unavailable()]).toEqual([undefined, 4]);
  });

  it("one that really went stays down when the others are back", async () => {
    const b = ten();
    await b.clock.advance(60_000);
    for (let i = 1; i <= 10; i++) b.down.add(i);
    await b.clock.advance(60_000);
    b.down.clear();
    b.down.add(3);
    await b.clock.advance(60_000);
    expect([b.panic.state, b.unavailable()]).toEqual([undefined, 1]);
  });

  it("those that may not be dialled are no sign of it: one that goes is down", async () => {
    const b = ten();
    await b.clock.advance(60_000);
    b.upstream.look = (url) => {
      const port = Number(new URL(url).port);
      if (port > 7) return b.down.has(port) ? refused() : undefined;
      return new UpstreamError("credential", "no such credential");
    };
    await b.clock.advance(30_000);
    b.down.add(9);
    await b.clock.advance(60_000);
    expect(b.panic.state).toBeUndefined();
    expect(b.servers[8]?.availabilities()).toEqual(["available", "unavailable"]);
  });

  it("those that may not be dialled are no sign against it either", async () => {
    const b = bench();
    const servers = Array.from({ length: 12 }, (_, i) => b.server(`srv-${i}`, [i + 1], { conditions: EVER_SEEN }));
    await b.clock.advance(60_000);
    b.upstream.look = (url) => (Number(new URL(url).port) > 6 ? new UpstreamError("credential", "no such credential") : undefined);
    await b.clock.advance(30_000);
    const before = servers.slice(0, 6).map((s) => s.availabilities().length);
    b.upstream.look = (url) => (Number(new URL(url).port) > 6 ? new UpstreamError("credential", "no such credential") : refused());
    await b.clock.advance(60_000);
    expect(b.panic.state).toMatchObject({ bad: 6, servers: 6 });
    expect(servers.slice(0, 6).map((s) => s.availabilities().length)).toEqual(before);
  });

  it("each with two instances: not one instance is called down on the word of one that nobody asked since", async () => {
    const b = bench();
    const servers = Array.from({ length: 10 }, (_, i) => b.server(`srv-${i}`, [2 * i + 1, 2 * i + 2], { conditions: EVER_SEEN }));
    await b.clock.advance(60_000);
    for (let port = 1; port <= 20; port++) b.down.add(port);
    await b.clock.advance(60_000);
    expect(b.panic.state).toMatchObject({ bad: 10, servers: 10 });
    const instances = servers.flatMap((s) => s.published.flatMap((p) => [...p.instances.values()]));
    expect(new Set(instances)).toEqual(new Set(["available"]));
  });

  it("those that were down before say nothing about it", async () => {
    const b = ten();
    await b.clock.advance(60_000);
    for (const i of [1, 2, 3, 4]) b.down.add(i);
    await b.clock.advance(60_000);
    for (const i of [5, 6]) b.down.add(i);
    await b.clock.advance(60_000);
    expect([b.panic.state, b.unavailable()]).toEqual([undefined, 6]);
  });
});
