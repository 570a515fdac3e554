/** 2026-07-28: no sessions; every request says who asks and what it speaks. */
import type { Clock } from "../catalogue/ports.js";
import { UpstreamError } from "../catalogue/upstream-port.js";
import { LIMITS } from "../domain/limits.js";
import type { Channel } from "./channel.js";
import type { ClientInfo, Connection, ListenHooks } from "./connection.js";
import { isListChanged } from "./connection.js";
import { deadline } from "./deadline.js";
import { place } from "./failures.js";
import type { RpcMessage, RpcResult } from "./messages.js";
import { isRecord } from "./messages.js";

export const MODERN_VERSION = "2026-07-28";
const META = "io.modelcontextprotocol";

/** A request of this era. `Mcp-Name` belongs to calls of a tool, prompt or resource, none of which is made here. */
export function modernCall(id: number, method: string, params: Readonly<Record<string, unknown>>, client: ClientInfo) {
  const meta = {
    [`${META}/protocolVersion`]: MODERN_VERSION,
    [`${META}/clientCapabilities`]: {},
    [`${META}/clientInfo`]: client,
  };
  const headers = { "mcp-protocol-version": MODERN_VERSION, "mcp-method": method };
  return { id, method, params: { ...params, _meta: meta }, headers };
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
  ): Promise<RpcResult> {
    const call = modernCall(++this.lastId, method, params, this.client);
    const { result } = await this.channel.call(call, signal, onMessage);
    const type = result.value["resultType"] ?? "complete";
    if (type === "complete") return result;
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
