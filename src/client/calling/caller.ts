import { splitToolId } from "../../domain/ids.js";
import { type Instance, Transport } from "../../gen/toolcrib/v1/server_pb.js";
import { Availability } from "../../gen/toolcrib/v1/stub_pb.js";
import { Remembered } from "../loader/remembered.js";
import { RegistryError, registryError } from "../registry-error.js";
import type { Timers } from "../timers.js";
import type { McpDialer, McpEndpoint, McpSession } from "./mcp.js";
import { answered, type CallOutcome, errorKindOf, type ErrorKindName, type McpResult, wasNotSent } from "./outcome.js";

export interface CallToolOptions {
  /** Until the call is given up, ms; default 60,000. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface CallerParts {
  /** The instances of a server, the newest last. Rejects with RegistryError. */
  readonly instancesOf: (serverId: string) => Promise<readonly Instance[]>;
  readonly dial: McpDialer;
  readonly timers: Timers;
}

const CALL_MS = 60_000;

/**
 * Calls tools at the servers that offer them, over connections that stay open. A call is sent once, and again only where it
 * certainly was not carried out.
 */
export class ToolCaller {
  readonly #parts: CallerParts;
  /** By URL and transport. */
  readonly #sessions = new Map<string, Promise<McpSession>>();
  /** For calls while the registry is away. */
  readonly #lastKnown = new Remembered<readonly Instance[]>(1_000);

  constructor(parts: CallerParts) {
    this.#parts = parts;
  }

  /** Never rejects: what went wrong is the outcome. */
  async call(toolId: string, args: Record<string, unknown>, options: CallToolOptions = {}): Promise<CallOutcome> {
    const { timers } = this.#parts;
    const begun = timers.now();
    const failed = (error: unknown, errorKind: ErrorKindName): CallOutcome => {
      const known = error instanceof Error ? error : new Error(String(error));
      return { kind: "failed", toolId, success: false, error: known, errorKind, latencyMs: timers.now() - begun };
    };
    const ids = splitToolId(toolId);
    if (!ids) return failed(new TypeError(`"${toolId}" is no tool_id: it has the form server_id/tool_name`), "INVALID_ARGUMENTS");
    for (let attempt = 1; ; attempt++) {
      let connected: Connected;
      try {
        connected = await this.#connect(ids.serverId);
      } catch (error) {
        const kind = errorKindOf(error);
        return failed(error, kind === "UNAUTHORIZED" ? kind : "UNREACHABLE");
      }
      try {
        const result = await this.#send(connected, { name: ids.toolName, arguments: args }, options);
        return answered(toolId, result, timers.now() - begun);
      } catch (error) {
        const kind = options.signal?.aborted ? "CANCELLED" : errorKindOf(error);
        if (kind === "UNREACHABLE") this.#forget(connected);
        if (kind !== "UNREACHABLE" || attempt > 1 || !wasNotSent(error)) return failed(error, kind);
      }
    }
  }

  async close(): Promise<void> {
    const sessions = [...this.#sessions.values()];
    this.#sessions.clear();
    // One that never opened, or is broken already, has nothing left to close.
    await Promise.allSettled(sessions.map(async (session) => (await session).close()));
  }

  async #send({ session }: Connected, request: Parameters<McpSession["callTool"]>[0], options: CallToolOptions): Promise<McpResult> {
    const { timeoutMs = CALL_MS, signal } = options;
    signal?.throwIfAborted();
    return session.callTool(request, { timeoutMs, ...(signal && { signal }) });
  }

  /** To the first endpoint that answers: available instances before others, the newest first. */
  async #connect(serverId: string): Promise<Connected> {
    const endpoints = endpointsOf(serverId, await this.#instances(serverId));
    if (endpoints.length === 0) {
      throw new Error(`server ${serverId} has no endpoint: its tools can be found, and be called only through the program that registered it`);
    }
    const failures: Error[] = [];
    for (const endpoint of endpoints) {
      const key = `${endpoint.transport} ${endpoint.url}`;
      const session = this.#sessions.get(key) ?? this.#open(key, endpoint);
      try {
        return { key, session: await session };
      } catch (error) {
        failures.push(error instanceof Error ? error : new Error(String(error)));
      }
    }
    const [first] = failures;
    if (failures.length === 1 && first) throw first;
    throw new AggregateError(failures, `none of the ${failures.length} instances of server ${serverId} can be reached: ${first?.message}`);
  }

  #open(key: string, endpoint: McpEndpoint): Promise<McpSession> {
    const session = this.#parts.dial(endpoint);
    this.#sessions.set(key, session);
    session.catch(() => {
      if (this.#sessions.get(key) === session) this.#sessions.delete(key);
    });
    return session;
  }

  /** The next call connects anew. */
  #forget({ key, session }: Connected): void {
    this.#sessions.delete(key);
    session.close().catch(() => undefined); // It is broken already; the outcome says so.
  }

  async #instances(serverId: string): Promise<readonly Instance[]> {
    try {
      const instances = await this.#parts.instancesOf(serverId);
      this.#lastKnown.set(serverId, instances);
      return instances;
    } catch (error) {
      const known = registryError(error);
      const last = this.#lastKnown.get(serverId);
      if (last && known.transient) return last;
      throw known.code === "NOT_FOUND" ? new RegistryError(`server ${serverId} is not registered (any more)`, { code: "NOT_FOUND", cause: known }) : known;
    }
  }
}

interface Connected {
  readonly key: string;
  readonly session: McpSession;
}

function endpointsOf(serverId: string, instances: readonly Instance[]): McpEndpoint[] {
  const dialled = instances.filter((i) => i.endpoint !== "").reverse();
  const available = (i: Instance): boolean => i.availability !== Availability.UNAVAILABLE;
  return [...dialled.filter(available), ...dialled.filter((i) => !available(i))].map(({ endpoint, transport }) => ({
    serverId,
    url: endpoint,
    transport: transport === Transport.HTTP_SSE ? "sse" : "streamable-http",
  }));
}
