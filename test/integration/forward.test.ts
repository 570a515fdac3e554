import { describe, expect, it } from "vitest";
import { BreakerState } from "../../src/gen/toolcrib/v1/server_pb.js";
import { createEgress } from "../../src/upstream/egress.js";
import { away, definitionsOf, echoed, refusalOf, resultOf, startForwarder } from "../support/forward.js";
import { startFixture } from "../support/servers.js";
import { eventually, localPolicy, soon } from "../support/upstream.js";

/** Servers on both official SDKs, in every era and over every transport. */
const kinds = [
  ["SDK v2, 2026-07-28", ["--sdk", "v2"], "modern"],
  ["SDK v2, session eras", ["--sdk", "v2", "--era", "legacy"], "legacy"],
  ["SDK v1, Streamable HTTP", ["--sdk", "v1"], "legacy"],
  ["SDK v1, HTTP+SSE", ["--sdk", "v1", "--transport", "sse"], "sse"],
] as const;

const call = (tool: string, args: object = {}) => ({ namespace: "default", toolId: `srv/${tool}`, args });

describe.each(kinds)("a call to a server of %s", (_name, args, era) => {
  async function start(options: Parameters<typeof startForwarder>[0] = {}) {
    const server = await startFixture("calling-server.mjs", args);
    const forwarding = startForwarder(options);
    forwarding.servers.put("srv", { url: server.url });
    return { server, ...forwarding };
  }

  it("brings arguments and _meta there, and the result back", async () => {
    const { server, forwarder, outcomes } = await start();
    const meta = {
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      "example.com/tenant": "t1",
      "io.modelcontextprotocol/protocolVersion": "2025-03-26",
      "io.modelcontextprotocol/clientInfo": { name: "somebody", version: "9" },
    };
    const answer = await forwarder.call({ ...call("echo", { text: "grüße 好", count: 3 }), meta });
    const heard = echoed(answer);
    expect(heard.args).toEqual({ text: "grüße 好", count: 3 });
    expect(heard.meta).toMatchObject({ traceparent: meta.traceparent, "example.com/tenant": "t1" });
    // What the caller said of its own connection is not what is said on this one.
    const sent = (await server.requests()).find(({ method }) => method === "tools/call");
    const said = sent?.params?.["_meta"] as Record<string, unknown>;
    expect(said["io.modelcontextprotocol/protocolVersion"]).toBe(era === "modern" ? "2026-07-28" : undefined);
    if (era === "modern") {
      expect(said["io.modelcontextprotocol/clientInfo"]).toEqual({ name: "toolcrib-gateway", version: "0.0.0" });
      expect(said["io.modelcontextprotocol/clientCapabilities"]).toEqual({});
      expect(sent?.headers).toMatchObject({ "mcp-method": "tools/call", "mcp-name": "echo", "mcp-protocol-version": "2026-07-28" });
    }
    expect(outcomes).toMatchObject([{ toolId: "srv/echo", success: true, errorKind: "", reached: true }]);
    expect(outcomes[0]?.latencyMs).toBeGreaterThan(0);
  });

  it("keeps pictures, structured content and _meta of a result", async () => {
    const { forwarder } = await start();
    const answer = await forwarder.call(call("picture"));
    const value = resultOf(answer);
    expect(value["content"][0]).toMatchObject({ type: "image", mimeType: "image/png", annotations: { audience: ["user"] } });
    expect(value["structuredContent"]).toEqual({ width: 1, unit: "px" });
    expect(value["_meta"]).toMatchObject({ "example.com/trace": "t-1" });
    expect(JSON.parse(answer.kind === "result" ? answer.text : "")).toEqual(value);
  });

  it("a result that is an error is a result, and a failure of the tool", async () => {
    const { forwarder, outcomes } = await start();
    expect(resultOf(await forwarder.call(call("refuses")))).toMatchObject({ isError: true, content: [{ text: "no such file" }] });
    expect(outcomes).toMatchObject([{ success: false, errorKind: "tool-error", reached: true }]);
  });

  it("brings 2 MB of result", async () => {
    const { forwarder } = await start();
    expect(resultOf(await forwarder.call(call("big", { bytes: 2_000_000 })))["content"][0].text).toHaveLength(2_000_000);
  });

  it("hands progress on under the caller's own token", async () => {
    const { forwarder } = await start();
    const heard: unknown[] = [];
    const slow = (token: string | number, steps: number) =>
      forwarder.call({
        ...call("slow", { steps, stepMs: 5 }),
        meta: { progressToken: token },
        onProgress: (params) => void heard.push(params),
      });
    // Two callers chose the same token.
    await Promise.all([slow("mine", 3), slow("mine", 3), slow(7, 2)]);
    const mine = heard.filter((p) => (p as { progressToken: unknown }).progressToken === "mine");
    expect(mine).toHaveLength(6);
    expect(heard).toContainEqual({ progressToken: 7, progress: 2, total: 2, message: "step 2" });
  });

  it("asks for no progress when nobody wants to hear it", async () => {
    const { server, forwarder } = await start();
    await forwarder.call({ ...call("slow", { steps: 1, stepMs: 1 }), meta: { progressToken: 1 } });
    const sent = (await server.requests()).find(({ method }) => method === "tools/call");
    expect((sent?.params?.["_meta"] as object | undefined) ?? {}).not.toHaveProperty("progressToken");
  });

  it("a caller who gives up stops the server", async () => {
    const { server, forwarder, outcomes } = await start();
    const patience = new AbortController();
    const onProgress = () => patience.abort();
    const answer = refusalOf(
      await forwarder.call({ ...call("slow", { steps: 2_000, stepMs: 10 }), meta: { progressToken: 1 }, onProgress, signal: patience.signal }),
    );
    expect(answer).toMatchObject({ reason: "cancelled", ran: "may-have-run" });
    expect(outcomes).toMatchObject([{ errorKind: "cancelled", success: false }]);
    await eventually(() => server.control({ op: "facts" }), ({ cancelled }) => cancelled === 1);
    expect(resultOf(await forwarder.call(call("echo", { text: "still here" })))).toBeDefined();
  });

  it("a deadline that passes stops the server", async () => {
    const { server, forwarder } = await start();
    await forwarder.call(call("echo", { text: "warm" }));
    const answer = refusalOf(await forwarder.call({ ...call("slow", { steps: 2_000, stepMs: 10 }), deadlineMs: 2_000 }));
    expect(answer).toMatchObject({ reason: "deadline", ran: "may-have-run" });
    expect(answer.text).toContain("2000 ms");
    await eventually(() => server.control({ op: "facts" }), ({ cancelled }) => cancelled === 1);
  });

  it("errors of the server pass as they are", async () => {
    const { forwarder, outcomes } = await start();
    const answer = await forwarder.call(call("no_such_tool"));
    // Some answer this as a JSON-RPC error and some as a result; it is theirs either way.
    if (era === "modern") expect(answer).toMatchObject({ kind: "rpc-error", code: -32602 });
    else expect(answer.kind === "rpc-error" ? answer.code : resultOf(answer)["isError"]).toBeTruthy();
    expect(JSON.stringify(answer)).toContain("no_such_tool");
    expect(outcomes[0]?.success).toBe(false);
  });

  it("a server that forgot its sessions is called once more, on a new one, and executes once", async () => {
    const { server, forwarder } = await start();
    await forwarder.call(call("echo", { text: "1" }));
    await server.control({ op: "forget-sessions" });
    expect(echoed(await forwarder.call(call("echo", { text: "2" }))).args).toEqual({ text: "2" });
    expect((await server.control({ op: "facts" }))["calls"]).toEqual({ echo: 2 });
  });

  it("a server that dies in mid-call is told of at once, and nothing is repeated", async () => {
    const server = await startFixture("calling-server.mjs", args);
    const other = await startFixture("calling-server.mjs", args);
    const { forwarder, servers } = startForwarder();
    // The newest registration is called first.
    servers.put("srv", { url: other.url }, { url: server.url });
    const answer = refusalOf(await forwarder.call({ ...call("dies"), deadlineMs: 20_000 }));
    expect(answer).toMatchObject({ ran: "may-have-run" });
    expect(["lost", "protocol"]).toContain(answer.reason);
    expect(answer.text).toMatch(/may have executed it; it was not sent again/);
    expect((await other.control({ op: "facts" }))["calls"]).toEqual({});
    // The next call is sent to the one that is left.
    expect(echoed(await forwarder.call(call("echo", { text: "on" }))).args).toEqual({ text: "on" });
    expect((await other.control({ op: "facts" }))["calls"]).toEqual({ echo: 1 });
  });

  it("callers of different sessions do not meet in one, callers of the same do", async () => {
    const { server, forwarder } = await start();
    const as = (session: string) => forwarder.call({ ...call("echo", { text: "x" }), session });
    await as("ann");
    await as("ben");
    await as("ann");
    const { sessions } = await server.control({ op: "facts" });
    expect(sessions).toBe(era === "modern" ? 0 : 2);
  });
});

