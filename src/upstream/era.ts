/** Which era a server speaks. */
import type { Clock, Logger } from "../catalogue/ports.js";
import { UpstreamError } from "../catalogue/upstream-port.js";
import type { Channel } from "./channel.js";
import type { ClientInfo, Connection } from "./connection.js";
import { deadline } from "./deadline.js";
import { HttpFailure, place, rpcCode, rpcData } from "./failures.js";
import { isRecord } from "./messages.js";
import { MODERN_VERSION, ModernConnection, modernCall } from "./modern.js";
import type { Session } from "./session.js";
import { openSession } from "./session.js";

/** Silence at the first question is how some older servers say that they do not know it. */
const PROBE_MS = 3_000;
const UNSUPPORTED_VERSION = -32022;

export interface EraTools {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly client: ClientInfo;
}

/**
 * Asks `server/discover`: a usable answer, or the modern refusal of a version, means modern; any other answer means
 * legacy. `held` is a session that goes on if the server still speaks its era. Throws UpstreamError.
 */
export async function negotiate(
  channel: Channel,
  tools: EraTools,
  held: Session | undefined,
  signal: AbortSignal,
): Promise<Connection> {
  const modern = await probe(channel, tools, signal);
  if (modern) return modern;
  return held ?? (await openSession(channel, tools, signal));
}

async function probe(channel: Channel, tools: EraTools, signal: AbortSignal): Promise<ModernConnection | undefined> {
  const patience = deadline(tools.clock, PROBE_MS, signal);
  try {
    const call = modernCall(1, "server/discover", {}, tools.client);
    const { result } = await channel.call(call, patience.signal, () => undefined);
    if (!names(result.value["supportedVersions"])) return undefined;
    const { capabilities } = result.value;
    return new ModernConnection(channel, tools.clock, tools.client, isRecord(capabilities) ? capabilities : {});
  } catch (error) {
    if (rpcCode(error) === UNSUPPORTED_VERSION) return afterRefusal(channel, tools, error);
    if (signal.aborted || !saysLegacy(error)) throw error;
    tools.logger.debug(
      { endpoint: place(channel.endpoint), err: error },
      "server/discover is not answered: an older era",
    );
    return undefined;
  } finally {
    patience.lift();
  }
}

/** The refusal lists what the server speaks; it is modern if our revision is among that. */
function afterRefusal(channel: Channel, tools: EraTools, error: unknown): ModernConnection | undefined {
  const data = rpcData(error);
  const supported = isRecord(data) ? data["supported"] : undefined;
  return names(supported) ? new ModernConnection(channel, tools.clock, tools.client, undefined) : undefined;
}

function names(versions: unknown): boolean {
  return Array.isArray(versions) && versions.includes(MODERN_VERSION);
}

/** Whether a failed probe leaves the older era possible: the server cannot be reached, or wants credentials, in any era. */
function saysLegacy(error: unknown): boolean {
  if (!(error instanceof UpstreamError)) return false;
  if (error instanceof HttpFailure) return error.status !== 401 && error.status !== 403;
  if (error.kind === "connect") return isReset(error.cause);
  return error.kind === "protocol" || error.kind === "timeout";
}

function isReset(cause: unknown): boolean {
  return cause instanceof Error && (cause as NodeJS.ErrnoException).code === "ECONNRESET";
}
