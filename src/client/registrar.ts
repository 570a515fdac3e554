import { registryTarget } from "./environment.js";
import type { KeepOptions } from "./keep.js";
import { guarded, keepRegistered } from "./keep.js";
import type { ToolDefaults } from "./offer.js";
import { declareTools } from "./offer.js";
import type { Offer } from "./registration.js";
import { sdkServer } from "./sdk-server.js";
import type { Target } from "./target.js";

export type { EventSink, RegistrationEvent, RejectedToolNotice } from "./events.js";
export type { KeepOptions } from "./keep.js";
export type { ProbeOptions } from "./probe.js";
export type { ToolDefaults } from "./offer.js";
export type { RandomSource, Timers } from "./timers.js";

/** How a server is registered. Only `serverId` is needed; without an `endpoint` the definitions are sent along. */
export interface RegisterServerOptions extends KeepOptions {
  /** Default: `TOOLCRIB_URL`, else 127.0.0.1:7850. */
  readonly registry?: string;
  /** Send the definitions along instead of letting the registry fetch them. */
  readonly inline?: boolean;
  /** Additions to the labels, by tool name. */
  readonly toolDefaults?: Readonly<Record<string, ToolDefaults>>;
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
  const registration = keepRegistered(target, offer, options, () => unhook());
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
