import { createServer as createTcpServer } from "node:net";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { LIMITS } from "../../src/domain/limits.js";
import type { ForwardCall, RefusalReason } from "../../src/gateway/forward/api.js";
import { refusalOf, resultOf, startForwarder } from "../support/forward.js";
import { startFixture } from "../support/servers.js";
import { eventually, realClock } from "../support/upstream.js";

const eras = ["legacy", "modern"] as const;

async function start(fault: string, era: string, more: readonly string[] = [], options: Parameters<typeof startForwarder>[0] = {}) {
  const server = await startFixture("faulty-calls.mjs", ["--fault", fault, "--era", era, ...more]);
  const forwarding = startForwarder(options);
  forwarding.servers.put("srv", { url: `${server.url}?key=s3cret` });
  const call = (rest: Partial<ForwardCall> = {}) => forwarding.forwarder.call({ namespace: "default", toolId: "srv/work", args: {}, ...rest });
  const calls = async () => (await server.control({ op: "calls" }))["calls"];
  return { server, call, calls, ...forwarding };
}

type Fate = "not-run" | "may-have-run";
const failures: [string, RefusalReason, Fate, RegExp][] = [
  ["status-500", "lost", "may-have-run", /HTTP 500.*may have executed it/],
  ["status-503", "lost", "may-have-run", /HTTP 503/],
  ["status-429", "throttled", "not-run", /HTTP 429.*try again later/],
  ["status-401", "auth", "not-run", /HTTP 401.*asks for credentials/],
  ["redirect", "lost", "may-have-run", /redirects are not followed/],
  ["html", "protocol", "may-have-run", /content type "text\/html"/],
  ["bad-json", "protocol", "may-have-run", /invalid JSON/],
  ["reset", "lost", "may-have-run", /closed the connection before it had answered tools\/call/],
  ["stream-cut", "protocol", "may-have-run", /ended its answer to tools\/call without a result/],
  ["flood", "too-large", "may-have-run", new RegExp(`more than ${LIMITS.callStreamBytes} bytes`)],
];

