import { setTimeout as delay } from "node:timers/promises";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { Command } from "commander";
import { applyEdits, format } from "jsonc-parser";
import type { RegistryConnection } from "../client/connection.js";
import { RegistryError } from "../client/registry-error.js";
import type { FullSchema } from "../gen/toolcrib/v1/registry_service_pb.js";
import { Freshness, SchemaView } from "../gen/toolcrib/v1/registry_service_pb.js";
import { DIGEST_PATTERN } from "../domain/ids.js";
import type { Io } from "./io.js";
import { CommandError, line } from "./io.js";
import type { RegistryOptions } from "./options.js";
import { withConnection, withJson, withRegistry } from "./options.js";
import { grouped } from "./table.js";

interface GetOptions extends RegistryOptions {
  readonly inputOnly?: boolean;
  readonly compact?: boolean;
  readonly json?: boolean;
  readonly raw?: boolean;
}

/** The first question for a definition makes the registry fetch it; a person can wait that long. */
const PATIENCE_MS = 15_000;

export function getCommand(io: Io): Command {
  const command = new Command("get")
    .description("print the full schema of one tool")
    .argument("<tool_id>", "such as memory/create_entities, or a digest")
    .option("--input-only", "only the schema of the arguments")
    .option("--compact", "what a first call needs: required parameters, types, first sentences")
    .option("--raw", "byte for byte as the server sent it");
  return withJson(withRegistry(command)).action((id: string, options: GetOptions) =>
    withConnection(options, async (registry, namespace) => {
      if (options.inputOnly && options.compact) throw new CommandError("choose one of --input-only and --compact", 2);
      const view = options.inputOnly ? SchemaView.INPUT_ONLY : options.compact ? SchemaView.COMPACT : SchemaView.FULL;
      const schema = await load(registry, namespace, id, view);
      if (options.raw) io.stdout.write(schema.definition);
      else if (options.json) line(io.stdout, asJson(schema));
      else {
        line(io.stdout, pretty(Buffer.from(schema.definition).toString("utf8")));
        line(io.stderr, origin(schema));
      }
    }),
  );
}

async function load(
  registry: RegistryConnection,
  namespace: string,
  id: string,
  view: SchemaView,
): Promise<FullSchema> {
  const digest = DIGEST_PATTERN.test(id);
  if (!digest && !id.includes("/")) {
    throw new CommandError(`"${id}" is no tool_id: it is made of server and tool, such as memory/create_entities`, 2);
  }
  const key = digest ? ({ case: "digest", value: id } as const) : ({ case: "toolId", value: id } as const);
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      const { schema } = await registry.getFullSchema({ namespace, key, view });
      if (!schema) throw new CommandError("the registry answered without a schema");
      return schema;
    } catch (error) {
      const pending = error instanceof RegistryError && error.reason === "LOAD_PENDING";
      if (!pending || performance.now() >= until) throw error;
      await delay(Math.min(Math.max(error.retryAfterMs ?? 200, 50), 2_000));
    }
  }
}

/** Spaces it out without reading its values: a large number keeps its digits. */
function pretty(text: string): string {
  return applyEdits(text, format(text, undefined, { insertSpaces: true, tabSize: 2, eol: "\n" }));
}

function asJson(schema: FullSchema): string {
  const facts = {
    toolId: schema.toolId,
    digest: schema.digest,
    freshness: Freshness[schema.freshness],
    ...(schema.fetchedAt ? { fetchedAt: timestampDate(schema.fetchedAt).toISOString() } : {}),
    view: SchemaView[schema.view],
  };
  const definition = Buffer.from(schema.definition).toString("utf8");
  return pretty(`${JSON.stringify(facts).slice(0, -1)},"definition":${definition}}`);
}

function origin(schema: FullSchema): string {
  const bytes = schema.definition.byteLength;
  const size = `${grouped(bytes)} bytes, ${grouped(Math.ceil(bytes / 4))} tokens (estimated)`;
  const freshness = (Freshness[schema.freshness] ?? "").toLowerCase();
  return `${schema.toolId || schema.digest}: ${freshness}, ${size}, ${schema.digest}`;
}
