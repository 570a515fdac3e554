/** What operators do to one server: take it out, put it back, have it listed now. */
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { toJson } from "@bufbuild/protobuf";
import { Command } from "commander";
import {
  IsolateServerResponseSchema,
  type RefreshServerResponse,
  RefreshServerResponseSchema,
  type ResumeServerResponse,
  ResumeServerResponseSchema,
} from "../gen/toolcrib/v1/admin_service_pb.js";
import { type Server, ToolSource } from "../gen/toolcrib/v1/server_pb.js";
import { Availability } from "../gen/toolcrib/v1/stub_pb.js";
import type { Io } from "./io.js";
import { line } from "./io.js";
import type { RegistryOptions } from "./options.js";
import { withConnection, withJson, withRegistry } from "./options.js";
import { isolation, stateOf, toolsAre, troublesOf } from "./server-state.js";
import { notes, rejectedNotes } from "./servers.js";
import { grouped } from "./table.js";

interface AdminOptions extends RegistryOptions {
  readonly json?: boolean;
}

/** The registry asks up to three instances before it answers. */
const LISTING_MS = 30_000;

export function isolateCommand(io: Io): Command {
  const command = new Command("isolate")
    .description("take a server out: its tools stay listed as unavailable, and nobody dials it, until it is resumed")
    .argument("<server_id>", "the server")
    .requiredOption("--why <text>", "required: why; everybody who lists the server reads it");
  return withJson(withRegistry(command)).action((serverId: string, options: AdminOptions & { why: string }) =>
    withConnection(options, async (registry, namespace) => {
      const answer = await registry.isolateServer({ namespace, serverId, why: options.why });
      const say = () => isolated(answer.server, serverId, namespace, Date.now());
      print(io, options, IsolateServerResponseSchema, answer, say);
    }),
  );
}

export function resumeCommand(io: Io): Command {
  const command = new Command("resume")
    .description("put an isolated server back")
    .argument("<server_id>", "the server");
  return withJson(withRegistry(command)).action((serverId: string, options: AdminOptions) =>
    withConnection(options, async (registry, namespace) => {
      const answer = await registry.resumeServer({ namespace, serverId });
      print(io, options, ResumeServerResponseSchema, answer, () => resumed(answer, serverId));
    }),
  );
}

export function refreshCommand(io: Io): Command {
  const command = new Command("refresh")
    .description("have the registry list a server now, whatever its pace and its breaker say")
    .argument("<server_id>", "the server");
  return withJson(withRegistry(command)).action((serverId: string, options: AdminOptions) =>
    withConnection(options, async (registry, namespace) => {
      const answer = await registry.refreshServer({ namespace, serverId }, { timeoutMs: LISTING_MS });
      print(io, options, RefreshServerResponseSchema, answer, () => refreshed(answer, serverId, Date.now()));
    }),
  );
}

function print<D extends DescMessage>(
  io: Io,
  { json }: AdminOptions,
  desc: D,
  answer: MessageShape<D>,
  say: () => readonly string[],
): void {
  if (json) return line(io.stdout, JSON.stringify(toJson(desc, answer), null, 2));
  for (const text of say()) line(io.stdout, text);
}

export function isolated(server: Server | undefined, serverId: string, namespace: string, nowMs: number): string[] {
  const back = `toolcrib resume ${serverId}${namespace === "" ? "" : ` --namespace ${namespace}`}`;
  if (!server) return [`${serverId} is isolated until \`${back}\`.`];
  return [
    `${serverId} is ${isolation(server, nowMs)}`,
    `Its ${toolsAre(server.toolCount)} unavailable until \`${back}\`.`,
  ];
}

export function resumed({ server, resumed: was }: ResumeServerResponse, serverId: string): string[] {
  if (!was) return [`${serverId} was not isolated: nothing to resume.`];
  const count = toolsAre(server?.toolCount ?? 0);
  if (server?.availability === Availability.AVAILABLE) return [`${serverId} is back: its ${count} available.`];
  return [
    `${serverId} is resumed: its ${count} available once it answers; \`toolcrib servers\` shows whether it does.`,
  ];
}

export function refreshed(answer: RefreshServerResponse, serverId: string, nowMs: number): string[] {
  const { server, listed, changed } = answer;
  const what = `${grouped(listed)} ${listed === 1 ? "tool" : "tools"}`;
  const lines = [`${serverId} lists ${what}: ${changed ? "the catalogue has changed" : "nothing has changed"}.`];
  const held = (server?.toolCount ?? 0) + (server?.rejectedCount ?? 0);
  if (server?.source === ToolSource.INTROSPECTED && held > listed)
    lines.push(`The catalogue still holds ${grouped(held)}: a list that lost tools is believed after another asking.`);
  if (!server) return lines;
  if (!seenFailing(server)) return [...lines, ...notes(server, nowMs)];
  // What is known of its failures is older than this answer.
  return [
    ...lines,
    ...rejectedNotes(server),
    "It answers again: `toolcrib servers` shows it up once its next look has been.",
  ];
}

/** Its health says that it does not answer; isolation is an operator's word and no failure. */
function seenFailing(server: Server): boolean {
  const { kind } = stateOf(server);
  if (kind === "isolated") return false;
  return kind !== "up" || troublesOf(server).some(({ holds }) => holds === "");
}
