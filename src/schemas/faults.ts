/** What a caller of the loader is told when there is no definition to give, and what to use instead. */
import type { StubCodec } from "../catalogue/ports.js";
import type { Listing, UpstreamError } from "../catalogue/upstream-port.js";
import { Fault } from "../domain/fault.js";
import { toolId } from "../domain/ids.js";
import { isWithheld, whyWithheld } from "../domain/quarantine.js";
import { LIMITS } from "../domain/limits.js";
import type { Located } from "./find.js";
import { findByName, locate } from "./find.js";
import type { Directory } from "./ports.js";

/** When to ask again for a definition that is being loaded: most listings take less. */
const PENDING_RETRY_MS = 500;
/** What is published of the next trial may be older than the trial itself. */
const BREAKER_RETRY_MIN_MS = 1_000;

export function loadPending(what: string, waitedMs: number, substitutes: readonly string[]): Fault {
  const text = `${what} is being loaded and was not there within ${waitedMs} ms; the load goes on: ask again`;
  return new Fault("LOAD_PENDING", text, { retryAfterMs: PENDING_RETRY_MS, substitutes });
}

/** An address that egress forbids stays forbidden, so that failure names no time to come back. */
export function loadFailed({ record, tool }: Located, error: UpstreamError, substitutes: readonly string[]): Fault {
  const { serverId } = record.header;
  const id = toolId(serverId, tool.name);
  return new Fault("LOAD_FAILED", `the definition of ${id} could not be loaded from its server: ${error.message}`, {
    metadata: { tool: id, server: serverId, kind: error.kind },
    ...(error.kind === "egress" ? {} : { retryAfterMs: LIMITS.loadNegativeMs }),
    substitutes,
    cause: error,
  });
}

/** A withheld tool has no definition for agents; by its digest operators read what there is to approve. */
export function withheld({ record, tool }: Located, substitutes: readonly string[]): Fault | undefined {
  if (!isWithheld(tool)) return undefined;
  const { serverId } = record.header;
  const id = toolId(serverId, tool.name);
  const metadata = { tool: id, server: serverId, ...(tool.digest === "" ? {} : { digest: tool.digest }) };
  return new Fault("TOOL_QUARANTINED", `${id} is not offered: ${whyWithheld(tool)}`, { metadata, substitutes });
}

/** Of a server that is down nobody waits for an answer: whoever asks hears at once when it is tried next. */
export function breakerOpen({ record, tool }: Located, nowMs: number, substitutes: readonly string[]): Fault | undefined {
  const { serverId, breaker, conditions } = record.header;
  const id = toolId(serverId, tool.name);
  const metadata = { tool: id, server: serverId };
  if (breaker.kind === "isolated") {
    const text = `the definition of ${id} is not stored, and its server is isolated since ${iso(breaker.sinceMs)}: ${breaker.why}`;
    return new Fault("SERVER_ISOLATED", text, { metadata, substitutes });
  }
  if (breaker.kind !== "open") return undefined;
  const why = conditions.find((c) => c.type === "Reachable")?.message ?? "";
  const text = `the definition of ${id} is not stored, and its server is down since ${iso(breaker.sinceMs)}${why === "" ? "" : `: ${why}`}`;
  const retryAfterMs = Math.max(BREAKER_RETRY_MIN_MS, breaker.untilMs - nowMs);
  return new Fault("BREAKER_OPEN", text, { metadata, retryAfterMs, substitutes });
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** The server was asked, and what it lists is not what the catalogue says. */
export function disagrees({ record, tool }: Located, listing: Listing, substitutes: readonly string[]): Fault {
  const { serverId, source } = record.header;
  const id = toolId(serverId, tool.name);
  const listed = findByName(listing.tools, tool.name);
  const metadata = { tool: id, server: serverId, declared: tool.digest, ...(listed ? { listed: listed.digest } : {}) };

  if (listed && tool.digestDeclared) {
    const text =
      `server ${serverId} lists another definition of ${tool.name} (${listed.digest}) than it registered ` +
      `(${tool.digest}): its registrant must register again`;
    return new Fault("DIGEST_MISMATCH", text, { metadata, substitutes });
  }
  if (listed || source === "introspected") {
    const text = `the server's list has just changed for ${id}, and the catalogue has not taken it over yet: ask again`;
    return new Fault("LOAD_FAILED", text, { metadata, retryAfterMs: LIMITS.loadNegativeMs, substitutes });
  }
  const rejected = listing.rejected.find((r) => r.name === tool.name);
  const why = rejected
    ? `lists ${tool.name} in a form that is refused (${rejected.reasons.join("; ")})`
    : `does not list ${tool.name}`;
  const text = `server ${serverId} registered ${tool.name} but ${why}: its registrant must register again`;
  return new Fault("LOAD_FAILED", text, { metadata, substitutes });
}

/** The stub's substitutes that exist and are available, as tool_ids; a bare name is a tool of the same server. */
export function substitutesOf(
  directory: Directory,
  codec: Pick<StubCodec, "decode">,
  located: Located,
): readonly string[] {
  const { namespace, serverId } = located.record.header;
  const ids = codec.decode(located.tool.stub).substitutes.map((s) => (s.includes("/") ? s : toolId(serverId, s)));
  return ids.filter((id) => {
    const found = locate(directory, namespace, id);
    return found?.record.header.availability === "available" && !isWithheld(found.tool);
  });
}
