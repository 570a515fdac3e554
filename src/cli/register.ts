import { Command, Option } from "commander";
import type { RegistryConnection } from "../client/connection.js";
import { type ProbeOptions, probeSettings } from "../client/probe.js";
import { RegistryError } from "../client/registry-error.js";
import type { RegisterResponse } from "../gen/toolcrib/v1/registry_service_pb.js";
import type { Server } from "../gen/toolcrib/v1/server_pb.js";
import { ConditionStatus, Transport } from "../gen/toolcrib/v1/server_pb.js";
import type { Io } from "./io.js";
import { line } from "./io.js";
import type { RegistryOptions } from "./options.js";
import { collect, withConnection, withRegistry } from "./options.js";
import { type ProbeFlags, probeOf, withProbe } from "./probe-options.js";
import { notes } from "./servers.js";
import { grouped, printable } from "./table.js";

interface RegisterOptions extends RegistryOptions, ProbeFlags {
  readonly id: string;
  readonly url: string;
  readonly title?: string;
  readonly tag?: string[];
  readonly transport: keyof typeof TRANSPORTS;
  readonly credential?: string;
  readonly sharePrivate?: boolean;
}

const TRANSPORTS = { http: Transport.STREAMABLE_HTTP, sse: Transport.HTTP_SSE } as const;

/** The registry lists the server before it answers. */
const LISTING_MS = 30_000;

export function registerCommand(io: Io): Command {
  const command = new Command("register")
    .description("register a running MCP server by its URL, until it is deregistered; the registry lists it itself")
    .requiredOption("--id <server_id>", "required: [a-z0-9] then [a-z0-9._-], at most 63 characters")
    .requiredOption("--url <url>", "required: the server's MCP endpoint")
    .addOption(
      new Option(
        "--transport <name>",
        "http: Streamable HTTP, and HTTP+SSE where it is refused; sse: HTTP+SSE of 2024-11-05",
      )
        .choices(Object.keys(TRANSPORTS))
        .default("http"),
    )
    .option("--title <text>", "a display name")
    .option("--tag <tag>", "a tag for all of its tools", collect)
    .option("--credential <name>", "a credential of the registry's --upstream-credentials file, shown to the server")
    .option("--share-private", "list it for the whole namespace although the server marks its list as private");
  return withRegistry(withProbe(command)).action((options: RegisterOptions) =>
    withConnection(options, async (registry, namespace) => {
      const answer = await registerStanding(registry, namespace, {
        serverId: options.id,
        endpoint: options.url,
        title: options.title ?? "",
        tags: options.tag ?? [],
        transport: TRANSPORTS[options.transport],
        credential: options.credential ?? "",
        sharePrivate: options.sharePrivate ?? false,
        probe: probeOf(options),
      });
      if (answer.pending) {
        const { server } = await registry.getServer({ namespace, serverId: options.id, minRevision: answer.revision });
        for (const text of unlisted(options.id, namespace, options.url, server)) line(io.stdout, text);
      } else await report(io, registry, namespace, options.id, answer);
    }),
  );
}

/** Reasons that come from a wrong address as often as from a server that is away. */
const OF_THE_ADDRESS: ReadonlySet<string> = new Set(["HTTP_ERROR", "PROTOCOL_ERROR", "CONNECT_FAILED"]);

/** What is said where a server is registered and could not be listed. */
export function unlisted(serverId: string, namespace: string, url: string, server: Server | undefined): string[] {
  const failed = server?.conditions.find((c) => c.status === ConditionStatus.FALSE && c.message !== "");
  const why = printable(failed?.message ?? "it does not answer").replace(/[.\s]+$/, "");
  const end = /[?!]$/.test(why) ? "" : ".";
  const lines = [`Registered ${serverId}, but it could not be listed yet: ${why}${end} It is listed when it can be.`];
  if (!OF_THE_ADDRESS.has(failed?.reason ?? "") || /refuses connections/.test(why)) return lines;
  const away = `toolcrib deregister ${serverId}${namespace === "" ? "" : ` --namespace ${namespace}`}`;
  return [...lines, `Check the URL ${shown(url)} (MCP servers often answer at /mcp), or \`${away}\`.`];
}

/** Credentials may stand before the host and in the query. */
function shown(url: string): string {
  if (!URL.canParse(url)) return printable(url.replace(/[?#].*$/s, ""));
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

/** A running server, as an operator registers it. */
export interface StandingServer {
  readonly serverId: string;
  readonly endpoint: string;
  readonly title: string;
  readonly tags: readonly string[];
  readonly transport: Transport;
  /** The named credential that the registry shows to it; none if absent. */
  readonly credential?: string;
  readonly sharePrivate?: boolean;
  /** Undefined: as the registry is set. */
  readonly probe?: ProbeOptions | undefined;
}

export function registerStanding(
  registry: RegistryConnection,
  namespace: string,
  { probe, ...server }: StandingServer,
): Promise<RegisterResponse> {
  const request = {
    ...server,
    tags: [...server.tags],
    ...(probe && { probe: probeSettings(probe) }),
    namespace,
    retention: { case: "standing", value: true } as const,
    offer: { case: "introspect", value: {} } as const,
  };
  return whenTaken(() => registry.register(request, { timeoutMs: LISTING_MS }));
}

/** A busy registry says when to come back; whoever sits before a terminal need not do that by hand. */
const TRIES = 5;
const TURN_MS = 10_000;

async function whenTaken<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask();
    } catch (error) {
      if (tries >= TRIES || !(error instanceof RegistryError)) throw error;
      const { reason, retryAfterMs } = error;
      const shortly = retryAfterMs !== undefined && retryAfterMs <= TURN_MS;
      if (!shortly || (reason !== "OVERLOADED" && reason !== "QUOTA_EXCEEDED")) throw error;
      await new Promise((resolve) => setTimeout(resolve, retryAfterMs));
    }
  }
}

async function report(
  io: Io,
  registry: RegistryConnection,
  namespace: string,
  serverId: string,
  answer: RegisterResponse,
): Promise<void> {
  const { server } = await registry.getServer({ namespace, serverId, minRevision: answer.revision });
  const count = server?.toolCount ?? 0;
  line(io.stdout, `Registered ${serverId}: ${grouped(count)} ${count === 1 ? "tool" : "tools"} listed.`);
  if (server) for (const text of notes(server, Date.now())) line(io.stdout, text);
}
