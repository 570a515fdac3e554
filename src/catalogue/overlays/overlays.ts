/** What operators do to labels: lay approved overlays over them, take them away, look at them. */
import type { ApproveInput, ProposedOverlay } from "../../domain/admission/overlay.js";
import { laidOverViolation } from "../../domain/admission/overlay.js";
import { invalidRequest, type Violation } from "../../domain/fault.js";
import type { Principal } from "../../domain/identity.js";
import { compareText, toolId } from "../../domain/ids.js";
import { bareTool, misfitOf, type Overlay, ownStubOf, sameOverlay, versionOf } from "../../domain/overlay.js";
import type { Position } from "../../domain/revision.js";
import type { ServerRecord, Tool } from "../../domain/server.js";
import type { ApproveOutput, OverlaysOutput, OverlayView, WithdrawOutput } from "../api.js";
import { present, seeServer } from "../isolation.js";
import type { StubCodec } from "../ports.js";
import type { Decision, Writes } from "../writes.js";
import { laid } from "./lay.js";
import type { OverlayOutcomes } from "./outcomes.js";
import { overlaysIn, Shelf } from "./shelf.js";

/** The input has passed `checkApproval`. All overlays in one revision, or none; approving them again changes nothing. */
export async function approve(writes: Writes, namespace: string, input: ApproveInput, caller: Principal): Promise<ApproveOutput> {
  const { serverId, trial } = input;
  const { stubs, clock } = writes.partition.deps;
  await seeServer(writes, namespace, serverId);
  const atMs = clock.now();
  const result = await writes.write(namespace, serverId, (found): Decision<Approved> => {
    const record = present(writes, namespace, serverId, found);
    refuseMisfits(record, input.overlays, stubs);
    const approved = new Map(input.overlays.map((one) => [one.toolName, overlayOf(one, trial, caller.id, atMs)]));
    const tools = record.tools.map((tool) => {
      const overlay = approved.get(tool.name);
      return !overlay || sameOverlay(tool.overlay?.overlay, overlay) ? tool : laid(tool, overlay, stubs);
    });
    const changed = tools.filter((tool, i) => tool !== record.tools[i]).length;
    const value = { changed, overlays: tools.flatMap(({ name, overlay }) => (overlay && approved.has(name) ? [overlay.overlay] : [])) };
    if (changed === 0) return { kind: "keep", value };
    return { kind: "commit", step: { cause: "overlay", next: { header: record.header, tools }, leases: [] }, value };
  });
  if (result.kind === "not-due") throw new Error("an approval requires no lease to be due");
  const { overlays, changed } = result.value;
  // Behind the commit, so that nothing is kept that was refused. A failure here is told, and approving again puts it right.
  const shelf = new Shelf(writes, namespace, serverId);
  await shelf.change((now) => {
    const other = overlays.filter((overlay) => !sameOverlay(now.get(overlay.toolName), overlay));
    return other.length === 0 ? now : new Map([...now, ...other.map((overlay) => [overlay.toolName, overlay] as const)]);
  });
  return { position: result.position, changed, overlays: overlays.map((overlay) => viewOf(serverId, overlay, overlay.trial ? "trial" : "shown", "")) };
}

interface Approved {
  readonly changed: number;
  readonly overlays: readonly Overlay[];
}

/** Overlays of these tools, all of the server's where `names` is empty. */
export async function withdraw(writes: Writes, namespace: string, serverId: string, names: readonly string[]): Promise<WithdrawOutput> {
  await seeServer(writes, namespace, serverId);
  const asked = (name: string): boolean => names.length === 0 || names.includes(name);
  const gone = new Set<string>();
  // Off the shelf first: what is still shown after a failure can be withdrawn again, what came back by itself would surprise.
  await new Shelf(writes, namespace, serverId).change((now) => {
    const left = [...now].filter(([name]) => !asked(name));
    if (left.length === now.size) return now;
    for (const name of now.keys()) if (asked(name)) gone.add(name);
    return new Map(left);
  });
  const taken = await takeOff(writes, namespace, serverId, asked);
  for (const name of taken.names) gone.add(name);
  return { position: taken.position, toolNames: [...gone].sort(compareText) };
}

async function takeOff(
  writes: Writes,
  namespace: string,
  serverId: string,
  asked: (name: string) => boolean,
): Promise<{ position: Position | undefined; names: readonly string[] }> {
  if (!writes.partition.live().history.server(namespace, serverId)) return { position: undefined, names: [] };
  const result = await writes.write(namespace, serverId, (record): Decision<readonly string[]> => {
    const names = overlaysIn(record).map(({ toolName }) => toolName).filter(asked);
    if (!record || names.length === 0) return { kind: "keep", value: [] };
    const tools = record.tools.map((tool) => (tool.overlay && asked(tool.name) ? bareTool(tool) : tool));
    return { kind: "commit", step: { cause: "overlay", next: { header: record.header, tools }, leases: [] }, value: names };
  });
  if (result.kind === "not-due") throw new Error("a withdrawal requires no lease to be due");
  return { position: result.position, names: result.value };
}

