/** The command line of the registry: settings in, one replica running, a clear sentence when it cannot. */
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { describeStore, type Replica, startReplica } from "./compose.js";
import { asksForHelp, asksForVersion, hasIdentity, helpText, loadConfig, processSources, type Sources } from "./config/config.js";
import type { Config } from "./config/setting.js";
import { formatAddress } from "./config/values.js";
import { sentencesOf } from "./files/problems.js";
import { fileProblems } from "./opened-files.js";
import { createLogger } from "./ops/logging.js";
import { systemClock, systemRandom } from "./ops/system.js";

const DEFAULT_GRPC = "127.0.0.1:7850";

/** Runs a registry until a signal stops it. Answers the exit code. */
export async function serve(sources: Sources): Promise<number> {
  if (asksForHelp(sources.argv)) {
    process.stdout.write(helpText());
    return 0;
  }
  if (asksForVersion(sources.argv)) {
    process.stdout.write(`${version()}\n`);
    return 0;
  }
  const loaded = loadConfig(sources);
  const config = loaded.ok ? loaded.config : loaded.readable;
  const log = createLogger({ level: config.logLevel });
  const world = { clock: systemClock, random: systemRandom, log, version: version(), env: sources.env };
  if (!loaded.ok) return fail([...loaded.errors, ...fileProblems(config, world)]);
  for (const warning of loaded.warnings) log.warn({}, warning);
  reportCrashes(log);
  try {
    const signal = stopSignal();
    for (let settings = config; ; ) {
      const replica = await startReplica(settings, world);
      void greet(settings, replica, signal);
      const why = await Promise.race([signal, replica.otherPartitions]);
      log.info(typeof why === "number" ? { partitions: why } : { signal: why }, "stopping");
      await replica.stop();
      log.info({}, "stopped");
      if (typeof why !== "number") return 0;
      // Only a replica that left the number to the store, and could not ask it at the start, gets here.
      settings = { ...config, partitions: why };
    }
  } catch (error) {
    return fail(sentencesOf(error));
  }
}

/** How long a replica may take to become ready before it says that it waits. */
const WAIT_TOLD_MS = 300;

async function greet(config: Config, replica: Replica, stopped: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<"waits">((resolve) => (timer = setTimeout(() => resolve("waits"), WAIT_TOLD_MS)));
  const first = await Promise.race([replica.ready.then(() => "ready"), stopped, patience]);
  clearTimeout(timer);
  if (first === "waits") {
    process.stdout.write(`toolcrib ${version()} is not ready yet, ${replica.problems()[0] ?? "almost"}\n  ${places(config, replica)}\n`);
    if ((await Promise.race([replica.ready.then(() => "ready"), stopped])) !== "ready") return;
  } else if (first !== "ready") return;
  process.stdout.write(welcome(config, replica));
}

/** Where it listens, in one line. */
function places(config: Config, { grpcAddress, httpAddress, opsAddress, gatewayAddress }: Replica): string {
  const scheme = config.tlsCert === "" ? "http" : "https";
  const http = httpAddress ? `, HTTP ${scheme}://${formatAddress(httpAddress)}` : "";
  const ops = `${scheme}://${formatAddress(opsAddress)}`;
  const gateway = gatewayAddress ? `, MCP ${scheme}://${formatAddress(gatewayAddress)}/mcp` : "";
  return `gRPC ${formatAddress(grpcAddress)}${http}, ops ${ops}, store ${describeStore(config)}${gateway}`;
}

/** Three lines that a newcomer can paste next. */
function welcome(config: Config, replica: Replica): string {
  const { grpcAddress } = replica;
  // Nobody can dial "every address", and a listener with a certificate is named by its scheme.
  const dialled = formatAddress({ ...grpcAddress, host: reachable(grpcAddress.host) });
  const registry =
    config.tlsCert !== "" ? ` --registry grpcs://${dialled}` : dialled === DEFAULT_GRPC ? "" : ` --registry ${dialled}`;
  const credentials = hasIdentity(config)
    ? ["Callers show who they are: TOOLCRIB_TOKEN_FILE (and TOOLCRIB_CA for your own authority)."]
    : [];
  return [
    `toolcrib ${version()} is up: ${places(config, replica)}`,
    ...credentials,
    "Paste next, in other terminals of this folder:",
    `  npx toolcrib wrap${registry} --id sample -- npx toolcrib sample`,
    `  npx toolcrib ls${registry}`,
    `  npx toolcrib watch${registry}`,
    "",
  ].join("\n");
}

function reachable(host: string): string {
  return host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  return String((manifest as { version: unknown }).version);
}

function fail(sentences: readonly string[]): number {
  for (const sentence of sentences) process.stderr.write(`toolcrib: ${sentence}\n`);
  return 1;
}

/** One Ctrl-C may arrive twice: from the terminal, and from an npm that passes it on. */
const SAME_SIGNAL_MS = 1_000;

/** The first SIGTERM or SIGINT stops gracefully; a later SIGINT ends the process at once, for those in a hurry. */
function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    let firstAtMs: number | undefined;
    process.once("SIGTERM", () => resolve("SIGTERM"));
    process.on("SIGINT", () => {
      firstAtMs ??= performance.now();
      if (performance.now() - firstAtMs > SAME_SIGNAL_MS) process.exit(130);
      resolve("SIGINT");
    });
  });
}

/** A failure that nobody expected is told with its cause before the process goes. */
function reportCrashes(log: { error(fields: object, message: string): void }): void {
  process.on("uncaughtException", (error) => {
    log.error({ err: error }, "a bug: the registry stops because it can no longer trust itself");
    process.exitCode = 1;
    process.exit();
  });
}

/** Whoever started the registry may stop listening to what it says; it goes on all the same. */
function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  outliveReaders();
  process.exitCode = await serve(processSources());
  // Nothing that still lingers, such as a keep-alive socket, may hold a stopped registry.
  process.exit();
}
