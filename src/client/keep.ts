import { randomUUID } from "node:crypto";
import { LIMITS } from "../domain/limits.js";
import { agentFor } from "./agent.js";
import type { EventSink } from "./events.js";
import { warnOnTrouble } from "./events.js";
import type { ProbeOptions } from "./probe.js";
import type { Offer } from "./registration.js";
import { Registration } from "./registration.js";
import { onProcessEnd } from "./signals.js";
import type { Target } from "./target.js";
import type { RandomSource, Timers } from "./timers.js";
import { systemTimers } from "./timers.js";

/** How a server is kept registered. */
export interface KeepOptions {
  /** `[a-z0-9]` then `[a-z0-9._-]`, at most 63 characters. */
  readonly serverId: string;
  /** Where the registry finds the server when it needs a definition. Without one the definitions are sent along. */
  readonly endpoint?: string;
  readonly namespace?: string;
  readonly title?: string;
  /** Tags that all tools of the server carry. */
  readonly tags?: readonly string[];
  /** A credential of the registry's `--upstream-credentials` file, shown to the endpoint when the registry dials it. */
  readonly credential?: string;
  /** Let the whole namespace read a list that the server marks as private to that credential. */
  readonly sharePrivate?: boolean;
  /** Lease length in milliseconds, 10 s to 1 h; default 30 s. */
  readonly ttlMs?: number;
  /** How the registry looks after the server; default: as it is set. */
  readonly probe?: ProbeOptions;
  /** Hears what happens; by default what needs attention becomes a process warning. */
  readonly onEvent?: EventSink;
  /** Deregister on SIGTERM, SIGINT and when the process runs out of work; default true. */
  readonly deregisterOnExit?: boolean;
  readonly timers?: Timers;
  readonly random?: RandomSource;
}

/** Random per process, so that two processes of one server are two instances. */
const instanceId = randomUUID();

/** Keeps whatever `offer` reads registered; for registrants that are no SDK server. */
export function keepRegistered(target: Target, offer: Offer, options: KeepOptions, onClose?: () => void): Registration {
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
    credential: options.credential ?? "",
    sharePrivate: options.sharePrivate ?? false,
    probe: options.probe,
  };
  let forget = (): void => undefined;
  const registration = new Registration(agent, identity, offer, guarded(options.onEvent), random, () => {
    forget();
    onClose?.();
  });
  if (options.deregisterOnExit !== false) forget = onProcessEnd(() => registration.close());
  return registration;
}

/** A listener's mistake must not be taken for the registry's. */
export function guarded(sink: EventSink = warnOnTrouble): EventSink {
  return (event) => {
    try {
      sink(event);
    } catch (error) {
      process.emitWarning(`onEvent of registerServer threw: ${String(error)}`, { type: "ToolcribWarning" });
    }
  };
}
