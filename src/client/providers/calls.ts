import { LIMITS } from "../../domain/limits.js";
import type { ExportedTool } from "./export-tool.js";
import type { JsonObject } from "./json.js";
import { depthOf, isObject } from "./json.js";
import { Unreadable } from "./plan.js";

/** A model's call, in the registry's terms. */
export interface ToolCall {
  readonly toolId: string;
  /** The name that the provider sees. */
  readonly name: string;
  /** The provider's id of the call; empty where it has none. */
  readonly callId: string;
  /** What the tool takes. */
  readonly arguments: JsonObject;
}

export type CallProblemReason =
  /** No exported tool has that name. */
  | "UNKNOWN_TOOL"
  /** The arguments are not JSON, or not what was asked for as text. */
  | "MALFORMED_ARGUMENTS"
  /** They are JSON, but no object. */
  | "NOT_AN_OBJECT"
  /** They are larger, or nest deeper, than anything the registry takes. */
  | "TOO_LARGE"
  /** What was given is no tool call of this provider. */
  | "NOT_A_CALL";

export interface CallProblem {
  readonly reason: CallProblemReason;
  /** For the model and for people: what is wrong and what to do. */
  readonly message: string;
  /** As the model wrote it; may be empty. */
  readonly name: string;
  readonly callId: string;
  /** Where the name was known. */
  readonly toolId?: string;
  /** Exported names that are most like an unknown one, best first. */
  readonly nearest: readonly string[];
}

export type CallReading =
  | { readonly ok: true; readonly call: ToolCall }
  | { readonly ok: false; readonly problem: CallProblem };

/** What a provider's call comes down to. `input` is JSON text, or what it parses to. */
export interface RawCall {
  readonly name: unknown;
  readonly callId: unknown;
  readonly input: unknown;
}

/** Offered in place of an unknown name. */
const NEAREST = 3;

/** Maps a call back: name, keys, forced nulls. Never throws, whatever the model sent. */
export function readCall(raw: RawCall, byName: ReadonlyMap<string, ExportedTool>): CallReading {
  const callId = typeof raw.callId === "string" ? raw.callId : "";
  if (typeof raw.name !== "string") return notACall("it has no name", callId);
  const name = raw.name;
  const tool = byName.get(name);
  const fail = (reason: CallProblemReason, message: string, nearest: readonly string[] = []): CallReading => ({
    ok: false,
    problem: { reason, message, name, callId, nearest, ...(tool ? { toolId: tool.toolId } : {}) },
  });
  if (!tool) {
    const nearest = nearestNames(name, byName.keys());
    const hint = nearest.length > 0 ? `; the nearest are ${nearest.join(", ")}` : "";
    return fail("UNKNOWN_TOOL", `there is no tool ${JSON.stringify(name.slice(0, 128))} here${hint}`, nearest);
  }
  const read = readArguments(raw.input);
  if (!("value" in read)) return fail(read.reason, `the arguments of ${name} ${read.message}`);
  try {
    const args = tool.translator.toTool(read.value);
    return { ok: true, call: { toolId: tool.toolId, name, callId, arguments: args as JsonObject } };
  } catch (error) {
    if (error instanceof Unreadable)
      return fail("MALFORMED_ARGUMENTS", `the argument ${error.at} of ${name} ${error.message}`);
    throw error;
  }
}

export function notACall(why: string, callId = ""): CallReading {
  return {
    ok: false,
    problem: { reason: "NOT_A_CALL", message: `this is no tool call: ${why}`, name: "", callId, nearest: [] },
  };
}

type Arguments =
  | { readonly value: JsonObject }
  | { readonly reason: CallProblemReason; readonly message: string };

function readArguments(input: unknown): Arguments {
  // Models call a tool without parameters with an empty text, or with nothing at all.
  if (input === undefined || (typeof input === "string" && input.trim() === "")) return { value: {} };
  if (typeof input === "string" && input.length > LIMITS.messageBytes)
    return { reason: "TOO_LARGE", message: `have ${input.length} characters, the limit is ${LIMITS.messageBytes}` };
  let value: unknown = input;
  if (typeof input === "string") {
    try {
      value = JSON.parse(input);
    } catch (error) {
      return {
        reason: "MALFORMED_ARGUMENTS",
        message: `are not valid JSON (${error instanceof Error ? error.message.slice(0, 200) : "unknown"}): send one JSON object`,
      };
    }
  }
  if (!isObject(value)) return { reason: "NOT_AN_OBJECT", message: "must be one JSON object with the parameters as keys" };
  if (depthOf(value, LIMITS.schemaDepth) > LIMITS.schemaDepth)
    return { reason: "TOO_LARGE", message: `nest deeper than ${LIMITS.schemaDepth} levels` };
  return { value };
}

/** By the pairs of letters that two names share: cheap, and good at parts left out or put in another order. */
function nearestNames(name: string, known: Iterable<string>): string[] {
  const wanted = pairsOf(name.slice(0, 128));
  return [...known]
    .map((other) => ({ other, score: likeness(wanted, pairsOf(other)) }))
    .filter(({ score }) => score >= 0.4)
    .sort((a, b) => b.score - a.score || (a.other < b.other ? -1 : 1))
    .slice(0, NEAREST)
    .map(({ other }) => other);
}

function pairsOf(text: string): Set<string> {
  const plain = text.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
  return new Set(Array.from({ length: Math.max(0, plain.length - 1) }, (_, i) => plain.slice(i, i + 2)));
}

function likeness(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  const shared = [...a].filter((pair) => b.has(pair)).length;
  return shared === 0 ? 0 : (2 * shared) / (a.size + b.size);
}

