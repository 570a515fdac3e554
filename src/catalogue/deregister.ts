import { Fault, invalidRequest } from "../domain/fault.js";
import { mayChange, type Principal } from "../domain/identity.js";
import { splitToolId } from "../domain/ids.js";
import { leasePartition } from "../domain/lease.js";
import type { ServerRecord } from "../domain/server.js";
import type { DeregisterOutput, DeregisterTarget } from "./api.js";
import { withoutInstances, withoutServer } from "./removal.js";
import type { Decision, WriteResult, Writes } from "./writes.js";

/** Removes an instance, a server or one declared tool. What is not there is already removed. */
export async function deregister(
  writes: Writes,
  namespace: string,
  target: DeregisterTarget,
  caller: Principal,
): Promise<DeregisterOutput> {
  switch (target.kind) {
    case "lease":
      return ofLease(writes, namespace, target.leaseId, caller);
    case "server":
      return ofServer(writes, namespace, target.serverId, caller);
    case "tool":
      return ofTool(writes, namespace, target.toolId, caller);
    case "none":
      throw invalidRequest([{ field: "target", description: "say what to remove: lease_id, server_id or tool_id" }]);
  }
}

async function ofLease(
  writes: Writes,
  namespace: string,
  leaseId: string,
  caller: Principal,
): Promise<DeregisterOutput> {
  const { partition } = writes;
  if (leasePartition(leaseId) === undefined) {
    throw invalidRequest([{ field: "lease_id", description: "is not one that this registry gave" }]);
  }
  if (!partition.live().history.serverOfLease(leaseId)) await partition.catchUp();
  const owner = partition.live().history.serverOfLease(leaseId);
  if (!owner || owner.namespace !== namespace) return { position: undefined, removed: false };
  return outputOf(
    await writes.write(namespace, owner.serverId, (record): Decision<boolean> => {
      if (!record?.header.instances.some((i) => i.leaseId === leaseId)) return { kind: "keep", value: false };
      // A lease of another principal is answered like one that never was.
      if (!changeable(caller, record)) return { kind: "keep", value: false };
      return { kind: "commit", step: withoutInstances(record, [leaseId], "deregister", true), value: true };
    }),
  );
}

async function ofServer(
  writes: Writes,
  namespace: string,
  serverId: string,
  caller: Principal,
): Promise<DeregisterOutput> {
  await seeServer(writes, namespace, serverId);
  return outputOf(
    await writes.write(namespace, serverId, (record): Decision<boolean> => {
      const lost = record ? undefined : stillServed(writes, namespace, serverId);
      const known = record ?? lost;
      if (!known) return { kind: "keep", value: false };
      requireChangeable(caller, known);
      // What a broken log lost is not there to remove, but must not be restored either: it is only buried.
      const step = lost ? { ...withoutServer(lost), leases: [] } : withoutServer(known);
      return { kind: "commit", step, value: true };
    }),
  );
}

/** A server that is lost in the store, and served until its registrant or a replica brings it back. */
function stillServed(writes: Writes, namespace: string, serverId: string): ServerRecord | undefined {
  const { state } = writes.partition;
  return state.kind === "growing" ? state.old.history.server(namespace, serverId)?.record : undefined;
}

async function ofTool(writes: Writes, namespace: string, toolId: string, caller: Principal): Promise<DeregisterOutput> {
  const id = splitToolId(toolId);
  if (!id)
    throw invalidRequest([{ field: "tool_id", description: `is server_id/tool_name, not ${JSON.stringify(toolId)}` }]);
  await seeServer(writes, namespace, id.serverId);
  return outputOf(
    await writes.write(namespace, id.serverId, (record) => {
      if (record) requireChangeable(caller, record);
      return withoutTool(record, id.toolName);
    }),
  );
}

function changeable(caller: Principal, { header }: ServerRecord): boolean {
  return mayChange(caller, header.owner, header.namespace, header.serverId);
}

function requireChangeable(caller: Principal, record: ServerRecord): void {
  if (changeable(caller, record)) return;
  const message = `server ${record.header.serverId} was registered by another principal: removing it takes the role operator`;
  throw new Fault("FORBIDDEN", message, { metadata: { server: record.header.serverId } });
}

function withoutTool(record: ServerRecord | undefined, toolName: string): Decision<boolean> {
  if (!record?.tools.some((t) => t.name === toolName)) return { kind: "keep", value: false };
  if (record.header.source === "introspected") {
    const description =
      "belongs to an introspected server: what its listing says is listed again; remove the tool there";
    throw invalidRequest([{ field: "tool_id", description }]);
  }
  const tools = record.tools.filter((t) => t.name !== toolName);
  return {
    kind: "commit",
    step: { cause: "deregister", next: { header: record.header, tools }, leases: [] },
    value: true,
  };
}

/** Absent may only mean that this replica has not folded it yet. */
async function seeServer(writes: Writes, namespace: string, serverId: string): Promise<void> {
  if (!writes.partition.live().history.server(namespace, serverId)) await writes.partition.catchUp();
}

function outputOf(result: WriteResult<boolean>): DeregisterOutput {
  if (result.kind === "not-due") throw new Error("a Deregister requires no lease to be due");
  return { position: result.value ? result.position : undefined, removed: result.value };
}
