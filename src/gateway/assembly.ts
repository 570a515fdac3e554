/** The parts of a gateway that HTTP and stdio share: the followed catalogue, the faces, and what they ask. */
import { createFollower, type ModelOptions, RegistryConnection, Selector, type Target } from "../client/index.js";
import type { EgressPolicy } from "../domain/admission/egress.js";
import { DEFAULT_NAMESPACE } from "../domain/ids.js";
import type { Clock, Credentials } from "../upstream/caller.js";
import { Calling } from "./calling.js";
import { Catalogue } from "./catalogue.js";
import { Definitions, isDefinition } from "./definitions.js";
import { DynamicFace } from "./dynamic.js";
import type { Face } from "./face.js";
import type { CallerCredentialRule } from "./forward/api.js";
import { createForwarder } from "./forward/forwarder.js";
import { ModuleMap } from "./module-map.js";
import { type GatewayObserver, NO_OBSERVER } from "./observer.js";
import { Outcomes } from "./outcomes.js";
import type { Era } from "./presented.js";
import { RegistryLink } from "./registry.js";
import { StableFace } from "./stable.js";
import { Finding } from "./tools/finding.js";
import { Toolsets } from "./toolsets.js";
import { GATEWAY, type Logger, type Mode } from "./words.js";

export interface PartsOptions {
  readonly target: Target;
  /** Empty = the default one. */
  readonly namespace: string;
  /** tool_ids that everybody sees without looking for them. */
  readonly always: readonly string[];
  /** A toolset goes when nobody used it for so long, ms. */
  readonly idleTtlMs: number;
  /** Scopes that every agent of this gateway has been granted. */
  readonly scopes: readonly string[];
  /** Chooses tools for find_tools; undefined: the gate does. */
  readonly selector: ModelOptions | undefined;
  /** What it may take for one choice, ms; the selector's own default if unsaid. */
  readonly selectorMs?: number;
  readonly policy: EgressPolicy;
  readonly credentials: Credentials | undefined;
  readonly callerCredentials: readonly CallerCredentialRule[];
  /** Undefined where nobody counts. */
  readonly observer?: GatewayObserver;
  readonly log: Logger;
  readonly version: string;
  readonly clock: Clock;
  readonly random: () => number;
}

export interface Parts {
  readonly registry: RegistryLink;
  readonly catalogue: Catalogue;
  readonly map: ModuleMap;
  readonly toolsets: Toolsets;
  readonly faces: Readonly<Record<Era, Readonly<Record<Mode, Face>>>>;
  /** Why it should get no requests; empty when it should. */
  notReady(): string;
  /** Calls under way are answered that the gateway is shutting down, and what that means for each; new ones, too. */
  endCalls(): Promise<void>;
  close(): Promise<void>;
}

/** Toolsets that nobody uses any more are forgotten this often. */
const TIDY_MS = 5_000;

/** Begins to follow at once; a registry that is away is waited for. Throws TargetError and AccessError, and a TypeError for a model that cannot be asked. */
export function assembleParts(options: PartsOptions): Parts {
  const { target, always, idleTtlMs, log, version, clock, random, policy, credentials, callerCredentials, observer = NO_OBSERVER } = options;
  const namespace = options.namespace || DEFAULT_NAMESPACE;
  const nowMs = (): number => performance.now();
  const connection = new RegistryConnection(target);
  const registry = new RegistryLink(connection, namespace);
  const { selector: model, selectorMs: timeBudgetMs } = options;
  const selector = new Selector({ registry: connection, namespace, ...(model && { model }), ...(timeBudgetMs && { timeBudgetMs }) });
  const follower = createFollower({ targets: [target], namespace });
  follower.on("state", (state) => {
    if (state.kind === "refused") log.error({ err: String(state.error) }, "the registry refuses this gateway");
    else if (state.kind === "stale" || (state.kind === "connecting" && state.error)) log.warn({ why: "why" in state ? state.why : String(state.error) }, "the registry is away; what is known goes on working");
    else if (state.kind === "live") log.info({}, "the catalogue is current");
  });
  const catalogue = new Catalogue(follower);
  const definitions = new Definitions(registry, catalogue);
  const forwarder = createForwarder({
    clock,
    logger: log,
    version,
    policy,
    registry: connection,
    credentials,
    callerCredentials,
    random,
    report: ({ errorKind, latencyMs }) => observer.called(errorKind || "ok", latencyMs),
    definition: async (_namespace, toolId) => {
      const loaded = (await definitions.load(GATEWAY, [toolId])).get(toolId);
      return isDefinition(loaded) ? { digest: loaded.digest, bytes: Buffer.from(loaded.text), freshness: loaded.freshness } : undefined;
    },
  });
  const stopTelling = catalogue.onChange(({ events }) => {
    for (const serverId of new Set(events.map((e) => e.serverId))) forwarder.changed(namespace, serverId);
  });
  const map = new ModuleMap(registry, nowMs, catalogue, always);
  const toolsets = new Toolsets(registry, idleTtlMs, nowMs, observer);
  const finding = new Finding({ registry, catalogue, selector, modelChooses: model !== undefined, scopes: options.scopes, observer });
  const outcomes = new Outcomes(registry, log, nowMs);
  const facesOf = (era: Era): Readonly<Record<Mode, Face>> => {
    const calling = new Calling(namespace, catalogue, forwarder, outcomes, era);
    const shared = { catalogue, definitions, map, finding, calling, toolsets, registry };
    return { dynamic: new DynamicFace({ ...shared, era }), stable: new StableFace(shared) };
  };
  const tidying = setInterval(() => toolsets.forgetIdle(), TIDY_MS).unref();
  follower.start();
  let ended: Promise<void> | undefined;
  const endCalls = (): Promise<void> => (ended ??= forwarder.close());
  return {
    registry,
    catalogue,
    map,
    toolsets,
    faces: { sessions: facesOf("sessions"), "2026-07-28": facesOf("2026-07-28") },
    notReady: () => (catalogue.known ? "" : catalogue.stale),
    endCalls,
    close: async () => {
      clearInterval(tidying);
      stopTelling();
      await follower.stop();
      await endCalls();
      connection.close();
    },
  };
}