describe.each(eras)("a server of the %s era that goes wrong in a call", (era) => {
  it.each(failures)("%s: %s, %s", async (fault, reason, ran, sentence) => {
    const { call, calls, outcomes } = await start(fault, era);
    const answer = refusalOf(await call());
    expect(answer).toMatchObject({ reason, ran });
    expect(answer.text).toMatch(sentence);
    expect(answer.text).not.toContain("s3cret");
    expect(await calls()).toBe(1);
    expect(outcomes).toMatchObject([{ success: false, errorKind: reason, reached: ran === "may-have-run" }]);
  });

  it("says when it may be asked again", async () => {
    const { call } = await start("status-429", era);
    expect(refusalOf(await call()).retryAfterMs).toBe(9_000);
  });

  it.each(["silent", "silent-stream"])("%s: the deadline ends it, and the server is told", async (fault) => {
    const { server, call } = await start(fault, era);
    const answer = refusalOf(await call({ deadlineMs: 2_000 }));
    expect(answer).toMatchObject({ reason: "deadline", ran: "may-have-run" });
    if (era === "modern") return;
    const { cancelled } = await eventually(
      () => server.control({ op: "cancelled" }),
      (said) => (said["cancelled"] as unknown[]).length === 1,
    );
    const sent = (await server.requests()).filter(({ method }) => method === "tools/call");
    expect(sent).toHaveLength(1);
    expect(cancelled).toMatchObject([{ reason: "the deadline of 2000 ms passed" }]);
  });

  it("progress does not move the deadline", async () => {
    const { call } = await start("progress-for-ever", era);
    let steps = 0;
    const answer = refusalOf(await call({ deadlineMs: 2_000, meta: { progressToken: "p" }, onProgress: () => void steps++ }));
    expect(answer.reason).toBe("deadline");
    expect(steps).toBeGreaterThan(0);
  });

  it("a session that is never found again is given up after one more handshake", async () => {
    const { call, server } = await start("session-404", era);
    const answer = refusalOf(await call());
    expect(answer).toMatchObject({ reason: "unreachable", ran: "not-run" });
    expect(answer.text).toContain("Session not found");
    const calls = (await server.requests()).filter(({ method }) => method === "tools/call");
    expect(calls).toHaveLength(2);
  });

  it("a session that is lost in mid-session is opened anew, once", async () => {
    const { call, calls, server } = await start("none", era);
    resultOf(await call());
    await server.control({ op: "fault", fault: "session-404-once" });
    resultOf(await call());
    expect(await calls()).toBe(3);
  });

  it("a code that sounds like a lost session is the tool's own word when it comes as an answer", async () => {
    const { call, calls } = await start("session-error-200", era);
    expect(await call()).toMatchObject({ kind: "rpc-error", code: -32001, message: "Request timed out" });
    expect(await calls()).toBe(1);
  });

  it("errors keep code, whole message and data, whichever status carries them", async () => {
    const plain = await start("rpc-error", era);
    expect(await plain.call()).toEqual({
      kind: "rpc-error",
      code: -32099,
      message: "quota ".repeat(100),
      data: { left: 0, why: ["a"] },
      stale: false,
    });
    const bad = await start("rpc-error-400", era);
    expect(await bad.call()).toMatchObject({ kind: "rpc-error", code: -32602, message: "Unknown tool", data: { name: "x" } });
    expect(await bad.calls()).toBe(1);
    const vague = await start("rpc-error-vague", era);
    expect(await vague.call()).toMatchObject({ kind: "rpc-error", code: -32000, message: "The payment was declined" });
    expect(await vague.calls()).toBe(1);
  });

  it("a result keeps its very text", async () => {
    const { call } = await start("exact", era);
    const answer = await call();
    expect(answer.kind === "result" && answer.text).toBe(
      '{ "content":[],"b":{"2":9007199254740993,"1":1e400}, "x-new":{"deep":[null]} ,"resultType":"complete"}',
    );
  });

  it("results up to the limit pass, one beyond it is refused by its name", async () => {
    const fits = await start("large", era, ["--bytes", String(LIMITS.callAnswerBytes - 1_000)]);
    expect(resultOf(await fits.call())["content"][0].text).toHaveLength(LIMITS.callAnswerBytes - 1_000);
    const over = await start("large", era, ["--bytes", String(LIMITS.callAnswerBytes)]);
    const answer = refusalOf(await over.call());
    expect(answer).toMatchObject({ reason: "too-large", ran: "may-have-run" });
    expect(answer.text).toContain(`more than ${LIMITS.callAnswerBytes} bytes`);
  });

  it("only this call's progress is handed on, whole", async () => {
    const { call } = await start("foreign-progress", era);
    const heard: unknown[] = [];
    resultOf(await call({ meta: { progressToken: 5 }, onProgress: (params) => void heard.push(params) }));
    expect(heard).toEqual([{ progressToken: 5, progress: 1, total: 2, "x-eta": "soon" }]);
  });

  it("a listener that throws harms nobody", async () => {
    const { call } = await start("foreign-progress", era);
    const onProgress = () => {
      throw new Error("the caller's stream is gone");
    };
    resultOf(await call({ meta: { progressToken: 5 }, onProgress }));
  });

  it("log messages of the call are handed on", async () => {
    const { call } = await start("logs", era);
    const heard: unknown[] = [];
    resultOf(await call({ onLog: (params) => void heard.push(params) }));
    expect(heard).toEqual([{ level: "info", data: "working" }]);
  });
});

it("a server of an older era that asks for a model is told that there is none, and goes on", async () => {
  const { call } = await start("asks-us", "legacy");
  expect(resultOf(await call())["reply"]).toMatchObject({ id: "s-1", error: { code: -32601 } });
});

describe("a server of 2026-07-28 that asks for input", () => {
  it("is answered by a caller that can, in a second call", async () => {
    const { call, server } = await start("input-required", "modern");
    const clientCapabilities = { elicitation: {} };
    const asked = resultOf(await call({ clientCapabilities }));
    expect(asked).toMatchObject({ resultType: "input_required", requestState: "s1" });
    const more = { inputResponses: { who: { action: "accept", content: { name: "Ann" } } }, requestState: "s1" };
    expect(resultOf(await call({ clientCapabilities, more }))["got"]).toEqual(more);
    const [sent] = (await server.requests()).filter(({ method }) => method === "tools/call");
    expect(sent?.params?.["_meta"]).toMatchObject({ "io.modelcontextprotocol/clientCapabilities": clientCapabilities });
  });

  it("is no answer for a caller that cannot", async () => {
    const { call } = await start("input-required", "modern");
    expect(refusalOf(await call())).toMatchObject({ reason: "protocol", ran: "may-have-run" });
  });
});

