import { describe, expect, it } from "vitest";
import { UpstreamError } from "../../../src/catalogue/upstream-port.js";
import { Fault } from "../../../src/domain/fault.js";
import { LIMITS } from "../../../src/domain/limits.js";
import { definition, digestOfDefinition, instanceOf, listingOf, NAMESPACE, recordOf, toolOf } from "../../support/records.js";
import { loaderBench } from "../../support/schemas.js";

const ALPHA = definition("alpha");
const BETA = definition("beta");
const ALPHA_DIGEST = digestOfDefinition(ALPHA);
const BETA_DIGEST = digestOfDefinition(BETA);
const declared = () => recordOf([toolOf("alpha", { digest: ALPHA_DIGEST }), toolOf("beta", { digest: BETA_DIGEST })]);
const blob = (bytes: Uint8Array) => ({ digest: digestOfDefinition(bytes), bytes, fetchedAtMs: 7 });
const faultOf = (work: Promise<unknown>): Promise<Fault> =>
  work.then(
    () => Promise.reject(new Error("expected a fault")),
    (err: Fault) => err,
  );

describe("one definition", () => {
  it("comes LIVE from the server, and with it all its siblings", async () => {
    const b = loaderBench();
    b.directory.set(declared());
    b.upstream.answer = () => listingOf([ALPHA, BETA]);
    expect(await b.tool("srv/alpha")).toMatchObject({ toolId: "srv/alpha", digest: ALPHA_DIGEST, freshness: "live", definition: ALPHA });
    expect(await b.tool("srv/beta")).toMatchObject({ freshness: "cached", definition: BETA });
    expect(b.upstream.asked).toHaveLength(1);
    expect(b.blobs.calls.put).toBe(1);
    expect(await b.blobs.get(NAMESPACE, [ALPHA_DIGEST, BETA_DIGEST])).toMatchObject([{ bytes: ALPHA }, { bytes: BETA }]);
  });

  it("comes from the store without asking the server, and from memory without asking the store", async () => {
    const b = loaderBench();
    b.directory.set(declared());
    await b.blobs.put(NAMESPACE, [blob(ALPHA)]);
    expect(await b.tool("srv/alpha")).toMatchObject({ freshness: "cached", fetchedAtMs: 7 });
    const before = { ...b.blobs.calls };
    for (let i = 0; i < 100; i++) await b.tool("srv/alpha", 0);
    expect(b.blobs.calls).toEqual(before);
    expect(b.upstream.asked).toEqual([]);
  });

  it("is STALE when its server is unavailable or the catalogue is stale", async () => {
    const b = loaderBench();
    b.directory.set({ ...declared(), header: { ...declared().header, availability: "unavailable" } });
    await b.blobs.put(NAMESPACE, [blob(ALPHA)]);
    expect((await b.tool("srv/alpha")).freshness).toBe("stale");
    b.directory.set(declared());
    expect((await b.tool("srv/alpha")).freshness).toBe("cached");
    b.directory.isStale = true;
    expect((await b.tool("srv/alpha")).freshness).toBe("stale");
  });

  it("without a known digest is listed and answered LIVE under the digest the listing gave", async () => {
    const b = loaderBench();
    b.directory.set(recordOf([toolOf("alpha")]));
    b.upstream.answer = () => listingOf([ALPHA]);
    expect(await b.tool("srv/alpha")).toMatchObject({ digest: ALPHA_DIGEST, freshness: "live" });
    expect(b.heard).toEqual(["listed srv http://127.0.0.1:9/mcp"]);
  });

  it("is refused with DIGEST_MISMATCH when the server lists another than was declared", async () => {
    const b = loaderBench();
    b.directory.set(declared());
    b.upstream.answer = () => listingOf([definition("alpha", "something else"), BETA]);
    const fault = await faultOf(b.tool("srv/alpha"));
    expect(fault).toMatchObject({ reason: "DIGEST_MISMATCH", metadata: { tool: "srv/alpha", declared: ALPHA_DIGEST } });
    expect(fault.message).toContain("must register again");
    expect(b.outcomes).toEqual(["mismatch"]);
  });

  it("is the stored one, STALE, when the server lists another and the store can be read again by then", async () => {
    const b = loaderBench();
    b.directory.set(declared());
    await b.blobs.put(NAMESPACE, [blob(ALPHA)]);
    b.blobs.away = true;
    b.upstream.answer = () => {
      b.blobs.away = false;
      return listingOf([definition("alpha", "something else")]);
    };
    expect(await b.tool("srv/alpha")).toMatchObject({ freshness: "stale", digest: ALPHA_DIGEST, definition: ALPHA });
  });

  it("is the new one, LIVE, when the listing has just changed the catalogue", async () => {
    const changed = definition("alpha", "something else");
    const digest = digestOfDefinition(changed);
    const record = (d: string) => recordOf([toolOf("alpha", { digest: d, declared: false })], { source: "introspected" });
    const b = loaderBench({ intake: { listed: async () => b.directory.set(record(digest)) } });
    b.directory.set(record(ALPHA_DIGEST));
    b.upstream.answer = () => listingOf([changed]);
    expect(await b.tool("srv/alpha")).toMatchObject({ freshness: "live", digest });
  });

  it("P10: is served with the bytes that were first stored under its digest", async () => {
    const other = new TextEncoder().encode(`${new TextDecoder().decode(ALPHA).slice(0, -1)} }`);
    expect(digestOfDefinition(other)).toBe(ALPHA_DIGEST);
    const b = loaderBench();
    b.directory.set(recordOf([toolOf("alpha")]));
    await b.blobs.put(NAMESPACE, [blob(ALPHA)]);
    b.upstream.answer = () => listingOf([other]);
    expect((await b.tool("srv/alpha")).definition).toEqual(ALPHA);
  });

  it("is served though the store is away, which is logged once", async () => {
    const b = loaderBench();
    b.directory.set(declared());
    b.blobs.away = true;
    b.upstream.answer = () => listingOf([ALPHA, BETA]);
    expect((await b.tool("srv/alpha")).freshness).toBe("live");
    expect((await b.tool("srv/beta")).freshness).toBe("cached");
    expect(b.warnings).toHaveLength(1);
  });

  it("is not waited for from a store that hangs: the server is asked", async () => {
    const b = loaderBench();
    b.directory.set(declared());
    b.blobs.get = () => new Promise(() => {});
    b.blobs.put = () => new Promise(() => {});
    b.upstream.answer = () => listingOf([ALPHA, BETA]);
    const load = b.tool("srv/alpha", 5_000);
    await b.clock.advance(3_000);
    expect((await load).freshness).toBe("live");
  });

  it("whose server is never dialled is LOAD_FAILED and says what to do", async () => {
    const b = loaderBench();
    b.directory.set(recordOf([toolOf("alpha", { digest: ALPHA_DIGEST })], { instances: [instanceOf({ endpoint: "" })] }));
    const fault = await faultOf(b.tool("srv/alpha"));
    expect(fault.reason).toBe("LOAD_FAILED");
    expect(fault.message).toContain("register again with definitions inline");
    expect(b.heard).toEqual([]);
  });

  it("that the server does not list, or lists malformed, is LOAD_FAILED with the reason", async () => {
    const b = loaderBench();
    b.directory.set(declared());
    b.upstream.answer = () => listingOf([BETA], { rejected: [{ name: "alpha", reasons: ["inputSchema is missing"] }] });
    const fault = await faultOf(b.tool("srv/alpha"));
    expect(fault.reason).toBe("LOAD_FAILED");
    expect(fault.message).toContain("inputSchema is missing");
  });

  it("of an unknown tool or server is NOT_FOUND", async () => {
    const b = loaderBench();
    b.directory.set(declared());
    for (const id of ["srv/gamma", "nobody/alpha", "noslash", "/alpha"]) {
      expect(await faultOf(b.tool(id))).toMatchObject({ reason: "NOT_FOUND" });
    }
  });

  it("is cut down to the exact bytes of inputSchema, once", async () => {
    const b = loaderBench();
    b.directory.set(declared());
    await b.blobs.put(NAMESPACE, [blob(ALPHA)]);
    const ask = () =>
      b.loader.full({ namespace: NAMESPACE, key: { kind: "tool", toolId: "srv/alpha" }, view: "input-only", deadlineMs: undefined });
    const first = await ask();
    expect(new TextDecoder().decode(first.definition)).toBe('{"type":"object","properties":{"text":{"type":"string"}}}');
    expect(first.digest).toBe(ALPHA_DIGEST);
    expect((await ask()).definition).toBe(first.definition);
  });

  it("is cut down to its compact form, under the digest of the whole, once", async () => {
    const b = loaderBench();
    b.directory.set(declared());
    await b.blobs.put(NAMESPACE, [blob(ALPHA)]);
    const ask = () =>
      b.loader.full({ namespace: NAMESPACE, key: { kind: "tool", toolId: "srv/alpha" }, view: "compact", deadlineMs: undefined });
    const first = await ask();
    expect(JSON.parse(new TextDecoder().decode(first.definition))).toMatchObject({ name: "alpha", inputSchema: { "x-optional": ["text"] } });
    expect(first.digest).toBe(ALPHA_DIGEST);
    expect((await ask()).definition).toBe(first.definition);
  });
});

