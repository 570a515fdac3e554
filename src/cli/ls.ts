import { toJson } from "@bufbuild/protobuf";
import { Command } from "commander";
import type { RegistryConnection } from "../client/connection.js";
import type { Stub } from "../gen/toolcrib/v1/stub_pb.js";
import { Availability, StubSchema } from "../gen/toolcrib/v1/stub_pb.js";
import type { Io } from "./io.js";
import { line } from "./io.js";
import type { RegistryOptions } from "./options.js";
import { collect, withConnection, withJson, withRegistry } from "./options.js";
import { firstSentence, formatTable, grouped } from "./table.js";

interface LsOptions extends RegistryOptions {
  readonly tag?: string[];
  readonly server?: string[];
  readonly prefix?: string;
  readonly available?: boolean;
  readonly json?: boolean;
}

export function lsCommand(io: Io): Command {
  const command = new Command("ls")
    .description("list the tools")
    .option("--tag <tag>", "only tools with every one of these tags", collect)
    .option("--server <id>", "only tools of these servers", collect)
    .option("--prefix <text>", "only tools whose name begins like this")
    .option("--available", "only tools that a call is likely to reach now");
  return withJson(withRegistry(command)).action((options: LsOptions) =>
    withConnection(options, async (registry, namespace) => {
      const { stubs, stale } = await allStubs(registry, namespace, options);
      if (options.json)
        line(
          io.stdout,
          JSON.stringify(
            stubs.map((stub) => toJson(StubSchema, stub)),
            null,
            2,
          ),
        );
      else print(io, stubs);
      if (stale) line(io.stderr, "The registry cannot reach its store: this is the last that it knows.");
    }),
  );
}

async function allStubs(registry: RegistryConnection, namespace: string, options: LsOptions) {
  const filter = {
    tagsAll: options.tag ?? [],
    serverIds: options.server ?? [],
    namePrefix: options.prefix ?? "",
    availability: options.available ? Availability.AVAILABLE : Availability.UNSPECIFIED,
  };
  const stubs: Stub[] = [];
  let stale = false;
  let pageToken = "";
  do {
    const page = await registry.getStubs({ namespace, filter, pageToken });
    stubs.push(...page.stubs);
    stale ||= page.stale;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return { stubs, stale };
}

function print(io: Io, stubs: readonly Stub[]): void {
  if (stubs.length === 0) return line(io.stdout, "No tools.");
  const tagged = stubs.some((stub) => stub.tags.length > 0);
  const rows = stubs.map((stub) => [
    stub.toolId,
    stub.estimatedTokens > 0 ? grouped(stub.estimatedTokens) : "?",
    stub.availability === Availability.UNAVAILABLE ? "away" : "yes",
    ...(tagged ? [stub.tags.join(",")] : []),
    firstSentence(stub.briefDescription),
  ]);
  const columns = [
    { head: "TOOL" },
    { head: "TOKENS (estimated)", right: true },
    { head: "UP" },
    ...(tagged ? [{ head: "TAGS" }] : []),
    { head: "DESCRIPTION", shrink: true },
  ];
  for (const text of formatTable(columns, rows)) line(io.stdout, text);
  const tokens = stubs.reduce((sum, stub) => sum + stub.estimatedTokens, 0);
  const count = stubs.length === 1 ? "1 tool" : `${grouped(stubs.length)} tools`;
  line(io.stdout, `${count}; full schemas: ${grouped(tokens)} tokens (estimated)`);
}
