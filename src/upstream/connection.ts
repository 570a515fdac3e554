/** One MCP server, ready to be asked, whichever era it speaks. */
import type { Transport } from "../domain/server.js";
import type { OnMessage } from "./channel.js";
import type { Once } from "./egress.js";
import type { RpcMessage, RpcResult } from "./messages.js";

export interface Connection {
  readonly era: "modern" | "legacy";
  readonly transport: Transport;
  readonly protocolVersion: string;
  /** It declares that it has tools. */
  readonly hasTools: boolean;
  /** It says when its tool list changes. */
  readonly listChanged: boolean;
  /** Throws UpstreamError. */
  call(
    method: string,
    params: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
    onMessage: OnMessage,
    sending?: Sending,
  ): Promise<RpcResult>;
  /**
   * Holds the stream of change notices. `onOpen` is called when the server has agreed, `onChanged` for each notice.
   * Never resolves: throws UpstreamError when the stream cannot be opened, ends or `signal` aborts.
   */
  listen(hooks: ListenHooks, signal: AbortSignal): Promise<never>;
  /** Best effort: tells the server that nobody will ask again. Never throws. */
  close(): Promise<void>;
}

/** How a call is sent that does something. When its `signal` aborts, the server is told to stop. */
export interface Sending {
  readonly once: Once;
  /** Besides those of the era. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface ListenHooks {
  onOpen(): void;
  onChanged(): void;
}

/** Who we are, as servers are told. */
export interface ClientInfo {
  readonly name: string;
  readonly version: string;
}

export function isListChanged(message: RpcMessage): boolean {
  return message.value["method"] === "notifications/tools/list_changed";
}
