/** Which era a server speaks, and over which transport. */
import type { Clock, Logger } from "../catalogue/ports.js";
import { UpstreamError, type UpstreamErrorKind } from "../catalogue/upstream-port.js";
import type { Transport } from "../domain/server.js";
import type { Channel } from "./channel.js";
import type { ClientInfo, Connection } from "./connection.js";
import { deadline } from "./deadline.js";
import { HttpFailure, place, rpcCode, rpcData } from "./failures.js";
import { isRecord } from "./messages.js";
import { MODERN_VERSION, ModernConnection, modernCall } from "./modern.js";
import type { Session } from "./session.js";
import { openSession } from "./session.js";
import { ForeignPost, SseChannel } from "./sse-channel.js";

/** Silence at the first question is how some older servers say that they do not know it. */
const PROBE_MS = 3_000;
const UNSUPPORTED_VERSION = -32022;

export interface EraTools {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly client: ClientInfo;
}

/** What is known of a server before it is asked. */
export interface Known {
  /** As it was registered. */
  readonly transport: Transport;
  /** A session that goes on if the server still speaks its era in the same way. */
  readonly held: Session | undefined;
}

/**
 * Asks `server/discover`: a usable answer, or the modern refusal of a version, means modern; any other answer means
 * legacy. A server that refuses `initialize` too may be one of HTTP+SSE. Throws UpstreamError.
 */
export async function negotiate(
  channel: Channel,
  tools: EraTools,
  { transport, held }: Known,
  signal: AbortSignal,
): Promise<Connection> {
  if (transport === "http-sse") return held ?? (await openSseSession(channel, tools, signal));
  const modern = await probe(channel, tools, signal);
  if (modern) return modern;
  if (held?.transport === "streamable-http") return held;
  try {
    return await openSession(channel, tools, signal);
  } catch (error) {
    if (!saysSse(error)) throw error;
    return held ?? (await olderTransport(channel, tools, error, signal));
  }
}

/** A session over HTTP+SSE. Throws UpstreamError. */
export async function openSseSession(channel: Channel, tools: EraTools, signal: AbortSignal): Promise<Session> {
  return sessionOn(await SseChannel.open(channel, tools.clock, signal), tools, signal);
}

async function sessionOn(stream: SseChannel, tools: EraTools, signal: AbortSignal): Promise<Session> {
  try {
    return await openSession(stream, tools, signal);
  } catch (error) {
    await stream.leave();
    throw error;
  }
}

/** Most servers that are no MCP server refuse alike, so what is told is the refusal, unless a stream says more. */
async function olderTransport(channel: Channel, tools: EraTools, refusal: unknown, signal: AbortSignal): Promise<Session> {
  const patience = deadline(tools.clock, PROBE_MS, signal);
  let stream: SseChannel;
  try {
    stream = await SseChannel.open(channel, tools.clock, patience.signal);
  } catch (error) {
    if (signal.aborted || error instanceof ForeignPost) throw error;
    tools.logger.debug({ endpoint: place(channel.endpoint), err: error }, "initialize is refused, and HTTP+SSE is not spoken");
    throw refusal;
  } finally {
    patience.lift();
  }
  return sessionOn(stream, tools, signal);
}

/** How servers of HTTP+SSE answer a POST where they have their stream. */
function saysSse(error: unknown): boolean {
  return error instanceof HttpFailure && [400, 404, 405].includes(error.status);
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

/** Refusals that a server gives in any era. */
const REFUSED_ANYWAY: ReadonlySet<UpstreamErrorKind> = new Set(["auth", "throttled", "away"]);

/** Whether a failed probe leaves the older era possible: the server cannot be reached, or wants credentials, in any era. */
function saysLegacy(error: unknown): boolean {
  if (!(error instanceof UpstreamError)) return false;
  if (error instanceof HttpFailure) return !REFUSED_ANYWAY.has(error.kind);
  if (error.kind === "connect") return isReset(error.cause);
  return error.kind === "rpc" || error.kind === "protocol" || error.kind === "timeout";
}

function isReset(cause: unknown): boolean {
  return cause instanceof Error && (cause as NodeJS.ErrnoException).code === "ECONNRESET";
}
