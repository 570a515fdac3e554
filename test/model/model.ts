/** What must be registered: servers, their instances and their tools, and nothing of how it is kept. */
import { compareText } from "../../src/domain/ids.js";
import type { Held } from "../validators/client.js";

export interface Instance {
  readonly id: string;
  /** What it registered: names, and a version of each definition. */
  readonly set: ToolSet;
  readonly held: Held;
  readonly ttlMs: number;
  readonly requestId: string;
}

/** Name → version of its definition. */
export type ToolSet = Readonly<Record<string, number>>;

export interface Server {
  readonly namespace: string;
  readonly serverId: string;
  /** The set of the newest Register, which renewals are compared with. */
  set: ToolSet;
  /** What is listed: the set without tools that were deregistered one by one. */
  tools: ToolSet;
  /** Oldest registration first. */
  instances: Instance[];
}

export type Lost = "deregistered" | "expired";

export class Model {
  readonly servers = new Map<string, Server>();
  /** Leases that ended, and why. */
  readonly ended = new Map<string, Lost>();
  /** The newest acknowledged revision. */
  revision = "";

  server(namespace: string, serverId: string): Server | undefined {
    return this.servers.get(`${namespace} ${serverId}`);
  }

  get all(): Server[] {
    return [...this.servers.values()];
  }

  /** tool_ids of a namespace, as they are listed. */
  ids(namespace: string): string[] {
    const here = this.all.filter((s) => s.namespace === namespace);
    return here.flatMap((s) => Object.keys(s.tools).map((name) => `${s.serverId}/${name}`)).sort(compareText);
  }

  registered(namespace: string, serverId: string, instance: Instance): void {
    const key = `${namespace} ${serverId}`;
    const known = this.servers.get(key) ?? { namespace, serverId, set: {}, tools: {}, instances: [] };
    known.instances = [...known.instances.filter((i) => i.id !== instance.id), instance];
    known.set = instance.set;
    known.tools = instance.set;
    this.servers.set(key, known);
  }

  ends(server: Server, leaving: readonly Instance[], why: Lost): void {
    for (const { held } of leaving) this.ended.set(held.leaseId, why);
    server.instances = server.instances.filter((i) => !leaving.includes(i));
    if (server.instances.length === 0) this.servers.delete(`${server.namespace} ${server.serverId}`);
  }

  /** What a renewal of this instance must hear while it lives. */
  renewal(server: Server, instance: Instance): string {
    const same = (set: ToolSet): boolean => JSON.stringify(set) === JSON.stringify(server.set);
    if (same(instance.set)) return "OK";
    return server.instances.some((i) => same(i.set)) ? "SUPERSEDED" : "REGISTER_AGAIN";
  }
}

/** The definition of a tool in one of its versions. */
export function definition(serverId: string, name: string, version: number): object {
  return { name, description: `${name} of ${serverId}, version ${version}`, inputSchema: { type: "object" } };
}

export function definitions(serverId: string, set: ToolSet): object[] {
  return Object.entries(set).map(([name, version]) => definition(serverId, name, version));
}
