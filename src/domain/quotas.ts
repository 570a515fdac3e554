/** What one namespace and one principal may have at once, so that none of them takes it from the others (P9). */
import { Fault } from "./fault.js";

export interface Quotas {
  /** Servers of a namespace. */
  readonly servers: number;
  /** Tools of a namespace. */
  readonly tools: number;
  /** Watches of an identified principal, on one replica. Those that say nothing of themselves share only the replica's limit. */
  readonly watchersPerPrincipal: number;
  /** Registers per second of an identified principal, on one replica. */
  readonly registersPerSecond: number;
}

export const DEFAULT_QUOTAS: Quotas = Object.freeze({
  servers: 10_000,
  tools: 200_000,
  watchersPerPrincipal: 1_000,
  registersPerSecond: 50,
});

/** Outcomes that one caller may report per second, on one replica. */
export const DEFAULT_REPORT_RATE = 100;

/** How many toolsets may live at once, counted in the store. */
export interface ToolsetQuotas {
  /** Of an identified principal in one namespace. Those that say nothing of themselves share only the namespace's. */
  readonly perPrincipal: number;
  readonly perNamespace: number;
}

export const DEFAULT_TOOLSET_QUOTAS: ToolsetQuotas = Object.freeze({ perPrincipal: 20_000, perNamespace: 50_000 });

/** Of an identified principal, or of a whole namespace where `principal` is left out. */
export function toolsetsFull(limit: number, namespace: string, principal?: string): Fault {
  const flag = principal === undefined ? "--max-toolsets" : "--max-toolsets-per-principal";
  const message =
    `${principal ?? "all callers together"} may have ${limit} toolsets in namespace ${namespace}, and as many are counted: delete those ` +
    `that are not used, give them a shorter idle time, or ask the registry's operator for more (${flag})`;
  const quota = principal === undefined ? "toolsets" : "toolsets per principal";
  return quotaExceeded(quota, limit, limit + 1, message, FULL_RETRY_MS, { namespace });
}

/** A full namespace has room again when somebody has left it, which is not worth asking about more often. */
const FULL_RETRY_MS = 30_000;

interface Holding {
  readonly servers: number;
  readonly tools: number;
}

/** Undefined if a namespace may become this. What does not grow is never refused, so a lowered limit takes nothing away. */
export function namespaceFull(quotas: Quotas, namespace: string, before: Holding, after: Holding): Fault | undefined {
  for (const what of ["servers", "tools"] as const) {
    if (after[what] <= quotas[what] || after[what] <= before[what]) continue;
    const message =
      `namespace ${namespace} may hold ${quotas[what]} ${what}, and this would make it ${after[what]}: deregister what is not used, ` +
      `use another namespace, or ask the registry's operator for more (--max-${what})`;
    return quotaExceeded(what, quotas[what], after[what], message, FULL_RETRY_MS, { namespace });
  }
  return undefined;
}

export function quotaExceeded(
  quota: string,
  limit: number,
  actual: number,
  message: string,
  retryAfterMs?: number,
  more: Readonly<Record<string, string>> = {},
): Fault {
  return new Fault("QUOTA_EXCEEDED", message, {
    metadata: { quota, limit: String(limit), actual: String(actual), ...more },
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}