describe("by digest", () => {
  const ask = (b: ReturnType<typeof loaderBench>, digest: string, namespace = NAMESPACE) =>
    b.loader.full({ namespace, key: { kind: "digest", digest }, view: "full", deadlineMs: undefined });

  it("comes from the store, else from a server that has it", async () => {
    const b = loaderBench();
    b.directory.set(declared());
    await b.blobs.put(NAMESPACE, [blob(ALPHA)]);
    expect(await ask(b, ALPHA_DIGEST)).toMatchObject({ toolId: "", freshness: "cached", definition: ALPHA });
    b.upstream.answer = () => listingOf([ALPHA, BETA]);
    expect(await ask(b, BETA_DIGEST)).toMatchObject({ toolId: "", freshness: "live", definition: BETA });
  });

  it("P9: absent and another tenant's are NOT_FOUND with the same text", async () => {
    const b = loaderBench();
    b.directory.set(declared());
    await b.blobs.put(NAMESPACE, [blob(ALPHA)]);
    await ask(b, ALPHA_DIGEST);
    const theirs = await faultOf(ask(b, ALPHA_DIGEST, "other"));
    expect(theirs.reason).toBe("NOT_FOUND");
    const absent = `sha256:${"0".repeat(64)}`;
    expect((await faultOf(ask(b, absent))).message.replace(absent, ALPHA_DIGEST)).toBe(theirs.message);
  });
});