describe("arguments that do not fit the definition", () => {
  it("are refused with what would, and the server hears nothing", async () => {
    const server = await startFixture("calling-server.mjs");
    const schema = { type: "object", properties: { text: { type: "string" }, count: { type: "integer" } }, required: ["text"], additionalProperties: false };
    const { forwarder, servers, outcomes } = startForwarder({ definition: definitionsOf({ "srv/echo": schema }) });
    servers.put("srv", { url: server.url });
    const answer = refusalOf(await forwarder.call(call("echo", { count: "3", txt: "x" })));
    expect(answer).toMatchObject({ reason: "arguments", ran: "not-run" });
    expect(answer.text).toContain("/text is missing");
    expect(answer.text).toContain("/txt is no parameter");
    expect(answer.text).toContain("give 3 without quotes");
    expect(answer.text).toContain('It takes {"text": string, "count"?: integer}');
    const nested = refusalOf(await forwarder.call(call("echo", { name: "echo", arguments: { text: "hi" } })));
    expect(nested.text).toContain('one level too deep, under "arguments": give the tool\'s own parameters themselves, {"text":"hi"}');
    expect(await server.requests()).toEqual([]);
    expect(outcomes.map(({ errorKind, reached }) => [errorKind, reached])).toEqual([["arguments", false], ["arguments", false]]);
    expect(echoed(await forwarder.call(call("echo", { text: "hi" }))).args).toEqual({ text: "hi" });
  });

  it("values that have a header are repeated in it for 2026-07-28", async () => {
    const server = await startFixture("calling-server.mjs");
    const schema = {
      type: "object",
      properties: { text: { type: "string", "x-mcp-header": "Region" }, count: { type: "integer", "x-mcp-header": "Count" } },
    };
    const { forwarder, servers } = startForwarder({ definition: definitionsOf({ "srv/echo": schema }) });
    servers.put("srv", { url: server.url });
    await forwarder.call(call("echo", { text: "süd", count: 2 }));
    const sent = (await server.requests()).find(({ method }) => method === "tools/call");
    expect(sent?.headers).toMatchObject({ "mcp-param-region": `=?base64?${Buffer.from("süd").toString("base64")}?=`, "mcp-param-count": "2" });
  });
});