describe("the breaker of this gateway", () => {
  it("opens after failures in a row, fails fast, and one trial closes it", async () => {
    let ahead = 0;
    // Stands still but for the test: a slow machine must not end the breaker's rest.
    const clock = { ...realClock, monotonic: () => ahead };
    const { server, call, calls } = await start("reset", "legacy", [], { clock, random: () => 0.5 });
    for (let i = 0; i < 5; i++) expect(refusalOf(await call()).reason).toBe("lost");
    const fast = refusalOf(await call());
    expect(fast).toMatchObject({ reason: "breaker-open", ran: "not-run" });
    expect(fast.retryAfterMs).toBeGreaterThan(0);
    expect(await calls()).toBe(5);
    ahead += 2_000;
    expect(refusalOf(await call()).reason).toBe("lost");
    expect(refusalOf(await call()).reason).toBe("breaker-open");
    await server.control({ op: "fault", fault: "none" });
    ahead += 10_000;
    resultOf(await call());
    resultOf(await call());
  });

  it("lets one trial through, while others are refused", async () => {
    let ahead = 0;
    // Stands still but for the test: a slow machine must not end the breaker's rest.
    const clock = { ...realClock, monotonic: () => ahead };
    const { server, call, calls } = await start("reset", "modern", [], { clock, random: () => 0.5 });
    for (let i = 0; i < 5; i++) await call();
    await server.control({ op: "fault", fault: "silent" });
    ahead += 2_000;
    const trial = call({ deadlineMs: 5_000 });
    await eventually(calls, (n) => n === 6);
    expect(refusalOf(await call()).reason).toBe("breaker-open");
    expect(refusalOf(await trial).reason).toBe("deadline");
    expect(await calls()).toBe(6);
  });

  it("errors of tools open nothing", async () => {
    const { call, calls } = await start("rpc-error", "modern");
    for (let i = 0; i < 8; i++) expect((await call()).kind).toBe("rpc-error");
    expect(await calls()).toBe(8);
  });

  it("another instance takes the calls of one whose breaker is open", async () => {
    const { call, servers, server } = await start("reset", "modern");
    const good = await startFixture("faulty-calls.mjs", ["--fault", "none"]);
    for (let i = 0; i < 5; i++) await call();
    servers.put("srv", { url: good.url }, { url: `${server.url}?key=s3cret` });
    await eventually(call, ({ kind }) => kind === "result");
  });
});

describe("a request on a kept connection that the server closes at that moment", () => {
  /** Speaks just enough HTTP: answers what is asked before, and cuts the connection when a second call comes on it. */
  async function cutting(): Promise<{ url: string; calls: () => number }> {
    let calls = 0;
    const server = createTcpServer((socket) => {
      let text = "";
      let onThisSocket = 0;
      socket.on("error", () => undefined);
      socket.on("data", (chunk) => {
        text += chunk.toString();
        for (;;) {
          const head = text.indexOf("\r\n\r\n");
          const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
          if (head < 0 || text.length < head + 4 + length) return;
          const message = JSON.parse(text.slice(head + 4, head + 4 + length)) as { id?: number; method: string };
          text = text.slice(head + 4 + length);
          const call = message.method === "tools/call";
          if (call) calls++;
          if (call && ++onThisSocket === 2) return socket.resetAndDestroy();
          const result =
            message.method === "server/discover" ? '{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}' : '{"content":[]}';
          const body = `{"jsonrpc":"2.0","id":${message.id},"result":${result}}`;
          socket.write(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
        }
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, calls: () => calls };
  }

  it("is not sent again", async () => {
    const server = await cutting();
    const { forwarder, servers } = startForwarder();
    servers.put("srv", { url: server.url });
    const call = () => forwarder.call({ namespace: "default", toolId: "srv/work", args: {} });
    resultOf(await call());
    expect(refusalOf(await call())).toMatchObject({ reason: "lost", ran: "may-have-run" });
    expect(server.calls()).toBe(2);
  });
});

it("a server that accepts connections and never answers keeps nobody beyond the deadline, and harms no other", async () => {
  const silent = await startFixture("faulty-server.mjs", ["--fault", "silent"]);
  const good = await startFixture("faulty-calls.mjs", ["--fault", "none"]);
  const { forwarder, servers } = startForwarder();
  servers.put("silent", { url: silent.url });
  servers.put("good", { url: good.url });
  const stuck = Array.from({ length: 20 }, () => forwarder.call({ namespace: "default", toolId: "silent/work", deadlineMs: 1_000 }));
  resultOf(await forwarder.call({ namespace: "default", toolId: "good/work", args: {} }));
  for (const answer of await Promise.all(stuck)) expect(refusalOf(answer)).toMatchObject({ reason: "deadline", ran: "not-run" });
});

it("arguments that are none, too deep or too large are not sent", async () => {
  const { call, calls } = await start("none", "modern");
  let deep: unknown = 1;
  for (let i = 0; i < 100_000; i++) deep = { a: deep };
  expect(refusalOf(await call({ args: deep }))).toMatchObject({ reason: "arguments", ran: "not-run" });
  expect(refusalOf(await call({ args: '{"a":1}' })).text).toContain("give the JSON object itself");
  expect(refusalOf(await call({ args: [1] })).text).toContain("an array");
  const large = refusalOf(await call({ args: { text: "x".repeat(LIMITS.callArgumentBytes) } }));
  expect(large.reason).toBe("too-large");
  expect(large.text).toContain(String(LIMITS.callArgumentBytes));
  expect(await calls()).toBe(0);
});
