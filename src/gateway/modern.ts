/** An SDK server whose requests are answered by a face, so that definitions and results pass through it as they are. */
import { Server, type ServerContext } from "@modelcontextprotocol/server";
import { RegistryError } from "../client/index.js";
import { explainRegistry } from "./away.js";
import type { Face } from "./face.js";
import { SessionGone, type Seat } from "./seat.js";
import { called, type Identity, INSTRUCTIONS, type Params } from "./session-methods.js";
import { type Caller, type Line, METHOD_NOT_FOUND, type Result, RpcError } from "./words.js";

/** How long a client may take the fixed list for good, ms. It changes with the gateway's version alone. */
const LIST_TTL_MS = 3_600_000;

/** The same list for every caller. */
const LIST_CACHE = { ttlMs: LIST_TTL_MS, cacheScope: "public" } as const;

/** For one request, or one connection, of 2026-07-28. */
export function modernServer(face: Face, caller: Caller, { name, version }: Identity): Server {
  const server = new Server(
    { name, title: "Toolcrib", version },
    { capabilities: { tools: { listChanged: true } }, instructions: INSTRUCTIONS.stable, cacheHints: { "server/discover": LIST_CACHE } },
  );
  // The fallback's results are sent as they are, where a handler's would be read and written again.
  server.fallbackRequestHandler = async (request, context) => {
    const params = (request.params ?? {}) as Params;
    const seat = statelessSeat(caller, context.mcpReq.envelope);
    const result = await explained(() => answer(face, seat, request.method, params, context));
    return (result.kind === "object" ? result.value : (JSON.parse(result.text) as object)) as Record<string, unknown>;
  };
  return server;
}

async function answer(face: Face, seat: Seat, method: string, params: Params, context: ServerContext): Promise<Result> {
  if (method === "tools/list") {
    const list = await face.list(seat);
    if (params["cursor"] !== undefined) throw new RpcError(-32602, "Invalid cursor: the list has one page");
    return { kind: "object", value: { ...(JSON.parse(list.kind === "text" ? list.text : "{}") as object), ...LIST_CACHE } };
  }
  if (method !== "tools/call") throw new RpcError(METHOD_NOT_FOUND, `Method not found: ${method}`);
  return called(face, seat, params, lineOf(context), roundTrip(context));
}

/** What a client answers to a result that asked it for input. */
function roundTrip({ mcpReq }: ServerContext): Readonly<Record<string, unknown>> | undefined {
  const state = mcpReq.requestState();
  if (mcpReq.inputResponses === undefined && state === undefined) return undefined;
  return { ...(mcpReq.inputResponses && { inputResponses: mcpReq.inputResponses }), ...(state !== undefined && { requestState: state }) };
}

export function lineOf({ mcpReq }: ServerContext): Line {
  return {
    signal: mcpReq.signal,
    // A client that went away hears nothing more; that is no mistake of the call.
    notify: (method, params) => void mcpReq.notify({ method, params } as Parameters<typeof mcpReq.notify>[0]).catch(() => undefined),
  };
}

/** 2026-07-28 has no sessions: whoever needs a toolset names it. */
function statelessSeat(caller: Caller, envelope: unknown): Seat {
  const capabilities = (envelope as Readonly<Record<string, unknown>> | undefined)?.["io.modelcontextprotocol/clientCapabilities"];
  const none = (): never => {
    throw new SessionGone();
  };
  return { caller, clientCapabilities: (capabilities as Seat["clientCapabilities"]) ?? {}, read: async () => none(), change: async () => none() };
}

/** The SDK sends message and code of what is thrown; a registry's own words are for its clients. */
export async function explained<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof RegistryError) throw new RpcError(-32603, explainRegistry(error));
    throw error;
  }
}
