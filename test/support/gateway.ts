/** Gateways inside a test, and what real clients make of them. */
import { StreamableHTTPClientTransport as HttpV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from "@modelcontextprotocol/client";
import { findNodeAtLocation, type Node, parseTree } from "jsonc-parser";
import { onTestFinished } from "vitest";
import { z } from "zod";
import { parseTarget } from "../../src/client/target.js";
import { type Gateway, type GatewayOptions, startGateway } from "../../src/gateway/gateway.js";
import { systemClock } from "../../src/ops/system.js";

export interface TestGateway extends Gateway {
  /** http://127.0.0.1:port/mcp */
  readonly url: string;
  readonly log: { readonly level: string; readonly fields: object; readonly message: string }[];
}

/** Stopped when the test ends; with `keep` the caller stops it. */
export async function testGateway(registry: string, options: Partial<GatewayOptions> & { keep?: boolean } = {}): Promise<TestGateway> {
  const log: TestGateway["log"] = [];
  const at = (level: string) => (fields: object, message: string) => void log.push({ level, fields, message });
  const gateway = await startGateway({
    target: parseTarget(registry),
    namespace: "",
    always: [],
    scopes: [],
    selector: undefined,
    idleTtlMs: 3_600_000,
    policy: { inside: "open", allow: { networks: [], names: [] }, own: () => [], machine: () => [] },
    credentials: undefined,
    callerCredentials: [],
    log: { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") },
    version: "0.0.0",
    clock: systemClock,
    random: Math.random,
    address: { host: "127.0.0.1", port: 0 },
    tls: undefined,
    guarded: { hosts: [], origins: [] },
    identification: "own",
    mode: "auto",
    stableClients: [],
    maxStreams: 100,
    graceMs: 2_000,
    ...options,
  });
  if (!options.keep) onTestFinished(() => gateway.stop());
  return Object.assign(Object.create(gateway) as Gateway, { url: `http://127.0.0.1:${gateway.address.port}/mcp`, log, stop: () => gateway.stop() });
}

/** What the tests ask of any official client. */
export interface AnyClient {
  readonly era: "sessions" | "2026-07-28";
  listed(): Promise<any[]>;
  names(): Promise<string[]>;
  call(name: string, args?: object): Promise<{ text: string; isError: boolean; result: any }>;
  /** The text of the `result` as it came over the wire, for what the SDK would drop or write anew. Alone: nothing else is asked meanwhile. */
  raw(method: string, params?: object): Promise<string>;
  /** `list_changed` so far. */
  readonly changes: () => number;
  readonly sessionId: () => string | undefined;
  close(): Promise<void>;
}

export const CLIENTS = ["sdk v1", "sdk v2, sessions", "sdk v2, negotiating"] as const;
export type ClientKind = (typeof CLIENTS)[number];

/** Closed when the test ends. */
export async function connectClient(kind: ClientKind, url: string, { name = "test", headers = {} as Record<string, string> } = {}): Promise<AnyClient> {
  let changes = 0;
  const info = { name, version: "1.0.0" };
  const bodies: Promise<string>[] = [];
  const heard: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (tap && init?.method === "POST") bodies.push(response.clone().text());
    return response;
  };
  let tap = false;
  const options = { requestInit: { headers }, fetch: heard };
  const { client, transport, list, era } = await (kind === "sdk v1" ? v1() : v2(kind));
  onTestFinished(() => client.close().catch(() => undefined));
  return {
    era,
    listed: list,
    names: async () => (await list()).map((t: { name: string }) => t.name),
    call: async (tool, args = {}) => {
      const result: any = await client.callTool({ name: tool, arguments: args as Record<string, unknown> });
      return { text: (result.content ?? []).map((c: any) => c.text ?? `[${c.type}]`).join("\n"), isError: result.isError === true, result };
    },
    raw: async (method, params = {}) => {
      tap = true;
      bodies.length = 0;
      await (client.request as (request: object, result: unknown) => Promise<unknown>).call(client, { method, params }, z.any());
      tap = false;
      return resultText((await Promise.all(bodies)).join("\n"));
    },
    changes: () => changes,
    sessionId: () => transport.sessionId,
    close: () => client.close(),
  };

  async function v1() {
    const c = new ClientV1(info, { listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => void changes++ } } });
    const t = new HttpV1(new URL(url), options);
    await c.connect(t);
    return { client: c, transport: t, era: "sessions" as const, list: async () => (await c.listTools()).tools as any[] };
  }

  async function v2(which: ClientKind) {
    const negotiating = which === "sdk v2, negotiating";
    const c = new ClientV2(info, {
      ...(negotiating && { versionNegotiation: { mode: "auto" as const } }),
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => void changes++ } },
    });
    const t = new HttpV2(new URL(url), options);
    await c.connect(t);
    const era = c.getNegotiatedProtocolVersion() === "2026-07-28" ? ("2026-07-28" as const) : ("sessions" as const);
    return { client: c, transport: t, era, list: async () => (await c.listTools()).tools as any[] };
  }
}

/** Of one answer, plain or in a stream. */
function resultText(body: string): string {
  const messages = body.split("\n").map((line) => line.replace(/^data: /, "")).filter((line) => line.startsWith("{"));
  for (const message of messages) {
    const result = findNodeAtLocation(parseTree(message) as Node, ["result"]);
    if (result) return message.slice(result.offset, result.offset + result.length);
  }
  throw new Error(`no result in: ${body.slice(0, 500)}`);
}

/** The toolset that a stable find_tools named. */
export function toolsetIn(text: string): string {
  const handle = /^toolset: (\S+)$/m.exec(text)?.[1];
  if (handle === undefined) throw new Error(`no toolset in: ${text}`);
  return handle;
}
