/** Which instance of a server takes a call. */
import { createHash } from "node:crypto";
import type { KnownInstance, KnownServer } from "./directory.js";

export interface ChoiceFacts {
  /** What the registry says of health may be long past. */
  readonly stale: boolean;
  /** Calls with the same text stay together; undefined: they go where least is under way. */
  readonly session: string | undefined;
  /** Calls under way at an endpoint. */
  readonly load: (endpoint: string) => number;
}

/**
 * The instances in the order in which they are tried. First those that hold the server's own set of tools, which is the newest
 * registration's; instances that are down come into it only when nobody knows whether they still are.
 */
export function inOrder(server: KnownServer, { stale, session, load }: ChoiceFacts): readonly KnownInstance[] {
  const newestFirst = [...server.instances].reverse();
  const up = newestFirst.filter(({ available }) => available);
  const candidates = stale ? [...up, ...newestFirst.filter(({ available }) => !available)] : up;
  const rank = new Map(candidates.map((instance, at) => [instance, session === undefined ? at : -weight(session, instance)]));
  const ranked = (one: KnownInstance): number => rank.get(one) ?? 0;
  return [...candidates].sort(
    (a, b) =>
      Number(b.available) - Number(a.available) ||
      Number(current(server, b)) - Number(current(server, a)) ||
      (session === undefined ? load(a.endpoint) - load(b.endpoint) : 0) ||
      ranked(a) - ranked(b),
  );
}

/** An introspected instance has no digest of its own; nothing speaks against it. */
function current({ setDigest }: KnownServer, instance: KnownInstance): boolean {
  return instance.setDigest === "" || setDigest === "" || instance.setDigest === setDigest;
}

/** Rendezvous: every gateway sends a session to the same instance, and only an instance that goes away moves its sessions. */
function weight(session: string, { endpoint }: KnownInstance): number {
  return createHash("sha256").update(JSON.stringify([session, endpoint])).digest().readUIntBE(0, 6);
}
