/** Many leased servers that behave as DESIGN asks of registrants: renew in time, register again when told. */
import { onTestFinished } from "vitest";
import type { RemoteRegistry } from "./registry.js";

interface Member {
  readonly serverId: string;
  leaseId: string;
  setDigest: string;
}

export interface Fleet {
  /** tool_ids of all members, sorted. */
  readonly toolIds: readonly string[];
  /** Registrations so far, the first ones included. */
  readonly registrations: number;
  /** When each member last registered, by performance.now(). */
  readonly registeredAt: ReadonlyMap<string, number>;
  /** The member does nothing, as a stopped process would, until it is thawed. */
  freeze(serverId: string): void;
  thaw(serverId: string): void;
  stop(): void;
}

/** Registers `size` servers of one tool each, spread over the registries, and keeps them until the test ends. */
export async function startFleet(
  registries: readonly RemoteRegistry[],
  size: number,
  ttlSeconds: number,
  prefix = "fleet",
): Promise<Fleet> {
  const names = Array.from({ length: size }, (_, i) => `${prefix}-${String(i).padStart(3, "0")}`);
  const registeredAt = new Map<string, number>();
  let registrations = 0;
  let over = false;
  const frozen = new Set<string>();
  const stop = (): void => {
    over = true;
  };
  onTestFinished(stop);

  const definition = Buffer.from(
    JSON.stringify({ name: "work", description: "Works.", inputSchema: { type: "object" } }),
  );
  const register = async (api: RemoteRegistry, member: Member): Promise<number> => {
    const request = {
      serverId: member.serverId,
      instanceId: `instance-${member.serverId}`,
      leaseTtl: { seconds: ttlSeconds },
      declared: { tools: [{ definition }] },
    };
    const { lease, setDigest } = await api.call("register", request);
    Object.assign(member, { leaseId: lease.leaseId, setDigest });
    registrations++;
    registeredAt.set(member.serverId, performance.now());
    return millis(lease.renewAfter);
  };
  const keep = async (api: RemoteRegistry, member: Member, first: number): Promise<void> => {
    let waitMs = first;
    while (!over) {
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      if (over) return;
      if (frozen.has(member.serverId)) waitMs = 100;
      else waitMs = await turn(api, member).catch(() => 200);
    }
  };
  const turn = async (api: RemoteRegistry, member: Member): Promise<number> => {
    const { results } = await api.call("renew", { leases: [{ leaseId: member.leaseId, setDigest: member.setDigest }] });
    const { state, renewAfter } = results[0] as { state: string; renewAfter: Duration };
    if (state === "STATE_UNKNOWN_LEASE" || state === "STATE_REGISTER_AGAIN") return register(api, member);
    if (state !== "STATE_OK") throw new Error(`${member.serverId} was told ${state}`);
    return millis(renewAfter);
  };
  await Promise.all(
    names.map(async (serverId, i) => {
      const api = registries[i % registries.length] as RemoteRegistry;
      const member: Member = { serverId, leaseId: "", setDigest: "" };
      void keep(api, member, await register(api, member));
    }),
  );
  return {
    toolIds: names.map((name) => `${name}/work`),
    get registrations() {
      return registrations;
    },
    registeredAt,
    freeze: (serverId) => void frozen.add(serverId),
    thaw: (serverId) => void frozen.delete(serverId),
    stop,
  };
}

interface Duration {
  readonly seconds: number;
  readonly nanos: number;
}

function millis({ seconds, nanos }: Duration): number {
  return seconds * 1_000 + nanos / 1e6;
}
