/** `toolcrib enhance approve`, `show`, `withdraw`: what operators do with proposed labels. */
import { toJson } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { Command } from "commander";
import type { RegistryConnection } from "../../client/connection.js";
import { splitToolId } from "../../domain/ids.js";
import { ListOverlaysResponseSchema, type Overlay, Overlay_State } from "../../gen/toolcrib/v1/admin_service_pb.js";
import { explain } from "../failure.js";
import type { Io } from "../io.js";
import { CommandError, line } from "../io.js";
import { collect, type RegistryOptions, withConnection, withJson, withRegistry } from "../options.js";
import { grouped, printable } from "../table.js";
import { type Proposal, readProposals } from "./file.js";

/** Overlays of one call: with the longest labels well below a message. */
const AT_ONCE = 500;

export function approveCommand(io: Io, setExitCode: (code: number) => void): Command {
  const command = new Command("approve")
    .description("show the labels of a reviewed file instead of the registrants' own; definitions stay as they are")
    .argument("<file>", "as `toolcrib enhance propose` wrote it")
    .option("--trial", "only to half of the callers of FindTools, to compare; approving again without it ends the trial")
    .option("--tool <tool_id>", "only these of the file", collect);
  return withRegistry(command).action((path: string, options: RegistryOptions & { trial?: boolean; tool?: string[] }) =>
    withConnection(options, async (registry, namespace) => {
      const all = readProposals(path);
      const missing = (options.tool ?? []).filter((id) => !all.some(({ toolId }) => toolId === id));
      if (missing.length > 0) throw new CommandError(`${path} holds no label for ${missing.join(", ")}`);
      const chosen = options.tool ? all.filter(({ toolId }) => options.tool?.includes(toolId)) : all;
      if (chosen.length === 0) throw new CommandError(`${path} holds no labels`);
      for (const [serverId, proposals] of byServer(chosen))
        for (let at = 0; at < proposals.length; at += AT_ONCE)
          try {
            await approveSome(registry, namespace, serverId, proposals.slice(at, at + AT_ONCE), options.trial === true, io);
          } catch (error) {
            // One server's labels stand or fall together; those of the others do not depend on them.
            for (const text of explain(error).lines) line(io.stderr, `${serverId}: ${text}`);
            setExitCode(1);
          }
    }),
  );
}

async function approveSome(registry: RegistryConnection, namespace: string, serverId: string, proposals: readonly Proposal[], trial: boolean, io: Io): Promise<void> {
  const overlays = proposals.map(({ toolId, texts, digest, madeFor }) => ({
    toolName: splitToolId(toolId)?.toolName ?? "",
    texts: { ...texts, keywords: [...texts.keywords] },
    digest,
    madeFor: { ...madeFor, keywords: [...madeFor.keywords] },
  }));
  const { changed } = await registry.approveOverlays({ namespace, serverId, overlays, trial });
  const same = proposals.length - changed;
  const labels = `${grouped(changed)} ${changed === 1 ? "label" : "labels"}`;
  const what = trial ? `${labels} on trial: half of the callers of FindTools are shown ${changed === 1 ? "it" : "them"}` : `${labels} shown to everybody`;
  line(io.stdout, `${serverId}: ${what}${same > 0 ? `; ${grouped(same)} as before` : ""}.`);
}

function byServer(proposals: readonly Proposal[]): ReadonlyMap<string, readonly Proposal[]> {
  const servers = new Map<string, Proposal[]>();
  for (const proposal of proposals) {
    const serverId = splitToolId(proposal.toolId)?.serverId ?? "";
    servers.set(serverId, [...(servers.get(serverId) ?? []), proposal]);
  }
  return servers;
}

export function showCommand(io: Io): Command {
  const command = new Command("show")
    .description("the overlays that were approved, with what they do now")
    .argument("[server_id...]", "only of these; they need not be registered any more");
  return withJson(withRegistry(command)).action((serverIds: string[], options: RegistryOptions & { json?: boolean }) =>
    withConnection(options, async (registry, namespace) => {
      const answer = await registry.listOverlays({ namespace, serverIds });
      if (options.json) return line(io.stdout, JSON.stringify(toJson(ListOverlaysResponseSchema, answer), null, 2));
      for (const text of showLines(answer.overlays)) line(io.stdout, text);
    }),
  );
}

export function showLines(overlays: readonly Overlay[]): string[] {
  if (overlays.length === 0) return ["No overlays."];
  return overlays.flatMap((overlay) => {
    const { toolId, state, why, texts, madeFor, approvedBy, approvedAt, version } = overlay;
    const since = approvedAt ? timestampDate(approvedAt).toISOString().slice(0, 16).replace("T", " ") : "?";
    return [
      `${toolId}  ${STATE[state] ?? "unknown"}${why === "" ? "" : `: ${why}`}  (${version}, approved by ${printable(approvedBy)} at ${since} UTC)`,
      ...changeLines("description", madeFor?.briefDescription ?? "", texts?.briefDescription ?? ""),
      ...changeLines("keywords", (madeFor?.keywords ?? []).join(", "), (texts?.keywords ?? []).join(", ")),
      ...changeLines("use when", madeFor?.useWhen ?? "", texts?.useWhen ?? ""),
    ];
  });
}

const STATE: Readonly<Record<Overlay_State, string>> = {
  [Overlay_State.UNSPECIFIED]: "unknown",
  [Overlay_State.SHOWN]: "shown",
  [Overlay_State.TRIAL]: "on trial",
  [Overlay_State.INACTIVE]: "inactive",
};

function changeLines(what: string, before: string, after: string): string[] {
  if (after === "" || after === before) return [];
  return [...(before === "" ? [] : [`  - ${what}: ${printable(before)}`]), `  + ${what}: ${printable(after)}`];
}

export function withdrawCommand(io: Io): Command {
  const command = new Command("withdraw")
    .description("show the registrants' own labels again")
    .argument("<id...>", "tool_ids, or server_ids for all overlays of a server");
  return withRegistry(command).action((ids: string[], options: RegistryOptions) =>
    withConnection(options, async (registry, namespace) => {
      for (const [serverId, toolNames] of asked(ids)) {
        const { toolNames: gone } = await registry.withdrawOverlays({ namespace, serverId, toolNames });
        line(io.stdout, gone.length === 0 ? `${serverId}: nothing to withdraw.` : `${serverId}: ${grouped(gone.length)} withdrawn: ${gone.join(", ")}.`);
      }
    }),
  );
}

/** Server → tool names; none for all of them. */
function asked(ids: readonly string[]): ReadonlyMap<string, string[]> {
  const servers = new Map<string, string[]>();
  const whole = new Set(ids.filter((id) => !id.includes("/")));
  for (const id of ids) {
    const parts = splitToolId(id);
    const serverId = parts?.serverId ?? id;
    const before = servers.get(serverId) ?? [];
    servers.set(serverId, parts && !whole.has(serverId) ? [...before, parts.toolName] : before);
  }
  return servers;
}
