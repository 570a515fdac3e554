/** What the listeners tell of their calls: metrics, and one log line for each refusal. */
import type { Logger } from "../catalogue/ports.js";
import type { Fault } from "../domain/fault.js";
import { CODE_OF, type WireError, refusalOf, wireError } from "./errors.js";

interface Counting<L extends string> {
  inc(labels: Readonly<Record<L, string>>, value?: number): void;
}

/** Counts that are looked up once and then changed in place: a call has no time for more. */
interface Cells<L extends string> {
  cell(labels: Readonly<Record<L, string>>): { value: number };
}

/** The metrics that the listeners feed. Those of the ops room fit. */
export interface RpcMetrics {
  readonly rpcRequests: Cells<"method" | "code">;
  /** Seconds, by method. */
  readonly rpcDuration: { of(method: string): { observe(seconds: number): void } };
  readonly rpcInFlight: Cells<"method">;
  readonly watchMessages: { inc(value?: number): void };
  readonly watchBytes: { inc(value?: number): void };
  readonly watchEnded: Counting<"reason">;
}

export interface Deps {
  readonly log: Logger;
  readonly metrics: RpcMetrics;
  /** Why calls of this path are refused at the moment, before their message is read; none are if not given. */
  readonly refusal?: (path: string) => Fault | undefined;
}

export const UNKNOWN_METHOD = "unknown";

const NAME_OF = new Map<number, string>([
  ...Object.entries(CODE_OF).map(([name, code]) => [code, name] as const),
  [0, "OK"],
  [1, "CANCELLED"],
]);

/** The name of a google.rpc.Code. */
export function codeName(code: number): string {
  return NAME_OF.get(code) ?? "UNKNOWN";
}

/** Logs why a call was refused, and says it for the caller. */
export function logRefusal(log: Logger, method: string, peer: string, thrown: unknown): WireError {
  const { fault, incident } = refusalOf(thrown);
  const fields = { method, peer, code: fault.status, reason: fault.reason };
  if (incident !== undefined) log.error({ ...fields, incident, err: fault.cause }, "a call failed by a bug");
  else {
    const cause = fault.cause === undefined ? {} : { err: fault.cause };
    const violations = fault.violations.length > 0 ? { violations: fault.violations.slice(0, 10) } : {};
    log.info({ ...fields, ...violations, ...cause, detail: fault.message.slice(0, 500) }, "a call was refused");
  }
  return wireError(fault);
}
