import type { RegistryError } from "./registry-error.js";

/** A tool that the registry did not list, with every reason. */
export interface RejectedToolNotice {
  readonly name: string;
  readonly reasons: readonly string[];
}

/** What a registration tells about itself. */
export type RegistrationEvent =
  /** The registry now lists these tools; `revision` reads them back on any replica as `min_revision`. */
  | {
      readonly type: "registered";
      readonly serverId: string;
      readonly revision: string;
      readonly leaseId: string;
      readonly listed: number;
      readonly rejected: readonly RejectedToolNotice[];
    }
  /** The registry or the tool list could not be reached; it is tried again after `delayMs`. */
  | { readonly type: "retrying"; readonly serverId: string; readonly error: Error; readonly delayMs: number }
  /** Renewals reach the registry again; the lease outlived the silence. */
  | { readonly type: "back"; readonly serverId: string }
  /** The registry will not have it like this; tried again when the tools change, and where rights decide every 30 s. */
  | { readonly type: "refused"; readonly serverId: string; readonly error: Error }
  /** A newer instance's tools are the server's tools; this lease goes on quietly. */
  | { readonly type: "superseded"; readonly serverId: string }
  /** The registry asked to register again, or lost the lease. */
  | { readonly type: "again"; readonly serverId: string; readonly cause: "asked" | "unknown-lease" }
  /** Somebody deregistered the server on purpose; nothing more is done. */
  | { readonly type: "deregistered"; readonly serverId: string }
  /** The registration was closed; `removed` tells whether the registry heard of it in time. */
  | { readonly type: "closed"; readonly serverId: string; readonly removed: boolean };

export type EventSink = (event: RegistrationEvent) => void;

/**
 * The sink of a registrant that gave none: what needs somebody's attention becomes a process warning, which Node prints
 * to stderr, so that it is neither lost nor mixed into a stdio server's protocol.
 */
export const warnOnTrouble: EventSink = (event) => {
  const text = describeTrouble(event);
  if (text !== "") process.emitWarning(text, { type: "ToolcribWarning" });
};

/** One sentence for an event that needs attention; empty for the others. */
export function describeTrouble(event: RegistrationEvent): string {
  switch (event.type) {
    case "refused":
      return `server ${event.serverId} is not registered: ${sentence(event.error)}`;
    case "deregistered":
      return `server ${event.serverId} was deregistered at the registry; restart it to register again`;
    case "registered":
      return event.rejected.length === 0 ? "" : describeRejected(event.serverId, event.rejected);
    default:
      return "";
  }
}

export function describeRejected(serverId: string, rejected: readonly RejectedToolNotice[]): string {
  const tools = rejected.map((tool) => `${tool.name || "(unnamed)"} (${tool.reasons.join("; ")})`);
  return `server ${serverId}: not listed: ${tools.join(", ")}`;
}

function sentence(error: Error): string {
  const { violations } = error as Partial<RegistryError>;
  if (!violations || violations.length === 0) return error.message;
  return violations.map((v) => `${v.field}: ${v.description}`).join("; ");
}
