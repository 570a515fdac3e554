/** What operators do to one tool: withhold it, and approve a definition of it. */
import { toJson } from "@bufbuild/protobuf";
import { Command } from "commander";
import {
  type ApproveToolResponse,
  ApproveToolResponseSchema,
  type QuarantineToolResponse,
  QuarantineToolResponseSchema,
} from "../gen/toolcrib/v1/admin_service_pb.js";
import type { Io } from "./io.js";
import { line } from "./io.js";
import type { RegistryOptions } from "./options.js";
import { withConnection, withJson, withRegistry } from "./options.js";
import { quarantineWords } from "./server-state.js";
import { printable } from "./table.js";

interface ToolOptions extends RegistryOptions {
  readonly json?: boolean;
}

export function quarantineCommand(io: Io): Command {
  const command = new Command("quarantine")
    .description("withhold a tool until its definition is approved: it is in no list, and no agent is offered it")
    .argument("<tool_id>", "the tool, server_id/tool_name")
    .requiredOption("--reason <text>", "required: why; everybody who looks for the tool reads it");
  return withJson(withRegistry(command)).action((toolId: string, options: ToolOptions & { reason: string }) =>
    withConnection(options, async (registry, namespace) => {
      const answer = await registry.quarantineTool({ namespace, toolId, reason: options.reason });
      if (options.json) return line(io.stdout, JSON.stringify(toJson(QuarantineToolResponseSchema, answer), null, 2));
      for (const text of withheld(answer, toolId, namespace)) line(io.stdout, text);
    }),
  );
}

export function approveCommand(io: Io): Command {
  const command = new Command("approve")
    .description("approve a definition of a quarantined tool: it is offered again as long as it has that one")
    .argument("<tool_id>", "the tool, server_id/tool_name")
    .option("--digest <digest>", "the definition, if not the one that the tool has now: sha256:… as `toolcrib servers --json` names it")
    .option("--any", "whatever definition it has and will have: the quarantine is forgotten");
  return withJson(withRegistry(command)).action((toolId: string, options: ToolOptions & { digest?: string; any?: boolean }) =>
    withConnection(options, async (registry, namespace) => {
      const { digest = "", any: anyDigest = false } = options;
      const answer = await registry.approveTool({ namespace, toolId, digest, anyDigest });
      if (options.json) return line(io.stdout, JSON.stringify(toJson(ApproveToolResponseSchema, answer), null, 2));
      for (const text of approved(answer, toolId)) line(io.stdout, text);
    }),
  );
}

export function withheld({ tool }: QuarantineToolResponse, toolId: string, namespace: string): string[] {
  const where = namespace === "" ? "" : ` --namespace ${namespace}`;
  const why = tool ? ` ${quarantineWords(tool)}` : "";
  const digest = tool?.digest ?? "";
  return [
    `${toolId} is quarantined${why}`,
    ...(digest === "" ? ["Its definition is not known yet."] : [`Its definition is ${digest}: read it with \`toolcrib get ${digest}${where}\`.`]),
    `No agent is offered it until \`toolcrib approve ${toolId}${where}\`.`,
  ];
}

export function approved({ released, tool, approvedDigest }: ApproveToolResponse, toolId: string): string[] {
  if (tool) {
    const now = tool.digest === "" ? "its definition is not known yet" : `its definition is ${printable(tool.digest)} now`;
    return [`${approvedDigest} is approved for ${toolId}, but ${now}: it stays withheld until it has the approved one.`];
  }
  if (approvedDigest !== "") return [`${toolId} is ${released ? "released" : "listed"} as long as its definition is ${approvedDigest}.`];
  return [released ? `${toolId} is released, whatever definition it has.` : `${toolId} is under no quarantine: nothing to approve.`];
}
