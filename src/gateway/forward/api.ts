/**
 * What the gateway's face knows of forwarding: a call goes in, and exactly one answer comes out, whatever happens on the way.
 * `createForwarder(options)` of `forwarder.ts` makes the one Forwarder of a gateway process; it is safe to use from all sessions at once.
 */
import type { RegistryConnection } from "../../client/connection.js";
import type { EgressPolicy } from "../../domain/admission/egress.js";
import type { Clock, Credentials, Logger, Resolve } from "../../upstream/caller.js";

type Json = Readonly<Record<string, unknown>>;

/** One `tools/call`. Whether the caller may see the tool was decided before. */
export interface ForwardCall {
  readonly namespace: string;
  /** `server_id/tool_name`. */
  readonly toolId: string;
  /** What the caller gave as arguments; undefined sends none. */
  readonly args?: unknown;
  /**
   * The caller's `_meta`, passed on, but for what the two ends of a connection say to each other
   * (`io.modelcontextprotocol/protocolVersion`, `/clientCapabilities`, `/clientInfo`). A `progressToken` in it asks for progress.
   */
  readonly meta?: Json | undefined;
  /** Further members of `params` for a server of 2026-07-28: `inputResponses`, `requestState`. Servers of older eras are not sent them. */
  readonly more?: Json | undefined;
  /**
   * Capabilities of the caller, if it can answer a result with `resultType: "input_required"`: such a result passes only where
   * they are given. Servers of older eras are told of none.
   */
  readonly clientCapabilities?: Json | undefined;
  /** The caller gave up: the server is told, and the answer is `refused` with reason `cancelled`. */
  readonly signal?: AbortSignal | undefined;
  /** For everything together, waiting for a place included; `callMs` of the options if unsaid. */
  readonly deadlineMs?: number | undefined;
  /** `params` of each `notifications/progress`, with the caller's own token in it. Without it the server is asked for none. */
  readonly onProgress?: ((params: Json) => void) | undefined;
  /** `params` of each `notifications/message` that belongs to this call. */
  readonly onLog?: ((params: Json) => void) | undefined;
  /** The caller's own credential for this server; shown where `callerCredentials` says so, and nowhere else. */
  readonly credential?: CallerCredential | undefined;
  /**
   * Calls with the same text share the sessions of older servers and stay with one instance; a principal, or a toolset's handle.
   * Callers that must not meet in one session of a server need different ones. All calls without one share one.
   */
  readonly session?: string | undefined;
}

/** The whole value of the header that `CallerCredentialRule.header` names, such as `Bearer …`. */
export interface CallerCredential {
  readonly value: string;
}

export type ForwardAnswer =
  /** The server's result, untouched. A result with `isError` is one, too. */
  | {
      readonly kind: "result";
      /** As JSON.parse reads it: numbers beyond a double are rounded. */
      readonly value: Json;
      /** The very text of the result object. */
      readonly text: string;
      readonly stale: boolean;
    }
  /** The server's JSON-RPC error, untouched. `data` is undefined where there was none. */
  | {
      readonly kind: "rpc-error";
      readonly code: number;
      readonly message: string;
      readonly data: unknown;
      readonly stale: boolean;
    }
  /** There is no answer of the server. `text` says why, and what to do, and is fit for the caller. */
  | {
      readonly kind: "refused";
      readonly reason: RefusalReason;
      readonly text: string;
      /** `may-have-run`: the server had the call, and nobody knows what became of it. It was not repeated. */
      readonly ran: "not-run" | "may-have-run";
      /** Not before this many milliseconds, where that is known. */
      readonly retryAfterMs?: number | undefined;
      /** The server's address comes from what was last known of the registry, which is away. */
      readonly stale: boolean;
    };

