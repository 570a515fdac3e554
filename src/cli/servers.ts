import { toJson } from "@bufbuild/protobuf";
import { Command } from "commander";
import type { RegistryConnection } from "../client/connection.js";
import type { Server } from "../gen/toolcrib/v1/server_pb.js";
import { ConditionStatus, Retention, ServerSchema, ToolSource } from "../gen/toolcrib/v1/server_pb.js";
import { Availability } from "../gen/toolcrib/v1/stub_pb.js";
import type { Io } from "./io.js";
import { line } from "./io.js";
import type { RegistryOptions } from "./options.js";
import { withConnection, withJson, withRegistry } from "./options.js";
import { formatTable, grouped, printable } from "./table.js";

export function serversCommand(io: Io): Command {
  const command = new Command("servers").description("list the servers");
  return withJson(withRegistry(command)).action((options: RegistryOptions & { json?: boolean }) =>
    withConnection(options, async (registry, namespace) => {
      const { servers, stale } = await allServers(registry, namespace);
      if (options.json)
        line(
          io.stdout,
          JSON.stringify(
            servers.map((server) => toJson(ServerSchema, server)),
            null,
            2,
          ),
        );
      else print(io, servers);
      if (stale) line(io.stderr, "The registry cannot reach its store: this is the last that it knows.");
    }),
  );
}

/** Every server, page by page; `revision` is the last page's. */
export async function allServers(registry: RegistryConnection, namespace: string) {
  const servers: Server[] = [];
  let stale = false;
  let revision = "";
  let pageToken = "";
  do {
    const page = await registry.listServers({ namespace, pageToken, pageSize: 500 });
    servers.push(...page.servers);
    stale ||= page.stale;
    revision = page.revision;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return { servers, stale, revision };
}

function print(io: Io, servers: readonly Server[]): void {
  if (servers.length === 0) return line(io.stdout, "No servers.");
  const columns = [
    { head: "SERVER" },
    { head: "TOOLS", right: true },
    { head: "UP" },
    { head: "KEPT" },
    { head: "LISTED BY" },
    { head: "RUNNING", right: true },
    { head: "ENDPOINT", shrink: true },
  ];
  for (const text of formatTable(columns, servers.map(row))) line(io.stdout, text);
  for (const server of servers) for (const text of notes(server)) line(io.stdout, text);
}

function row(server: Server): string[] {
  const endpoint = server.instances.at(-1)?.endpoint;
  return [
    server.serverId,
    grouped(server.toolCount),
    server.availability === Availability.UNAVAILABLE ? "away" : "yes",
    server.retention === Retention.STANDING ? "standing" : "leased",
    server.source === ToolSource.INTROSPECTED ? "registry" : "itself",
    grouped(server.instances.length),
    endpoint || "(not dialled)",
  ];
}

/** What an operator has to know beyond the row: tools that are not listed, and conditions that do not hold. */
export function notes(server: Server): string[] {
  const rejected = server.rejectedTools.map(
    (tool) =>
      `  ${server.serverId}: not listed: ${printable(tool.name) || "(unnamed)"}: ${tool.reasons.map(printable).join("; ")}`,
  );
  const more = server.rejectedCount - server.rejectedTools.length;
  if (more > 0) rejected.push(`  ${server.serverId}: not listed: ${grouped(more)} more`);
  const bad = server.conditions.filter(({ status, message }) => status === ConditionStatus.FALSE && message !== "");
  // One cause often breaks several conditions.
  const causes = new Set(bad.map(({ message }) => `  ${server.serverId}: ${printable(message)}`));
  return [...rejected, ...causes];
}
