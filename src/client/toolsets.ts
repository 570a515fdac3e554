/** Toolsets from a client's side, with plain values: which tools an agent works with now, kept by the registry under a handle. */
import { durationFromMs, durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Toolset as WireToolset } from "../gen/toolcrib/v1/toolset_service_pb.js";
import type { CallOptions, RegistryConnection } from "./connection.js";
import { RegistryError } from "./registry-error.js";

export interface Toolset {
  /** Names it on every replica. To be kept like a password where callers are not identified. */
  readonly handle: string;
  readonly toolIds: readonly string[];
  readonly facts: Readonly<Record<string, string>>;
  /** Changes with tools, facts and idle time; not with a mere use. */
  readonly etag: string;
  readonly idleMs: number;
  /** When it goes if nobody uses it from now on, ms since the epoch. */
  readonly expiresAtMs: number;
}

export interface NewToolset {
  /** At most 512. */
  readonly toolIds?: readonly string[];
  /** At most 32, together 16 KiB. */
  readonly facts?: Readonly<Record<string, string>>;
  /** 1 s to 7 days; default 1 h. */
  readonly idleMs?: number;
}

/** What changes; the rest stays. */
export interface ToolsetChange extends Omit<NewToolset, "facts"> {
  readonly setFacts?: Readonly<Record<string, string>>;
  readonly removeFacts?: readonly string[];
}

export interface GetOptions extends CallOptions {
  /** Whether this counts as a use, so that its idle time begins anew; default true. */
  readonly touch?: boolean;
}

export interface UpdateOptions extends CallOptions {
  /** Only while this is its etag; without it, whatever is there is changed. */
  readonly etag?: string;
}

export interface ToolsetsOptions {
  readonly registry: Pick<RegistryConnection, "createToolset" | "getToolset" | "updateToolset" | "deleteToolset">;
  /** Default `default`. */
  readonly namespace?: string;
}

/** Toolsets of this caller in one namespace. All reject with RegistryError. */
export interface Toolsets {
  create(toolset?: NewToolset, options?: CallOptions): Promise<Toolset>;
  /** Undefined where there is none, or none of this caller's. */
  get(handle: string, options?: GetOptions): Promise<Toolset | undefined>;
  /** Undefined as above. Rejects with ETAG_MISMATCH. */
  update(handle: string, change: ToolsetChange, options?: UpdateOptions): Promise<Toolset | undefined>;
  /** Makes of the toolset what `change` says of its newest state, again while others are faster. Undefined as above. */
  change(handle: string, change: (now: Toolset) => ToolsetChange, options?: CallOptions): Promise<Toolset | undefined>;
  /** Answers whether it was there. */
  delete(handle: string, options?: UpdateOptions): Promise<boolean>;
}

/** Each try that fails is a change of somebody else's. */
const TRIES = 20;

export function openToolsets({ registry, namespace = "" }: ToolsetsOptions): Toolsets {
  const toolsets: Toolsets = {
    async create({ toolIds = [], facts = {}, idleMs } = {}, options) {
      const request = { namespace, toolIds: [...toolIds], facts: { ...facts }, ...idleTtl(idleMs) };
      return shown((await registry.createToolset(request, options)).toolset);
    },
    get: (handle, { touch = true, ...options } = {}) =>
      orAbsent(async () => shown((await registry.getToolset({ namespace, handle, touch }, options)).toolset)),
    update: (handle, { toolIds, setFacts = {}, removeFacts = [], idleMs }, { etag = "", ...options } = {}) =>
      orAbsent(async () => {
        const changed = { ...(toolIds && { tools: { toolIds: [...toolIds] } }), setFacts: { ...setFacts }, removeFacts: [...removeFacts] };
        return shown((await registry.updateToolset({ namespace, handle, etag, ...changed, ...idleTtl(idleMs) }, options)).toolset);
      }),
    async change(handle, change, options) {
      for (let attempt = 1; ; attempt++) {
        const now = await toolsets.get(handle, { ...options, touch: false });
        if (!now) return undefined;
        try {
          return await toolsets.update(handle, change(now), { ...options, etag: now.etag });
        } catch (error) {
          if (!(error instanceof RegistryError) || error.reason !== "ETAG_MISMATCH" || attempt >= TRIES) throw error;
        }
      }
    },
    async delete(handle, { etag = "", ...options } = {}) {
      return (await registry.deleteToolset({ namespace, handle, etag }, options)).deleted;
    },
  };
  return toolsets;
}

async function orAbsent<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof RegistryError && error.reason === "NOT_FOUND") return undefined;
    throw error;
  }
}

function idleTtl(idleMs: number | undefined) {
  return idleMs === undefined ? {} : { idleTtl: durationFromMs(idleMs) };
}

function shown(toolset: WireToolset | undefined): Toolset {
  if (!toolset) throw new RegistryError("the registry answered without a toolset", { code: "INTERNAL" });
  const { handle, toolIds, facts, etag } = toolset;
  const idleMs = toolset.idleTtl ? durationMs(toolset.idleTtl) : 0;
  return { handle, toolIds, facts, etag, idleMs, expiresAtMs: toolset.expireTime ? timestampMs(toolset.expireTime) : 0 };
}
