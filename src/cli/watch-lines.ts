import { toJson } from "@bufbuild/protobuf";
import type { CatalogueChange } from "../client/follower/state.js";
import type { Event } from "../gen/toolcrib/v1/registry_service_pb.js";
import { EventSchema, EventType } from "../gen/toolcrib/v1/registry_service_pb.js";
import { Availability } from "../gen/toolcrib/v1/stub_pb.js";
import { printable } from "./table.js";

/** One line an event, for people or (JSON) for programs. */
export function eventLines(change: Omit<CatalogueChange, "source">, json: boolean): string[] {
  const at = change.committedAt;
  return change.events.map((event) => {
    if (!json) return `${at ? at.toTimeString().slice(0, 8) : "--:--:--"}  ${describe(event)}`;
    const facts = toJson(EventSchema, event) as Record<string, unknown>;
    const type = EventType[event.type] ?? "UNSPECIFIED";
    return JSON.stringify({
      ...facts,
      type,
      revision: change.revision,
      ...(at ? { committedAt: at.toISOString() } : {}),
    });
  });
}

function describe(event: Event): string {
  const type = (EventType[event.type] ?? "UNKNOWN").padEnd(20);
  if (event.type === EventType.AVAILABILITY_CHANGED) {
    return `${type}  ${printable(event.serverId)}  ${event.availability === Availability.AVAILABLE ? "up" : "away"}`;
  }
  const digests = [event.oldDigest, event.newDigest].map(short).filter((digest) => digest !== "");
  const changed = event.oldDigest !== event.newDigest ? digests.join(" → ") : (digests[0] ?? "");
  return `${type}  ${printable(event.toolId)}  ${changed}`.trimEnd();
}

function short(digest: string): string {
  return digest.replace(/^(sha256:[0-9a-f]{12})[0-9a-f]{52}$/, "$1");
}
