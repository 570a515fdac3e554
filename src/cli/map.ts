/** The catalogue in a few hundred tokens, as an agent would read it. */
import { toJson } from "@bufbuild/protobuf";
import { Command } from "commander";
import { type GetModuleMapResponse, GetModuleMapResponseSchema } from "../gen/toolcrib/v1/gate_service_pb.js";
import { whole } from "./find.js";
import type { Io } from "./io.js";
import { line } from "./io.js";
import { type RegistryOptions, withConnection, withJson, withRegistry } from "./options.js";
import { grouped, printable } from "./table.js";

interface MapOptions extends RegistryOptions {
  readonly budget?: number;
  readonly json?: boolean;
}

export function mapCommand(io: Io): Command {
  const command = new Command("map")
    .description("what there is, in a few hundred tokens: the map that an agent is given")
    .argument("[module]", "look into one: a server, or server/module as the map names it")
    .option("--budget <tokens>", "estimated tokens that it may have (default: 500)", whole);
  return withJson(withRegistry(command)).action((module: string | undefined, options: MapOptions) =>
    withConnection(options, async (registry, namespace) => {
      const map = await registry.getModuleMap({ namespace, module: module ?? "", tokenBudget: options.budget ?? 0 });
      if (options.json) line(io.stdout, JSON.stringify(toJson(GetModuleMapResponseSchema, map), null, 2));
      else for (const text of mapLines(map)) line(io.stdout, text);
      if (map.stale) line(io.stderr, "The registry cannot reach its store: this is the last that it knows.");
    }),
  );
}

/** For people. */
export function mapLines({ text, estimatedTokens }: GetModuleMapResponse): string[] {
  return [...text.split("\n").map(printable), "", `${grouped(estimatedTokens)} tokens (estimated).`];
}
