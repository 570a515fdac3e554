import { toJson } from "@bufbuild/protobuf";
import { Command } from "commander";
import type { RegistryConnection } from "../client/connection.js";
import type { Notice } from "../gen/toolcrib/v1/registry_service_pb.js";
import type { Instance, Server } from "../gen/toolcrib/v1/server_pb.js";
import { Retention, ServerSchema } from "../gen/toolcrib/v1/server_pb.js";
import { Availability } from "../gen/toolcrib/v1/stub_pb.js";
import type { Io } from "./io.js";
import { line } from "./io.js";
import type { RegistryOptions } from "./options.js";
import { withConnection, withJson, withRegistry } from "./options.js";
import type { Trouble } from "./server-state.js";
import { breakerWords, nextOf, noticeLines, quarantineWords, since, stateOf, stateWords, troublesOf, whyOf } from "./server-state.js";
import { cut, formatTable, grouped, printable } from "./table.js";

export function serversCommand(io: Io): Command {
  const command = new Command("servers").description("list the servers: what is down, since when and why");
  return withJson(withRegistry(command)).action((options: RegistryOptions & { json?: boolean }) =>
    withConnection(options, async (registry, namespace) => {
      const { servers, stale, notices } = await allServers(registry, namespace);
      if (options.json) {
        line(
          io.stdout,
          JSON.stringify(
            servers.map((server) => toJson(ServerSchema, server)),
            null,
            2,
          ),
        );
        for (const text of noticeLines(notices, Date.now())) line(io.stderr, text);
      } else for (const text of serverLines(servers, notices, Date.now())) line(io.stdout, text);
      if (stale) line(io.stderr, "The registry cannot reach its store: this is the last that it knows.");
    }),
  );
}

/** Every server, page by page; `revision` and `notices` are the last page's. */
export async function allServers(registry: RegistryConnection, namespace: string) {
  const servers: Server[] = [];
  let stale = false;
  let revision = "";
  let notices: readonly Notice[] = [];
  let pageToken = "";
  do {
    const page = await registry.listServers({ namespace, pageToken, pageSize: 500 });
    servers.push(...page.servers);
    stale ||= page.stale;
    revision = page.revision;
    notices = page.notices;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return { servers, stale, revision, notices };
}

/** What there is to see of the servers, for people. */
export function serverLines(servers: readonly Server[], notices: readonly Notice[], nowMs: number): string[] {
  const head = noticeLines(notices, nowMs);
  if (servers.length === 0) return [...head, "No servers."];
  const columns = [
    { head: "SERVER" },
    { head: "TOOLS", right: true },
    { head: "STATE" },
    { head: "WHY" },
    { head: "NEXT" },
    { head: "KEPT" },
    { head: "RUNS", right: true },
    { head: "ENDPOINT", shrink: true },
  ];
  const table = formatTable(
    columns,
    servers.map((server) => row(server, nowMs)),
  );
  return [...head, ...table, ...servers.flatMap((server) => notes(server, nowMs))];
}

/** The whole reason is among the notes. */
const WHY_WIDTH = 22;

function row(server: Server, nowMs: number): string[] {
  const endpoint = server.instances.at(-1)?.endpoint;
  return [
    server.serverId,
    grouped(server.toolCount),
    stateWords(stateOf(server), nowMs),
    cut(whyOf(server), WHY_WIDTH),
    nextOf(server, nowMs),
    server.retention === Retention.STANDING ? "standing" : "leased",
    runs(server),
    endpoint || "(not dialled)",
  ];
}

/** What an operator has to know beyond the row: who took it out, what is wrong with it, and tools that are not listed. */
export function notes(server: Server, nowMs: number): string[] {
  // One cause often breaks several conditions.
  const causes = new Set(troublesOf(server).map((trouble) => troubleWords(trouble, nowMs)));
  const all = [...breakerWords(server, nowMs), ...instanceWords(server)].filter((text) => text !== "");
  return [
    ...named(server, all),
    ...rejectedNotes(server),
    ...quarantinedNotes(server),
    ...named(
      server,
      [...causes].filter((text) => text !== ""),
    ),
  ];
}

/** The tools that are not listed, and why. */
export function rejectedNotes(server: Server): string[] {
  const rejected = server.rejectedTools.map(
    (tool) => `not listed: ${printable(tool.name) || "(unnamed)"}: ${tool.reasons.map(printable).join("; ")}`,
  );
  const more = server.rejectedCount - server.rejectedTools.length;
  if (more > 0) rejected.push(`not listed: ${grouped(more)} more`);
  return named(server, rejected);
}

/** The tools that are withheld, and why. */
function quarantinedNotes(server: Server): string[] {
  const withheld = server.quarantinedTools.map((tool) => `quarantined: ${printable(tool.toolId)} ${quarantineWords(tool)}`);
  const more = server.quarantinedCount - server.quarantinedTools.length;
  if (more > 0) withheld.push(`quarantined: ${grouped(more)} more`);
  return named(server, withheld);
}

function named({ serverId }: Server, texts: readonly string[]): string[] {
  return texts.map((text) => `  ${serverId}: ${text}`);
}

/** Those that are away while others of the same server answer; where all are, the server's own lines say it. */
function instanceWords({ instances }: Server): string[] {
  const away = instances.filter(isAway);
  if (away.length === 0 || away.length === instances.length) return [];
  return away.map(
    ({ endpoint, instanceId }) =>
      `its instance ${printable(endpoint) || printable(instanceId)} does not answer; ${
        instances.length - away.length === 1 ? "another does" : "others do"
      }`,
  );
}

function isAway({ availability }: Instance): boolean {
  return availability === Availability.UNAVAILABLE;
}

/** `2`, or `1/2` where one of two is away. */
function runs({ instances }: Server): string {
  const away = instances.filter(isAway).length;
  const all = grouped(instances.length);
  return away === 0 ? all : `${grouped(instances.length - away)}/${all}`;
}

function troubleWords({ holds, condition }: Trouble, nowMs: number): string {
  const message = printable(condition.message);
  if (holds === "") return message;
  return message === ""
    ? `${holds} ${since(condition.since, nowMs)}`
    : `${holds} ${since(condition.since, nowMs)}: ${message}`;
}
