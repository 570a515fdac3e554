/** 2026-07-28: no sessions; every request says who asks and what it speaks. */
import type { Clock } from "../catalogue/ports.js";
import { UpstreamError } from "../catalogue/upstream-port.js";
import { LIMITS } from "../domain/limits.js";
import type { Channel } from "./channel.js";
import type { ClientInfo, Connection, ListenHooks, Sending } from "./connection.js";
import { isListChanged } from "./connection.js";
import { deadline } from "./deadline.js";
import { place } from "./failures.js";
import { headerText } from "./param-headers.js";
import type { RpcMessage, RpcResult } from "./messages.js";
import { isRecord } from "./messages.js";

export const MODERN_VERSION = "2026-07-28";
const META = "io.modelcontextprotocol";

/** A request of this era. Of what its `_meta` holds already, version and client are replaced; without capabilities it has none. */
export function modernCall(id: number, method: string, params: Readonly<Record<string, unknown>>, client: ClientInfo) {
  const meta = {
    [`${META}/clientCapabilities`]: {},
    ...(isRecord(params["_meta"]) ? params["_meta"] : {}),
    [`${META}/protocolVersion`]: MODERN_VERSION,
    [`${META}/clientInfo`]: client,
  };
  const headers = { "mcp-protocol-version": MODERN_VERSION, "mcp-method": method, ...nameHeader(method, params) };
  return { id, method, params: { ...params, _meta: meta }, headers };
}

/** Of calls that name a tool. Prompts and resources are not asked for here. */
function nameHeader(method: string, { name }: Readonly<Record<string, unknown>>): { readonly "mcp-name"?: string } {
  return method === "tools/call" && typeof name === "string" ? { "mcp-name": headerText(name) } : {};
}

export class ModernConnection implements Connection {
  readonly era = "modern";
  readonly transport = "streamable-http";
  readonly protocolVersion = MODERN_VERSION;
  readonly hasTools: boolean;
  readonly listChanged: boolean;
  private lastId = 1;

  /** `capabilities` as `server/discover` told them; undefined when the server spoke of its versions alone. */
  constructor(
    private readonly channel: Channel,
    private readonly clock: Clock,
    private readonly client: ClientInfo,
    capabilities: Readonly<Record<string, unknown>> | undefined,
  ) {
    const declared = capabilities?.["tools"];
    this.hasTools = capabilities === undefined || isRecord(declared);
    this.listChanged = capabilities === undefined || (isRecord(declared) && declared["listChanged"] === true);
  }

  async call(
    method: string,
    params: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
    onMessage: (message: RpcMessage) => void,
    sending?: Sending,
  ): Promise<RpcResult> {
    const plain = modernCall(++this.lastId, method, params, this.client);
    // Here the end of the connection is what tells a server to stop.
    const call = { ...plain, headers: { ...sending?.headers, ...plain.headers }, once: sending?.once };
    const { result } = await this.channel.call(call, signal, onMessage);
    const type = result.value["resultType"] ?? "complete";
    // Who calls a tool may be asked something first, and answers with another call.
    if (type === "complete" || (type === "input_required" && method === "tools/call")) return result;
    const text = `${place(this.channel.endpoint)} answered ${method} with a result of type ${JSON.stringify(type)}, not complete`;
    throw new UpstreamError("protocol", text);
  }

  async listen(hooks: ListenHooks, signal: AbortSignal): Promise<never> {
    const opening = deadline(this.clock, LIMITS.loadMs, signal);
    const where = place(this.channel.endpoint);
    const params = { notifications: { toolsListChanged: true } };
    const call = modernCall(++this.lastId, "subscriptions/listen", params, this.client);
    let agreed = false;
    try {
      const response = await this.channel.open(call, opening.signal);
      for await (const message of this.channel.messages(response, Number.POSITIVE_INFINITY, LIMITS.definitionBytes)) {
        if (message.value["id"] === call.id) break;
        if (!agreed) {
          if (!acknowledges(message)) {
            throw new UpstreamError("protocol", `${where} does not agree to say when its tool list changes`);
          }
          agreed = true;
          opening.lift();
          hooks.onOpen();
        } else if (isListChanged(message)) hooks.onChanged();
      }
    } finally {
      opening.lift();
    }
    throw new UpstreamError("connect", `${where} ended its stream of change notices`);
  }

  async close(): Promise<void> {
    // Nothing is held on the server between two requests.
  }
}

function acknowledges({ value }: RpcMessage): boolean {
  if (value["method"] !== "notifications/subscriptions/acknowledged" || !isRecord(value["params"])) return false;
  const honoured = value["params"]["notifications"];
  return isRecord(honoured) && honoured["toolsListChanged"] === true;
}