describe("a server that accepts and never answers", () => {
  it("gets one listing for 200 callers, each of whom hears LOAD_PENDING while it still listens", async () => {
    const b = loaderBench();
    const names = Array.from({ length: 50 }, (_, i) => `tool_${String(i).padStart(2, "0")}`);
    const digest = (name: string) => digestOfDefinition(definition(name));
    b.directory.set(recordOf(names.map((name) => toolOf(name, { digest: digest(name), substitutes: ["tool_01", "other/x", "gone"] }))));
    b.directory.set(recordOf([toolOf("x", { serverId: "other" })], { serverId: "other" }));
    const answeredAt: number[] = [];
    const callers = Array.from({ length: 200 }, async (_, i) => {
      const fault = await faultOf(b.tool(`srv/${names[i % names.length]}`, i < 100 ? 200 : 50));
      answeredAt.push(b.clock.monotonic());
      return fault;
    });
    await b.clock.advance(60_000);
    for (const fault of await Promise.all(callers)) {
      expect(fault).toMatchObject({ reason: "LOAD_PENDING", substitutes: ["srv/tool_01", "other/x"] });
      expect(fault.retryAfterMs).toBeGreaterThan(0);
    }
    expect(answeredAt.filter((at) => at > 0 && at < 50)).toHaveLength(100);
    expect(answeredAt.filter((at) => at > 50 && at < 200)).toHaveLength(100);
    expect(b.upstream.asked).toHaveLength(1);
    expect(b.heard).toEqual(["failed srv timeout"]);
  });

  it("P9: delays nobody else's load", async () => {
    const b = loaderBench();
    b.directory.set(declared());
    b.directory.set(recordOf([toolOf("alpha", { serverId: "fine" })], { serverId: "fine", instances: [instanceOf({ endpoint: "http://127.0.0.1:10/mcp" })] }));
    b.upstream.answer = (endpoint) => (endpoint.includes(":10/") ? listingOf([ALPHA]) : "silence");
    const slow = faultOf(b.tool("srv/alpha"));
    expect((await b.tool("fine/alpha")).freshness).toBe("live");
    await b.clock.advance(200);
    expect((await slow).reason).toBe("LOAD_PENDING");
  });

  it("fills memory and store when it answers after its caller left", async () => {
    const b = loaderBench();
    b.directory.set(declared());
    b.upstream.answer = () => b.clock.sleep(5_000).then(() => listingOf([ALPHA, BETA]));
    const pending = faultOf(b.tool("srv/alpha"));
    await b.clock.advance(6_000);
    expect((await pending).reason).toBe("LOAD_PENDING");
    expect((await b.tool("srv/alpha", 0)).freshness).toBe("cached");
    expect(b.upstream.asked).toHaveLength(1);
  });

  it("is waited for longer when the caller has the time, but never beyond the load's own deadline", async () => {
    const b = loaderBench();
    b.directory.set(declared());
    b.upstream.answer = () => b.clock.sleep(5_000).then(() => listingOf([ALPHA, BETA]));
    const patient = b.tool("srv/alpha", 10_000);
    await b.clock.advance(5_000);
    expect((await patient).freshness).toBe("live");
    b.upstream.answer = () => "silence";
    b.directory.set(recordOf([toolOf("gamma", { digest: ALPHA_DIGEST.replace("a", "b") })], { serverId: "other" }));
    const endless = faultOf(b.tool("other/gamma", 3_600_000));
    await b.clock.advance(LIMITS.loadMs);
    expect(["LOAD_FAILED", "LOAD_PENDING"]).toContain((await endless).reason);
  });
});

