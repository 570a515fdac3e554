/** Clients that begin and never come back, nor say that they leave: what they were given goes, at the gateway and at the registry. */
import { Agent, request } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import { toolcrib } from "../support/cli.js";
import { heapProbe } from "../support/heap.js";
import { RemoteRegistry, startRegistry } from "../support/registry.js";
import { startFixture } from "../support/servers.js";
import { eventually } from "../support/upstream.js";

const DEEP = process.env["DEEP_TESTS"] === "1";
const SESSIONS = 10_000;
const AT_ONCE = 20;
const IDLE_S = 10;
/** Of heap for each session: a record of one that is kept has more than a kilobyte. */
const LEFT_BYTES = 500;

const MODERN = "2026-07-28";
const META = { "io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" } };
const FIND = { name: "find_tools", arguments: { intent: "greet somebody by name", limit: 2 } };

interface Answer {
  readonly status: number;
  readonly session: string;
  readonly text: string;
}

/** Clients that share a few connections, and leave without a word. */
class Crowd {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  readonly #url: string;
  #come = 0;

  constructor(url: string) {
    this.#url = url;
    onTestFinished(() => this.#agent.destroy());
  }

  /** The first session. */
  async abandon(count: number): Promise<string> {
    const begun: string[] = [];
    for (let done = 0; done < count; done += AT_ONCE) begun.push(...(await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - done) }, () => this.#one()))));
    return begun[0] ?? "";
  }

  post(message: object, headers: Record<string, string> = {}): Promise<Answer> {
    const all = { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers };
    return new Promise((resolve, reject) => {
      const sent = request(this.#url, { method: "POST", agent: this.#agent, headers: all }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => void (text += chunk));
        response.on("error", reject).on("end", () => resolve({ status: response.statusCode ?? 0, session: String(response.headers["mcp-session-id"] ?? ""), text }));
      });
      sent.on("error", reject).end(JSON.stringify({ jsonrpc: "2.0", id: 1, ...message }));
    });
  }

  /** A session; some load tools, some listen, and some have no session but a toolset. */
  async #one(): Promise<string> {
    const nth = this.#come++;
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: `client ${nth}`, version: "1" } };
    const { session } = await this.post({ method: "initialize", params });
    if (nth % 10 === 1) expect((await this.post({ method: "tools/call", params: FIND }, { "mcp-session-id": session })).text).toContain("one__greet");
    if (nth % 10 === 2) expect((await this.post({ method: "tools/call", params: { ...FIND, _meta: META } }, { "mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "find_tools" })).text).toContain("toolset: ");
    if (nth % 50 === 3) await this.#listenAndLeave(session);
    return session;
  }

  #listenAndLeave(session: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const stream = request(this.#url, { agent: false, headers: { accept: "text/event-stream", "mcp-session-id": session } }, (response) => {
        expect(response.statusCode).toBe(200);
        response.on("error", () => undefined).once("data", () => resolve(void stream.destroy()));
      });
      stream.on("error", reject).end();
    });
  }
}

describe("sessions that nobody comes back to", () => {
  it(`${SESSIONS} of them leave no heap behind at the gateway${DEEP ? ", nor at the registry" : " (the registry's: DEEP_TESTS=1)"}`, { timeout: 240_000 }, async () => {
    const [ofRegistry, ofGateway] = [await heapProbe(), await heapProbe()];
    // The limit counts each for a little longer than it lives.
    const registry = await startRegistry({ store: "memory", args: ["--max-toolsets", String(2 * SESSIONS)], env: ofRegistry.env });
    const remote = new RemoteRegistry(registry.grpc);
    const server = await startFixture("sdk-server.mjs", ["--sdk", "v2"]);
    await remote.call("register", { serverId: "one", endpoint: server.url, transport: "TRANSPORT_STREAMABLE_HTTP", standing: true, introspect: {} });
    await eventually(() => remote.toolIds(), (ids) => ids.length === 3);
    const args = ["gateway", "--registry", registry.grpc, "--gateway-address", "127.0.0.1:0", "--gateway-ops-address", "127.0.0.1:0", "--gateway-idle", String(IDLE_S)];
    const gateway = toolcrib(args, ofGateway.env);
    const up = await eventually(() => /MCP (\S+\/mcp).* ops (\S+)/.exec(gateway.stdout()), (found) => found !== null);
    const [, url = "", ops = ""] = up ?? [];
    const crowd = new Crowd(url);
    const counted = async (name: string) => new RegExp(`^toolcrib_gateway_${name} (\\d+)$`, "m").exec(await (await fetch(`${ops}/metrics`)).text())?.[1];

    // What every process learns once is there before it is measured.
    await crowd.abandon(1_000);
    const before = { gateway: await ofGateway.used(), registry: await ofRegistry.used() };
    const first = await crowd.abandon(SESSIONS);
    expect(await counted('toolsets_total{what="session"}')).toBe(String(SESSIONS + 1_000));
    const last = await crowd.abandon(1);
    const gone = async (session: string) => (await crowd.post({ method: "ping" }, { "mcp-session-id": session })).status === 404;
    // To ask after a session is a use of it, so the heap is looked at first.
    await eventually(() => ofGateway.used(), (bytes) => bytes < before.gateway + LEFT_BYTES * SESSIONS, 60_000);
    expect(await counted("streams")).toBe("0");
    expect(await gone(first)).toBe(true);
    if (!DEEP) return;

    // The stores in memory look for what has expired once a minute, when something is written.
    await expect.poll(() => gone(last), { timeout: 60_000, interval: (IDLE_S + 2) * 1_000 }).toBe(true);
    const released = async () => {
      await crowd.abandon(1);
      return ofRegistry.used();
    };
    await eventually(released, (bytes) => bytes < before.registry + LEFT_BYTES * SESSIONS, 150_000);
  });
});
