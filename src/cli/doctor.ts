import { Command } from "commander";
import type { RegistryConnection } from "../client/connection.js";
import { registryError } from "../client/registry-error.js";
import { checkConnection, explainCall, NOT_SERVING } from "./doctor/connection.js";
import type { Finding, Level } from "./doctor/finding.js";
import { fail, ok, warn } from "./doctor/finding.js";
import { checkOps } from "./doctor/ops.js";
import { checkServers } from "./doctor/servers.js";
import type { Io } from "./io.js";
import { line } from "./io.js";
import { opsBase } from "./ops.js";
import type { RegistryOptions } from "./options.js";
import { withConnection, withJson, withRegistry } from "./options.js";
import { allServers } from "./servers.js";
import { grouped } from "./table.js";

interface DoctorOptions extends RegistryOptions {
  readonly ops?: string;
  readonly json?: boolean;
}

export function doctorCommand(io: Io, version: string, setExitCode: (code: number) => void): Command {
  const command = new Command("doctor")
    .description("look at the registry, its store and every server: what is wrong, and what to do")
    .option("--ops <host:port>", "the ops listener (default: the registry's host, two above its port)");
  return withJson(withRegistry(command)).action((options: DoctorOptions) =>
    withConnection(options, async (registry, namespace) => {
      const base = opsBase(registry.target, options.ops);
      const findings = await examine(
        io,
        registry,
        namespace,
        { base, access: registry.target.access, given: options.ops !== undefined },
        version,
      );
      if (options.json)
        line(io.stdout, JSON.stringify({ registry: registry.target.address, ops: base, findings }, null, 2));
      else print(io, findings);
      setExitCode(findings.some(({ level }) => level === "fail") ? 1 : 0);
    }),
  );
}

async function examine(
  io: Io,
  registry: RegistryConnection,
  namespace: string,
  ops: Parameters<typeof checkOps>[0],
  version: string,
): Promise<Finding[]> {
  const connection = await checkConnection(registry);
  const reached = !connection.some(({ level }) => level === "fail");
  // Where no call gets through, its ops listener may still say why, if it is where the user says.
  const answered = reached || connection.some(({ check }) => check === NOT_SERVING);
  const asked = answered || ops.given ? await checkOps(ops, version, io.ending) : [];
  return [...connection, ...asked, ...(reached ? await checkCatalogue(io, registry, namespace) : [])];
}

async function checkCatalogue(io: Io, registry: RegistryConnection, namespace: string): Promise<Finding[]> {
  let read: Awaited<ReturnType<typeof allServers>>;
  try {
    read = await allServers(registry, namespace);
  } catch (error) {
    const failed = registryError(error);
    return [
      explainCall(registry.target.address, failed) ??
        fail("connection", failed.message, "try again; its log may say more"),
    ];
  }
  const { servers, stale } = read;
  const context = { registryIsHere: registry.target.loopback, nowMs: Date.now(), ending: io.ending };
  return [
    ok("credentials", `the servers of namespace ${namespace || "default"} can be read`),
    ...(stale
      ? [
          fail(
            "store",
            "the registry cannot reach its store: it answers with the last that it knows",
            "look at the store; reads go on from memory, writes fail",
          ),
        ]
      : []),
    ...(servers.length === 0
      ? [
          warn(
            "servers",
            "no servers can be seen in this namespace",
            "wrap, register or import one (`toolcrib --help`); to a caller without a grant a namespace looks empty, too",
          ),
        ]
      : []),
    ...(await checkServers(servers, context)),
  ];
}

const LABELS: Readonly<Record<Level, string>> = { ok: "ok  ", warn: "warn", fail: "FAIL" };

function print(io: Io, findings: readonly Finding[]): void {
  for (const { check, level, text, todo } of findings) {
    line(io.stdout, `${LABELS[level]}  ${check}: ${text}`);
    if (todo) line(io.stdout, `      → ${todo}`);
  }
  const count = (wanted: Level): number => findings.filter(({ level }) => level === wanted).length;
  line(io.stdout, `${grouped(count("ok"))} ok, ${grouped(count("warn"))} to look at, ${grouped(count("fail"))} wrong`);
}