describe("a batch", () => {
  const ask = (b: ReturnType<typeof loaderBench>, toolIds: string[]) =>
    b.loader.batch({ namespace: NAMESPACE, toolIds, view: "full", deadlineMs: undefined });

  it("answers what memory holds and what is not there, and loads nothing, while loads are refused", async () => {
    const b = loaderBench();
    b.directory.set(declared());
    b.upstream.answer = () => listingOf([ALPHA, BETA]);
    await b.blobs.put(NAMESPACE, [blob(ALPHA)]);
    await b.tool("srv/alpha");
    const before = { ...b.blobs.calls };
    const refuse = () => new Fault("OVERLOADED", "not now");
    const toolIds = ["srv/alpha", "srv/beta", "srv/none"];
    const results = await b.loader.batch({ namespace: NAMESPACE, toolIds, view: "full", deadlineMs: undefined, refuse });
    expect(results.map((r) => (r.kind === "fault" ? r.fault.reason : r.schema.toolId))).toEqual(["srv/alpha", "OVERLOADED", "NOT_FOUND"]);
    expect([b.upstream.asked, b.blobs.calls]).toEqual([[], before]);
  });

  it("answers per tool, in order, with repeats, after one store call and one listing", async () => {
    const b = loaderBench();
    b.directory.set(declared());
    await b.blobs.put(NAMESPACE, [blob(ALPHA)]);
    b.upstream.answer = () => listingOf([ALPHA, BETA]);
    b.blobs.calls.get = 0;
    const results = await ask(b, ["srv/beta", "srv/nothing", "srv/alpha", "srv/beta"]);
    expect(results.map((r) => (r.kind === "schema" ? `${r.schema.toolId} ${r.schema.freshness}` : r.fault.reason))).toEqual([
      "srv/beta live",
      "NOT_FOUND",
      "srv/alpha cached",
      "srv/beta live",
    ]);
    expect(b.upstream.asked).toHaveLength(1);
    // One read of both; the listing then reads back what it has just put.
    expect(b.blobs.calls.get).toBe(2);
  });

  it("P9: one slow server costs only its own tools", async () => {
    const b = loaderBench();
    b.directory.set(declared());
    b.directory.set(recordOf([toolOf("alpha", { serverId: "slow" })], { serverId: "slow", instances: [instanceOf({ endpoint: "http://127.0.0.1:10/mcp" })] }));
    b.upstream.answer = (endpoint) => (endpoint.includes(":10/") ? "silence" : listingOf([ALPHA, BETA]));
    const results = ask(b, ["slow/alpha", "srv/alpha"]);
    await b.clock.advance(LIMITS.loadCallerMs);
    expect((await results).map((r) => (r.kind === "schema" ? r.schema.freshness : r.fault.reason))).toEqual(["LOAD_PENDING", "live"]);
  });

  it("answers at most its bytes; what does not fit says so by name", async () => {
    const b = loaderBench();
    const big = ["a", "b", "c", "d"].map((name) => definition(name, "big", 900_000));
    const small = definition("e");
    const all = [...big, small];
    b.directory.set(recordOf(all.map((bytes, i) => toolOf("abcde"[i] ?? "", { digest: digestOfDefinition(bytes) }))));
    await b.blobs.put(NAMESPACE, all.map(blob));
    const results = await ask(b, ["srv/a", "srv/b", "srv/c", "srv/d", "srv/e"]);
    expect(results.map((r) => (r.kind === "schema" ? "ok" : r.fault.reason))).toEqual(["ok", "ok", "ok", "QUOTA_EXCEEDED", "ok"]);
    const refused = results[3];
    expect(refused?.kind === "fault" && refused.fault.message).toContain(String(LIMITS.batchBytes));
  });

  it("of too many tools is refused with the limit and the number", async () => {
    const b = loaderBench();
    const fault = await faultOf(ask(b, Array.from({ length: LIMITS.batchTools + 1 }, () => "srv/a")));
    expect(fault.reason).toBe("INVALID_REQUEST");
    expect(fault.violations[0]?.description).toContain("101");
  });
});

