import { randomUUID } from "node:crypto";
import { LIMITS } from "../domain/limits.js";
import { agentFor } from "./agent.js";
import type { EventSink } from "./events.js";
import { warnOnTrouble } from "./events.js";
import type { ToolDefaults } from "./offer.js";
import { declareTools } from "./offer.js";
import type { Offer } from "./registration.js";
import { Registration } from "./registration.js";
import { sdkServer } from "./sdk-server.js";
import { onProcessEnd } from "./signals.js";
import type { Target } from "./target.js";
import { registryTarget } from "./environment.js";
import type { RandomSource, Timers } from "./timers.js";
import { systemTimers } from "./timers.js";

export type { EventSink, RegistrationEvent, RejectedToolNotice } from "./events.js";
export type { ToolDefaults } from "./offer.js";
export type { RandomSource, Timers } from "./timers.js";

/** How a server is registered. Only `serverId` is needed. */
export interface RegisterServerOptions {
  /** `[a-z0-9]` then `[a-z0-9._-]`, at most 63 characters. */
  readonly serverId: string;
  /** Where the registry finds the server when it needs a definition. Without one the definitions are sent along. */
  readonly endpoint?: string;
  /** Default: `TOOLCRIB_URL`, else 127.0.0.1:7850. */
  readonly registry?: string;
  readonly namespace?: string;
  readonly title?: string;
  /** Tags that all tools of the server carry. */
  readonly tags?: readonly string[];
  /** Lease length in milliseconds, 10 s to 1 h; default 30 s. */
  readonly ttlMs?: number;
  /** Send the definitions along instead of letting the registry fetch them. */
  readonly inline?: boolean;
  /** Additions to the labels, by tool name. */
  readonly toolDefaults?: Readonly<Record<string, ToolDefaults>>;
  /** Hears what happens; by default what needs attention becomes a process warning. */
  readonly onEvent?: EventSink;
  /** Deregister on SIGTERM, SIGINT and when the process runs out of work; default true. */
  readonly deregisterOnExit?: boolean;
  readonly timers?: Timers;
  readonly random?: RandomSource;
}

/** A server's place in the registry. */
export interface ServerRegistration {
  /** The lease while there is one. */
  readonly leaseId: string | undefined;
  /** To be called when the tool list changed without the server announcing it. */
  changed(): void;
  /** Deregisters within a second at most; the lease ends by itself if the registry does not hear. */
  close(): Promise<void>;
}

/** Random per process, so that two processes of one server are two instances. */
const instanceId = randomUUID();

/**
 * Registers an MCP server of the official SDK, v1 or v2, and keeps it registered. Returns at once, never throws because
 * of the registry or its address, never keeps the process alive; trouble goes to `onEvent`. Throws a TypeError when
 * `server` is not a server of the SDK, which is a mistake in the program.
 */
export function registerServer(server: object, options: RegisterServerOptions): ServerRegistration {
  const sdk = sdkServer(server);
  const target = targetOrError(options.registry);
  if (target instanceof Error) return unregistered(options, target);
  const carriage = options.inline === true || !options.endpoint ? "inline" : "digests";
  const offer: Offer = async () => declareTools(await sdk.list(), carriage, options.toolDefaults);
  let unhook = (): void => undefined;
  const registration = keepRegistered(target, offer, { ...options, onClose: () => unhook() });
  unhook = sdk.onChange(() => registration.changed());
  return registration;
}

function targetOrError(given: string | undefined): Target | Error {
  try {
    return registryTarget(given);
  } catch (error) {
    return error as Error;
  }
}

/** A wrong address, often a variable of the environment, must not stop the server either. */
function unregistered(options: RegisterServerOptions, error: Error): ServerRegistration {
  const emit = guarded(options.onEvent);
  queueMicrotask(() => emit({ type: "refused", serverId: options.serverId, error }));
  return { leaseId: undefined, changed: () => undefined, close: () => Promise.resolve() };
}

/** A listener's mistake must not be taken for the registry's. */
function guarded(sink: EventSink = warnOnTrouble): EventSink {
  return (event) => {
    try {
      sink(event);
    } catch (error) {
      process.emitWarning(`onEvent of registerServer threw: ${String(error)}`, { type: "ToolcribWarning" });
    }
  };
}

/** The parts of RegisterServerOptions that do not concern the SDK. */
export interface KeepOptions extends Omit<RegisterServerOptions, "registry" | "inline" | "toolDefaults"> {
  readonly onClose?: () => void;
}

/** Keeps whatever `offer` reads registered; for registrants that are no SDK server. */
export function keepRegistered(target: Target, offer: Offer, options: KeepOptions): Registration {
  const timers = options.timers ?? systemTimers;
  const random = options.random ?? Math.random;
  const agent = agentFor(target, options.namespace ?? "", timers, random);
  const identity = {
    serverId: options.serverId,
    instanceId,
    endpoint: options.endpoint ?? "",
    title: options.title ?? "",
    tags: options.tags ?? [],
    ttlMs: options.ttlMs ?? LIMITS.leaseDefaultMs,
  };
  let forget = (): void => undefined;
  const registration = new Registration(agent, identity, offer, guarded(options.onEvent), random, () => {
    forget();
    options.onClose?.();
  });
  if (options.deregisterOnExit !== false) forget = onProcessEnd(() => registration.close());
  return registration;
}