describe("which server and which instance", () => {
  it("names that no registry knows, ids that are none, and servers without an endpoint", async () => {
    const { forwarder, servers } = startForwarder();
    servers.put("inline");
    expect(refusalOf(await forwarder.call(call("x")))).toMatchObject({ reason: "unknown-server", ran: "not-run" });
    expect(refusalOf(await forwarder.call({ namespace: "default", toolId: "noslash" }))).toMatchObject({ reason: "unknown-server" });
    expect(refusalOf(await forwarder.call({ namespace: "default", toolId: "inline/x" }))).toMatchObject({ reason: "no-endpoint" });
  });

  it("an isolated server and one that is down are refused without a call", async () => {
    const server = await startFixture("calling-server.mjs");
    const { forwarder, servers } = startForwarder();
    servers.placed.set("srv", { instances: [{ url: server.url }], breaker: BreakerState.ISOLATED, why: "leaks data" });
    servers.placed.set("down", { instances: [{ url: server.url, down: true }], breaker: BreakerState.OPEN });
    const isolated = refusalOf(await forwarder.call(call("echo")));
    expect(isolated.reason).toBe("isolated");
    expect(isolated.text).toContain("leaks data");
    expect(refusalOf(await forwarder.call({ namespace: "default", toolId: "down/echo" })).reason).toBe("unavailable");
    expect(await server.requests()).toEqual([]);
  });

  it("an instance that refuses connections is passed over; one that is down is not dialled", async () => {
    const [gone, good, down] = await Promise.all([1, 2, 3].map(() => startFixture("calling-server.mjs")));
    const { forwarder, servers } = startForwarder();
    servers.put("srv", { url: good!.url }, { url: down!.url, down: true }, { url: gone!.url });
    await gone!.stop();
    for (let i = 0; i < 3; i++) expect(echoed(await forwarder.call(call("echo", { text: `${i}` }))).args).toEqual({ text: `${i}` });
    expect(await down!.requests()).toEqual([]);
  });

  it("a server that was started anew on another port is found", async () => {
    const [before, after] = await Promise.all([startFixture("calling-server.mjs"), startFixture("calling-server.mjs")]);
    const { forwarder, servers } = startForwarder();
    servers.put("srv", { url: before.url });
    await forwarder.call(call("echo", { text: "1" }));
    await before.stop();
    servers.put("srv", { url: after.url });
    expect(echoed(await forwarder.call(call("echo", { text: "2" }))).args).toEqual({ text: "2" });
  });

  it("calls of a session stay with one instance, others are spread", async () => {
    const both = await Promise.all([1, 2].map(() => startFixture("calling-server.mjs")));
    const { forwarder, servers } = startForwarder();
    servers.put("srv", ...both.map(({ url }) => ({ url })));
    const times = async () => Promise.all(both.map(async (one) => ((await one.control({ op: "facts" }))["calls"] as Record<string, number>)["echo"] ?? 0));
    for (let i = 0; i < 6; i++) await forwarder.call({ ...call("echo", { text: "x" }), session: "ann" });
    expect((await times()).sort()).toEqual([0, 6]);
    await Promise.all(Array.from({ length: 8 }, () => forwarder.call(call("slow", { steps: 1, stepMs: 50 }))));
    const slow = await Promise.all(both.map(async (one) => ((await one.control({ op: "facts" }))["calls"] as Record<string, number>)["slow"]));
    expect(slow).toEqual([4, 4]);
  });

  it("an instance with an older set of tools comes last", async () => {
    const [older, newer] = await Promise.all([startFixture("calling-server.mjs"), startFixture("calling-server.mjs")]);
    const { forwarder, servers } = startForwarder();
    servers.placed.set("srv", {
      setDigest: "new",
      instances: [
        { url: newer.url, setDigest: "new" },
        { url: older.url, setDigest: "old" },
      ],
    });
    for (let i = 0; i < 3; i++) await forwarder.call(call("echo", { text: "x" }));
    expect(await older.requests()).toEqual([]);
  });
});