/** In name order: what is kept of the server, with what it does now. */
async function overlaysOf(writes: Writes, namespace: string, serverId: string, outcomes: OverlayOutcomes | undefined): Promise<readonly OverlayView[]> {
  const views = await viewsOf(writes, namespace, serverId);
  if (!outcomes || views.length === 0) return views;
  const counted = await outcomes.of(namespace, serverId);
  return views.map((view) => ({ ...view, outcomes: counted(view.toolId, view.version) }));
}

async function viewsOf(writes: Writes, namespace: string, serverId: string): Promise<readonly OverlayView[]> {
  const kept = await new Shelf(writes, namespace, serverId).read();
  const record = writes.partition.serving().history.server(namespace, serverId)?.record;
  const all = new Map([...kept, ...overlaysIn(record).map((overlay) => [overlay.toolName, overlay] as const)]);
  const sorted = [...all.values()].sort((a, b) => compareText(a.toolName, b.toolName));
  const tools = new Map((record?.tools ?? []).map((tool) => [tool.name, tool]));
  return sorted.map((overlay) => {
    const tool = tools.get(overlay.toolName);
    if (tool?.overlay) return viewOf(serverId, overlay, overlay.trial ? "trial" : "shown", "");
    return viewOf(serverId, overlay, "inactive", whyInactive(record, tool, overlay, writes.partition.deps.stubs));
  });
}

function viewOf(serverId: string, overlay: Overlay, state: OverlayView["state"], why: string): OverlayView {
  return { toolId: toolId(serverId, overlay.toolName), overlay, version: versionOf(overlay), state, why };
}

function whyInactive(record: ServerRecord | undefined, tool: Tool | undefined, overlay: Overlay, stubs: StubCodec): string {
  if (!record) return "its server is not registered now";
  if (!tool) return "its server has no such tool now";
  const own = stubs.decode(ownStubOf(tool));
  switch (misfitOf(own, overlay)) {
    case "definition":
      return own.digest === "" ? "the tool's definition is not known yet" : "the tool has another definition now: propose it anew";
    case "label":
      return "the tool's registrant labels it otherwise now: propose it anew";
    default:
      return "it fits and was not laid over the label: approve it again";
  }
}

function refuseMisfits(record: ServerRecord, overlays: readonly ProposedOverlay[], stubs: StubCodec): void {
  const tools = new Map(record.tools.map((tool) => [tool.name, tool]));
  const violations = overlays.flatMap((overlay, i) => misfitViolation(`overlays[${i}]`, overlay, tools.get(overlay.toolName), stubs) ?? []);
  if (violations.length > 0) throw invalidRequest(violations);
}

function misfitViolation(field: string, overlay: ProposedOverlay, tool: Tool | undefined, stubs: StubCodec): Violation | undefined {
  if (!tool) return { field: `${field}.tool_name`, description: `${overlay.toolName} is no tool of this server` };
  const own = stubs.decode(ownStubOf(tool));
  switch (misfitOf(own, overlay)) {
    case "definition": {
      const now = own.digest === "" ? "is not known yet: load it" : `is ${own.digest} now: propose the overlay anew`;
      return { field: `${field}.digest`, description: `is ${overlay.digest}, but the definition of ${overlay.toolName} ${now}` };
    }
    case "label":
      return { field: `${field}.made_for`, description: `is not what the registrant says of ${overlay.toolName} now: propose the overlay anew` };
    default:
      return laidOverViolation(`${field}.texts`, own, overlay.texts);
  }
}

function overlayOf({ toolName, texts, madeFor, digest }: ProposedOverlay, trial: boolean, by: string, atMs: number): Overlay {
  return { toolName, texts, madeFor, digest, trial, by, atMs };
}

/** Servers asked of the store at once. */
const SIDE_BY_SIDE = 64;

/** Of these servers, whether they are registered or not; of all that are registered where none is named. */
export async function listOverlays(
  writes: Writes,
  namespace: string,
  serverIds: readonly string[],
  outcomes: OverlayOutcomes | undefined,
): Promise<OverlaysOutput> {
  const { history } = writes.partition.serving();
  const registered = (history.namespace(namespace)?.ordered ?? []).map(({ serverId }) => serverId);
  const ids = serverIds.length > 0 ? [...new Set(serverIds)] : registered;
  const views: OverlayView[] = [];
  for (let at = 0; at < ids.length; at += SIDE_BY_SIDE) {
    const some = ids.slice(at, at + SIDE_BY_SIDE).map((serverId) => overlaysOf(writes, namespace, serverId, outcomes));
    views.push(...(await Promise.all(some)).flat());
  }
  return { overlays: views.sort((a, b) => compareText(a.toolId, b.toolId)), position: history.head };
}
