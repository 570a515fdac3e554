import { sortedSet } from "../../domain/filter.js";
import { LIMITS } from "../../domain/limits.js";
import type { RejectedTool, Tool } from "../../domain/server.js";
import type { Blob, StubCodec } from "../ports.js";
import type { ListedTool, Listing } from "../upstream-port.js";

/** A listing as the catalogue keeps it. */
export interface ListedSet {
  readonly tools: readonly Tool[];
  readonly rejected: readonly RejectedTool[];
  readonly rejectedCount: number;
  readonly blobs: readonly Blob[];
}

/** The tools of a listing with the server's tags, within the limits of one server. */
export function listedSet(
  serverId: string,
  serverTags: readonly string[],
  listing: Listing,
  stubs: StubCodec,
): ListedSet {
  const rejected: RejectedTool[] = [...listing.rejected];
  const tools: Tool[] = [];
  const blobs: Blob[] = [];
  let bytes = 0;
  for (const listed of listing.tools) {
    const tool = encodeListed(serverId, serverTags, listed, stubs);
    bytes += tool.stub.byteLength;
    const reason = overLimit(tools.length + 1, bytes);
    if (reason) {
      rejected.push({ name: listed.name, reasons: [reason] });
      continue;
    }
    tools.push(tool);
    blobs.push({ digest: listed.digest, bytes: listed.definition, fetchedAtMs: listing.receivedAtMs });
  }
  return { tools, rejected: rejected.slice(0, LIMITS.rejectedKept), rejectedCount: rejected.length, blobs };
}

export function encodeListed(
  serverId: string,
  serverTags: readonly string[],
  listed: ListedTool,
  stubs: StubCodec,
): Tool {
  const tags = sortedSet([...serverTags, ...listed.label.tags]);
  return stubs.encode({ ...listed.label, serverId, tags }, false);
}

/** Why one more tool does not fit into a server; undefined when it does. */
export function overLimit(count: number, stubBytes: number): string | undefined {
  if (count > LIMITS.toolsPerServer) {
    return `a server may have at most ${LIMITS.toolsPerServer} tools; this would be tool ${count}`;
  }
  if (stubBytes > LIMITS.stubBytesPerServer) {
    return `the stubs of a server may take at most ${LIMITS.stubBytesPerServer} bytes; with this one they take ${stubBytes}`;
  }
  return undefined;
}