export type RefusalReason =
  /** The registry has no such server, or the id is no tool_id. */
  | "unknown-server"
  /** Nothing is known of the server, and the registry cannot be asked now. */
  | "registry-away"
  /** The registry does not let the gateway read the server. */
  | "registry-refused"
  /** It was registered without an endpoint, so there is nothing to call. */
  | "no-endpoint"
  /** An operator took the server out. */
  | "isolated"
  /** The registry says that the server is down. */
  | "unavailable"
  /** It failed here several times in a row; it is left alone for a while. */
  | "breaker-open"
  /** The egress policy does not allow its address. */
  | "egress"
  /** A credential is missing here, or may not be shown to this server. */
  | "credential"
  /** The server wants a credential, or another one (HTTP 401, 403). */
  | "auth"
  /** The server asks to be left alone (HTTP 429). */
  | "throttled"
  /** Too many calls of this server are under way and waiting. */
  | "busy"
  /** The arguments do not fit the definition. */
  | "arguments"
  /** The caller gave up. */
  | "cancelled"
  /** The deadline passed. */
  | "deadline"
  /** It cannot be reached, or does not take the call. */
  | "unreachable"
  /** The connection broke after the call was sent. */
  | "lost"
  /** The arguments, or the answer, are larger than the limit. */
  | "too-large"
  /** It answered with something that is no MCP answer. */
  | "protocol"
  /** The gateway is shutting down. */
  | "closing";

/** What became of one call, for ReportOutcome; told once for every call, also for one that was refused. */
export interface ForwardOutcome {
  readonly namespace: string;
  readonly toolId: string;
  /** The server answered with a result that is no error. */
  readonly success: boolean;
  /** Empty on success; `tool-error` (a result with isError), `rpc-error`, or a RefusalReason. */
  readonly errorKind: "" | "tool-error" | "rpc-error" | RefusalReason;
  /** From the call to its answer, waiting included. */
  readonly latencyMs: number;
  /** Whether the server had the call: otherwise the outcome says nothing about the tool. */
  readonly reached: boolean;
}

/** A server that is shown its callers' own credentials, instead of the one that it is registered with. */
export interface CallerCredentialRule {
  readonly namespace: string;
  readonly serverId: string;
  /** Host names that may see it, as URLs spell them; `.example.com` stands for every name below it. */
  readonly hosts: readonly string[];
  /** Lower case; `authorization` if unsaid. */
  readonly header?: string | undefined;
}

/** A definition, for the check of arguments. */
export interface CheckedDefinition {
  /** `sha256:…` of the whole definition. */
  readonly digest: string;
  /** UTF-8 JSON of the tool object. */
  readonly bytes: Uint8Array;
  /** `stale`: arguments are not refused on its word. */
  readonly freshness: "current" | "stale";
}

export interface ForwarderOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** The gateway's own version, as servers are told. */
  readonly version: string;
  /** What may be dialled. */
  readonly policy: EgressPolicy;
  /** The system's resolver if unsaid. */
  readonly resolve?: Resolve | undefined;
  /** Where servers are looked up. */
  readonly registry: Pick<RegistryConnection, "getServer">;
  /** The tool's definition; undefined: none is at hand, and the arguments are not checked. Must not take long, and must not reject. */
  readonly definition?:
    | ((namespace: string, toolId: string, signal: AbortSignal) => Promise<CheckedDefinition | undefined>)
    | undefined;
  /** The operator's credentials, by the names that servers are registered with. Closed with the forwarder. */
  readonly credentials?: Credentials | undefined;
  readonly callerCredentials?: readonly CallerCredentialRule[] | undefined;
  /** Must not throw. */
  readonly report?: ((outcome: ForwardOutcome) => void) | undefined;
  /** Deadline of a call that names none; 60,000 if unsaid. */
  readonly callMs?: number | undefined;
  /** Calls of one server under way at once; 32 if unsaid. */
  readonly callsPerServer?: number | undefined;
  /** Calls that wait for one server; 128 if unsaid. */
  readonly waitingPerServer?: number | undefined;
  /** 0 ≤ random < 1; Math.random if unsaid. */
  readonly random?: (() => number) | undefined;
}

export interface Forwarder {
  /** Never rejects, and always answers by its deadline. */
  call(call: ForwardCall): Promise<ForwardAnswer>;
  /** Something of this server changed: it is looked up anew before the next call. */
  changed(namespace: string, serverId: string): void;
  /** Ends calls under way (`closing`), sessions and connections. */
  close(): Promise<void>;
}
