/** What operators do to one tool: withhold it, and approve a definition of it. */
import type { ApproveToolInput, QuarantineInput } from "../../domain/admission/quarantine.js";
import { invalidRequest, notFound } from "../../domain/fault.js";
import type { Principal } from "../../domain/identity.js";
import { splitToolId, toolId } from "../../domain/ids.js";
import { isWithheld, type Quarantine, sameQuarantine } from "../../domain/quarantine.js";
import type { ServerRecord, Tool } from "../../domain/server.js";
import type { ApproveToolOutput, QuarantinedView, QuarantineOutput } from "../api.js";
import { present, seeServer } from "../isolation.js";
import type { Decision, Writes } from "../writes.js";
import { quarantined } from "./keep.js";
import { QuarantineShelf } from "./shelf.js";

/** The input has passed `checkQuarantine`. */
export async function quarantine(writes: Writes, namespace: string, input: QuarantineInput, caller: Principal): Promise<QuarantineOutput> {
  const { serverId, toolName } = partsOf(input.toolId);
  await seeServer(writes, namespace, serverId);
  const seen = toolIn(recordOf(writes, namespace, serverId), toolName);
  const atMs = isWithheld(seen) && seen.quarantine ? seen.quarantine.atMs : writes.partition.deps.clock.now();
  const one: Quarantine = { toolName, reason: input.reason, by: caller.id, atMs, approvedDigest: "" };
  // Ahead of the commit: a server that leaves and comes back in between must not bring the tool back.
  await new QuarantineShelf(writes, namespace, serverId).change((now) => withOne(now, one));
  const result = await writes.write(namespace, serverId, (found): Decision<{ tool: Tool; withheld: boolean }> => {
    const record = present(writes, namespace, serverId, found);
    const before = toolIn(record, toolName);
    const tool = quarantined(before, one);
    const value = { tool, withheld: !isWithheld(before) };
    return tool === before ? { kind: "keep", value } : { kind: "commit", step: stepOf("quarantine", record, tool), value };
  });
  if (result.kind === "not-due") throw new Error("a quarantine requires no lease to be due");
  const { tool, withheld } = result.value;
  return { position: result.position, tool: viewOf(serverId, tool, one), withheld };
}

/** The input has passed `checkApproveTool`. */
export async function approveTool(writes: Writes, namespace: string, input: ApproveToolInput): Promise<ApproveToolOutput> {
  const { serverId, toolName } = partsOf(input.toolId);
  await seeServer(writes, namespace, serverId);
  const result = await writes.write(namespace, serverId, (found): Decision<{ tool: Tool; released: boolean }> => {
    const record = present(writes, namespace, serverId, found);
    const before = toolIn(record, toolName);
    const tool = quarantined(before, approved(before, input));
    const value = { tool, released: isWithheld(before) && !isWithheld(tool) };
    return tool === before ? { kind: "keep", value } : { kind: "commit", step: stepOf("approve", record, tool), value };
  });
  if (result.kind === "not-due") throw new Error("an approval requires no lease to be due");
  const { tool, released } = result.value;
  // Behind the commit: what fails here leaves the tool under quarantine for the next time its server comes, and is told.
  await new QuarantineShelf(writes, namespace, serverId).change((now) => {
    if (tool.quarantine) return withOne(now, tool.quarantine);
    return input.anyDigest && now.has(toolName) ? new Map([...now].filter(([name]) => name !== toolName)) : now;
  });
  const under = tool.quarantine;
  return {
    position: result.position,
    released,
    tool: under && isWithheld(tool) ? viewOf(serverId, tool, under) : undefined,
    approvedDigest: under?.approvedDigest ?? "",
  };
}

/** In name order: the withheld tools of a server. */
export function withheldOf({ header, tools }: ServerRecord): readonly QuarantinedView[] {
  return tools.flatMap((tool) => (tool.quarantine && isWithheld(tool) ? [viewOf(header.serverId, tool, tool.quarantine)] : []));
}

function approved({ name, digest, quarantine }: Tool, input: ApproveToolInput): Quarantine | undefined {
  if (!quarantine || input.anyDigest) return undefined;
  const approvedDigest = input.digest === "" ? digest : input.digest;
  if (approvedDigest !== "") return { ...quarantine, approvedDigest };
  const description = `is empty, and the definition of ${name} is not known yet: refresh its server, or name the digest to approve`;
  throw invalidRequest([{ field: "digest", description }]);
}

function withOne(now: ReadonlyMap<string, Quarantine>, one: Quarantine): ReadonlyMap<string, Quarantine> {
  return sameQuarantine(now.get(one.toolName), one) ? now : new Map([...now, [one.toolName, one]]);
}

function stepOf(cause: "quarantine" | "approve", { header, tools }: ServerRecord, changed: Tool) {
  const next = { header, tools: tools.map((tool) => (tool.name === changed.name ? changed : tool)) };
  return { cause, next, leases: [] };
}

function viewOf(serverId: string, { name, digest }: Tool, { reason, by, atMs, approvedDigest }: Quarantine): QuarantinedView {
  return { toolId: toolId(serverId, name), reason, by, sinceMs: atMs, digest, approvedDigest };
}

function recordOf(writes: Writes, namespace: string, serverId: string): ServerRecord {
  return present(writes, namespace, serverId, writes.partition.live().history.server(namespace, serverId)?.record);
}

function toolIn({ header, tools }: ServerRecord, name: string): Tool {
  const found = tools.find((tool) => tool.name === name);
  if (!found) throw notFound("tool", toolId(header.serverId, name));
  return found;
}

function partsOf(id: string): { readonly serverId: string; readonly toolName: string } {
  const parts = splitToolId(id);
  if (!parts) throw new Error(`${id} was not checked`);
  return parts;
}