describe("the registry is away", () => {
  it("known servers go on working and say stale, unknown ones are refused", async () => {
    const server = await startFixture("calling-server.mjs");
    const { forwarder, servers } = startForwarder();
    servers.put("srv", { url: server.url });
    expect(await forwarder.call(call("echo", { text: "1" }))).toMatchObject({ kind: "result", stale: false });
    servers.failure = away;
    forwarder.changed("default", "srv");
    expect(await forwarder.call(call("echo", { text: "2" }))).toMatchObject({ kind: "result", stale: true });
    expect(refusalOf(await forwarder.call({ namespace: "default", toolId: "other/x" })).reason).toBe("registry-away");
    servers.failure = undefined;
    forwarder.changed("default", "srv");
    expect(await forwarder.call(call("echo", { text: "3" }))).toMatchObject({ kind: "result", stale: false });
  });

  it("an old word about its health keeps nobody from a server", async () => {
    const server = await startFixture("calling-server.mjs");
    const { forwarder, servers } = startForwarder();
    servers.placed.set("srv", { instances: [{ url: server.url, down: true }], breaker: BreakerState.OPEN });
    expect(refusalOf(await forwarder.call(call("echo", { text: "1" }))).reason).toBe("unavailable");
    servers.failure = away;
    forwarder.changed("default", "srv");
    expect(await forwarder.call(call("echo", { text: "2" }))).toMatchObject({ kind: "result", stale: true });
  });
});

describe("credentials", () => {
  const rule = (...hosts: string[]) => ({ callerCredentials: [{ namespace: "default", serverId: "srv", hosts }] });

  it("a caller's own is shown where a rule says so", async () => {
    const server = await startFixture("calling-server.mjs", ["--sdk", "v1", "--wants", "Bearer ann-0123456789"]);
    const { forwarder, servers } = startForwarder(rule("127.0.0.1"));
    servers.put("srv", { url: server.url });
    const ann = { value: "Bearer ann-0123456789" };
    expect(resultOf(await forwarder.call({ ...call("secret"), credential: ann }))).toMatchObject({ content: [{ text: "I know you" }] });
    const ben = refusalOf(await forwarder.call({ ...call("secret"), credential: { value: "Bearer ben-0123456789" } }));
    expect(ben.reason).toBe("auth");
    expect(JSON.stringify(ben)).not.toContain("ben-0123456789");
    const nobody = refusalOf(await forwarder.call(call("secret")));
    expect(nobody).toMatchObject({ reason: "credential", ran: "not-run" });
    // The two never meet in one session.
    expect((await server.control({ op: "facts" }))["sessions"]).toBe(1);
  });

  it("is shown to no other server, and to no other host", async () => {
    const server = await startFixture("calling-server.mjs", ["--sdk", "v1"]);
    const { forwarder, servers } = startForwarder(rule("api.example.com"));
    servers.put("srv", { url: server.url });
    servers.put("other", { url: server.url });
    const credential = { value: "Bearer ann-0123456789" };
    const elsewhere = refusalOf(await forwarder.call({ ...call("echo", { text: "x" }), credential }));
    expect(elsewhere).toMatchObject({ reason: "credential", ran: "not-run" });
    expect(await server.requests()).toEqual([]);
    resultOf(await forwarder.call({ namespace: "default", toolId: "other/echo", args: { text: "x" }, credential }));
    expect(JSON.stringify(await server.requests())).not.toContain("ann-0123456789");
  });

  it("an answer that repeats it is not taken", async () => {
    const server = await startFixture("calling-server.mjs", ["--sdk", "v1", "--leak"]);
    const { forwarder, servers } = startForwarder(rule("127.0.0.1"));
    servers.put("srv", { url: server.url });
    const answer = refusalOf(await forwarder.call({ ...call("secret"), credential: { value: "Bearer ann-0123456789" } }));
    expect(answer).toMatchObject({ reason: "protocol", ran: "may-have-run" });
    expect(answer.text).not.toContain("ann-0123456789");
  });

  it("rules that cannot hold are refused, all at once", () => {
    const bad = [
      { namespace: "default", serverId: "a", hosts: [] },
      { namespace: "default", serverId: "b", hosts: ["http://x/"], header: "Host" },
    ];
    expect(() => startForwarder({ callerCredentials: bad })).toThrow(/default\/a names no host.*default\/b.*no host name.*no header/s);
  });
});

