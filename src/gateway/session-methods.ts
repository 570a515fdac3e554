/** What a session of the eras before 2026-07-28 can ask for, whatever carries it. */
import { RegistryError } from "../client/index.js";
import { explainRegistry, isAway, isUnknownCaller } from "./away.js";
import type { CallParams } from "./calling.js";
import type { Face } from "./face.js";
import type { Seat } from "./seat.js";
import { FACTS, INVALID_PARAMS, type Line, METHOD_NOT_FOUND, type Mode, type Result, RpcError, toolError } from "./words.js";

/** The newest first. */
export const SESSION_REVISIONS: readonly string[] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

export type Params = Readonly<Record<string, unknown>>;

export interface Identity {
  readonly name: string;
  readonly version: string;
}

const LEVELS: readonly unknown[] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/** The result of `initialize`. */
export function initializeResult(revision: string, mode: Mode, { name, version }: Identity): object {
  return {
    protocolVersion: revision,
    capabilities: { tools: { listChanged: true }, logging: {} },
    serverInfo: { name, title: "Toolcrib", version },
    instructions: INSTRUCTIONS[mode],
  };
}

export const INSTRUCTIONS: Readonly<Record<Mode, string>> = {
  dynamic: "Call find_tools with what you want to do: the tools for it appear in your list of tools. Call it again for the next task.",
  stable: "Call find_tools with what you want to do, describe_tools for the parameters of what it found, then call_tool.",
};

/** The revision that is spoken where a client asks for one: the same if it can be, else the newest of its era. */
export function negotiated(asked: unknown): string {
  return SESSION_REVISIONS.find((r) => r === asked) ?? (SESSION_REVISIONS[0] as string);
}

/** The mode that a session gets. */
export function modeOf(configured: Mode | "auto", asked: string | null, clientName: unknown, stableClients: readonly string[]): Mode {
  if (asked === "dynamic" || asked === "stable") return asked;
  if (configured !== "auto") return configured;
  return typeof clientName === "string" && stableClients.includes(clientName.toLowerCase()) ? "stable" : "dynamic";
}

/** Facts of a new session. Only what fits is kept of what a client says of itself. */
export function sessionFacts(revision: string, mode: Mode, params: Params): Record<string, string> {
  return {
    [FACTS.revision]: revision,
    [FACTS.mode]: mode,
    [FACTS.capabilities]: shortJson(params["capabilities"]),
    [FACTS.client]: shortJson(params["clientInfo"]),
  };
}

const FACT_LENGTH = 4_000;

function shortJson(value: unknown): string {
  const text = JSON.stringify(value ?? {});
  return text.length > FACT_LENGTH ? "{}" : text;
}

/** The result of a request. Rejects with RpcError, SessionGone, and RegistryError for a caller that the registry does not know. */
export async function answerSession(face: Face, seat: Seat, method: string, params: Params, line: Line): Promise<Result> {
  switch (method) {
    case "ping":
      return { kind: "object", value: {} };
    case "tools/list":
      if (params["cursor"] !== undefined) throw new RpcError(INVALID_PARAMS, "Invalid cursor: the list has one page");
      return listed(() => face.list(seat));
    case "tools/call":
      return called(face, seat, params, line);
    case "logging/setLevel":
      return setLevel(seat, params["level"]);
    default:
      throw new RpcError(METHOD_NOT_FOUND, `Method not found: ${method}`);
  }
}

/** As `tools/call` of every era. */
export async function called(face: Face, seat: Seat, params: Params, line: Line, more?: CallParams["more"]): Promise<Result> {
  const { name, arguments: args, _meta: meta } = params;
  if (typeof name !== "string") throw new RpcError(INVALID_PARAMS, "Invalid params: name must be a text");
  if (meta !== undefined && (typeof meta !== "object" || meta === null)) throw new RpcError(INVALID_PARAMS, "Invalid params: _meta must be an object");
  try {
    return await face.call(seat, name, { args, meta: meta as CallParams["meta"], more }, line);
  } catch (error) {
    if (!(error instanceof RegistryError) || isUnknownCaller(error)) throw error;
    return toolError(explainRegistry(error));
  }
}

async function listed(list: () => Promise<Result>): Promise<Result> {
  try {
    return await list();
  } catch (error) {
    if (isAway(error)) throw new RpcError(-32603, explainRegistry(error));
    throw error;
  }
}

async function setLevel(seat: Seat, level: unknown): Promise<Result> {
  if (!LEVELS.includes(level)) throw new RpcError(INVALID_PARAMS, `Invalid params: level must be one of ${LEVELS.join(", ")}`);
  await seat.change(() => ({ setFacts: { [FACTS.log]: String(level) } }));
  return { kind: "object", value: {} };
}