describe("after a failure", () => {
  it("callers get the same error at once for a short while, then the server is asked again", async () => {
    const b = loaderBench();
    b.directory.set(declared());
    b.upstream.answer = () => new UpstreamError("connect", "connection refused");
    const fault = await faultOf(b.tool("srv/alpha"));
    expect(fault).toMatchObject({ reason: "LOAD_FAILED", metadata: { kind: "connect" } });
    expect(fault.message).toContain("connection refused");
    for (let i = 0; i < 20; i++) expect((await faultOf(b.tool("srv/beta"))).reason).toBe("LOAD_FAILED");
    expect(b.upstream.asked).toHaveLength(1);
    await b.clock.advance(LIMITS.loadNegativeMs);
    b.upstream.answer = () => listingOf([ALPHA, BETA]);
    expect((await b.tool("srv/beta")).freshness).toBe("live");
  });

  it("a newer registration is asked at once", async () => {
    const b = loaderBench();
    b.directory.set(declared());
    b.upstream.answer = () => new UpstreamError("connect", "connection refused");
    await faultOf(b.tool("srv/alpha"));
    b.directory.set({ ...declared(), header: { ...declared().header, instances: [instanceOf({ revision: 2 })] } });
    b.upstream.answer = () => listingOf([ALPHA, BETA]);
    expect((await b.tool("srv/alpha")).freshness).toBe("live");
  });
});