it("the egress policy of the registry holds for calls", async () => {
  const server = await startFixture("calling-server.mjs");
  const { forwarder, servers } = startForwarder({ policy: { ...localPolicy, inside: "closed" } });
  servers.put("srv", { url: server.url });
  expect(refusalOf(await forwarder.call(call("echo")))).toMatchObject({ reason: "egress", ran: "not-run" });
  expect(await server.requests()).toEqual([]);
});

describe("too many calls of one server", () => {
  it("wait in order, and beyond that are refused at once; other servers do not notice", async () => {
    const [server, other] = await Promise.all([startFixture("calling-server.mjs"), startFixture("calling-server.mjs")]);
    const { forwarder, servers } = startForwarder({ callsPerServer: 2, waitingPerServer: 3 });
    servers.put("srv", { url: server.url });
    servers.put("other", { url: other.url });
    const ending = new AbortController();
    const slow = { ...call("slow", { steps: 5_000, stepMs: 10 }), signal: ending.signal };
    const held = Array.from({ length: 2 }, () => forwarder.call(slow));
    await eventually(() => server.control({ op: "facts" }), ({ calls }) => (calls as Record<string, number>)["slow"] === 2);
    const waiting = Array.from({ length: 3 }, () => forwarder.call(slow));
    const busy = refusalOf(await forwarder.call(call("echo", { text: "x" })));
    expect(busy).toMatchObject({ reason: "busy", ran: "not-run" });
    expect(busy.text).toContain("2 calls are under way and 3 wait");
    expect(resultOf(await forwarder.call({ namespace: "default", toolId: "other/echo", args: { text: "x" } }))).toBeDefined();
    ending.abort();
    const ends = (await Promise.all([...held, ...waiting])).map(refusalOf);
    expect(ends.map(({ reason }) => reason)).toEqual(Array(5).fill("cancelled"));
    expect(ends.slice(2).map(({ ran }) => ran)).toEqual(Array(3).fill("not-run"));
    expect(echoed(await forwarder.call(call("echo", { text: "free again" }))).args).toEqual({ text: "free again" });
  });
});

it("closing ends calls under way and later ones", async () => {
  const server = await startFixture("calling-server.mjs");
  const { forwarder, servers } = startForwarder();
  servers.put("srv", { url: server.url });
  const slow = forwarder.call(call("slow", { steps: 5_000, stepMs: 10 }));
  await eventually(() => server.control({ op: "facts" }), ({ calls }) => (calls as Record<string, number>)["slow"] === 1);
  await forwarder.close();
  expect(refusalOf(await slow)).toMatchObject({ reason: "closing", ran: "may-have-run" });
  expect(refusalOf(await forwarder.call(call("echo")))).toMatchObject({ reason: "closing", ran: "not-run" });
});

it("a request that is sent once says when it may be there", async () => {
  const egress = createEgress(localPolicy);
  const server = await startFixture("calling-server.mjs");
  let sent = 0;
  const once = { onSent: () => void sent++ };
  const request = { method: "POST", headers: {}, body: "{}", purpose: "x", once } as const;
  (await egress.request(server.url, request, soon())).discard();
  expect(sent).toBe(1);
  await server.stop();
  await expect(egress.request(server.url, request, soon())).rejects.toThrow(/refuses connections/);
  expect(sent).toBe(1);
  egress.close();
});
