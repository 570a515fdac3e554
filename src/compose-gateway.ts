/** Puts a gateway together: in a registry's process, or in one of its own. */
import { readFileSync } from "node:fs";
import { accessFrom } from "./client/access.js";
import { parseTarget, type Target } from "./client/target.js";
import type { GatewayConfig } from "./config/gateway.js";
import { isLoopback } from "./config/values.js";
import type { EgressPolicy, Own } from "./domain/admission/egress.js";
import { DEFAULT_NAMESPACE } from "./domain/ids.js";
import { watchKey } from "./files/api-key.js";
import { readList, unknownKeys } from "./files/json-file.js";
import { Attempts } from "./files/problems.js";
import type { PartsOptions } from "./gateway/assembly.js";
import type { GatewayObserver } from "./gateway/observer.js";
import { type Gateway, type GatewayOptions, startGateway } from "./gateway/gateway.js";
import type { CallerCredentialRule } from "./gateway/forward/api.js";
import { runStdioGateway } from "./gateway/stdio.js";
import type { World } from "./core.js";
import { machineAddresses } from "./ops/system.js";
import { openTls, type Tls } from "./rpc/tls.js";
import type { WatchedFiles } from "./files/watched-file.js";
import { type Credentials, watchCredentials } from "./upstream/credentials/credentials.js";

/** Where the registry is, and what the gateway may know of it. */
export interface GatewayPlace {
  readonly target: Target;
  readonly namespace: string;
  /** Callers show their own tokens. */
  readonly identified: boolean;
  /** What nobody may have called, as the registry's listeners. */
  readonly own: readonly Own[];
}

/** Rejects with Problems, or an Error of one sentence, when files or the address cannot be had; nothing is left open then. */
export async function composeGateway(config: GatewayConfig, place: GatewayPlace, world: World, observer: GatewayObserver): Promise<Gateway> {
  const files = openGatewayFiles(config, world);
  try {
    const gateway = await startGateway({ ...partsOf(config, place, files, world), ...facesOf(config, place), tls: files.tls, observer });
    return Object.assign(Object.create(gateway) as Gateway, {
      stop: async () => {
        await gateway.stop();
        files.close();
      },
    });
  } catch (error) {
    files.close();
    throw error;
  }
}

/** Serves this process's client until it goes or `ending` is aborted. */
export async function composeStdioGateway(config: GatewayConfig, place: GatewayPlace, world: World, ending: AbortSignal): Promise<void> {
  const files = openGatewayFiles({ ...config, tlsCert: "", tlsKey: "" }, world);
  const stdio = { input: process.stdin, output: process.stdout, ending };
  // Whoever can speak on a process's own input is on this machine.
  const local = { ...config, gatewayAddress: { host: "127.0.0.1", port: 0 } };
  try {
    await runStdioGateway({ ...partsOf(local, place, files, world), ...facesOf(local, place), ...stdio });
  } finally {
    files.close();
  }
}

/** The registry that variables and options name, as this gateway shows itself to it. Throws TargetError and AccessError. */
export function gatewayTarget(address: string | undefined, env: NonNullable<World["env"]>): Target {
  return { ...parseTarget(address ?? env["TOOLCRIB_URL"]), access: accessFrom(env) };
}

interface GatewayFiles {
  readonly credentials: Credentials | undefined;
  readonly rules: readonly CallerCredentialRule[];
  readonly tls: Tls | undefined;
  readonly selectorKey: WatchedFiles<string> | undefined;
  close(): void;
}

/** Throws Problems, everything that is wrong with the files, with nothing left open. */
function openGatewayFiles(config: GatewayConfig, { log, env = {} }: World): GatewayFiles {
  const { upstreamCredentials, tlsCert: cert, tlsKey: key, gatewayCallerCredentials, gatewaySelectorKeyFile: keyFile } = config;
  const attempts = new Attempts();
  const credentials = attempts.try(() => (upstreamCredentials === "" ? undefined : watchCredentials(upstreamCredentials, env, log)));
  const rules = attempts.try(() => (gatewayCallerCredentials === "" ? [] : readCallerCredentials(gatewayCallerCredentials)));
  const tls = attempts.try(() => (cert === "" || key === "" ? undefined : openTls({ cert, key, clientCa: "" }, log)));
  const selectorKey = attempts.try(() => (keyFile === "" ? undefined : watchKey("the selector's key", keyFile, log)));
  const close = (): void => {
    credentials?.close();
    tls?.close();
    selectorKey?.close();
  };
  if (rules && !attempts.failed) return { credentials, rules, tls, selectorKey, close };
  close();
  throw attempts.problems();
}

/** Most servers that want their callers' own credentials. */
const RULES = 1_000;

function readCallerCredentials(path: string): readonly CallerCredentialRule[] {
  const wrong = (problems: readonly string[]): Error => new Error(`The file of callers' credentials ${path}: ${problems.join("; ")}.`);
  const list = readList(readFileSync(path), "servers", RULES);
  if (!list.ok) throw wrong(list.problems);
  const problems = list.value.flatMap((entry, i) => [
    ...unknownKeys(`servers[${i}]`, entry, ["namespace", "server", "hosts", "header"]),
    ...(typeof entry["server"] === "string" ? [] : [`servers[${i}].server must be a server_id`]),
    ...(Array.isArray(entry["hosts"]) && entry["hosts"].every((h) => typeof h === "string") ? [] : [`servers[${i}].hosts must be a list of host names`]),
    ...(["string", "undefined"].includes(typeof entry["header"]) ? [] : [`servers[${i}].header must be a header's name`]),
    ...(["string", "undefined"].includes(typeof entry["namespace"]) ? [] : [`servers[${i}].namespace must be a namespace`]),
  ]);
  if (problems.length > 0) throw wrong(problems);
  return list.value.map(({ namespace = DEFAULT_NAMESPACE, server, hosts, header }) => ({
    namespace: namespace as string,
    serverId: server as string,
    hosts: hosts as string[],
    header: header as string | undefined,
  }));
}

function partsOf(config: GatewayConfig, place: GatewayPlace, files: GatewayFiles, world: World): PartsOptions {
  const namespace = place.namespace || DEFAULT_NAMESPACE;
  return {
    target: place.target,
    namespace,
    always: config.gatewayAlways.filter((tool) => tool.namespace === namespace).map((tool) => tool.toolId),
    idleTtlMs: config.gatewayIdle * 1_000,
    scopes: config.gatewayScopes.split(",").filter((scope) => scope !== ""),
    selector: selectorOf(config, files),
    policy: policyOf(config, place.own),
    credentials: files.credentials,
    callerCredentials: files.rules,
    log: world.log,
    version: world.version,
    clock: world.clock,
    random: () => world.random.next(),
  };
}

function selectorOf({ gatewaySelector: endpoint, gatewaySelectorModel: model }: GatewayConfig, { selectorKey }: GatewayFiles): PartsOptions["selector"] {
  if (endpoint === "") return undefined;
  return { endpoint, model, ...(selectorKey && { apiKey: () => selectorKey.value }) };
}

function facesOf(config: GatewayConfig, { identified }: GatewayPlace): Pick<GatewayOptions, "address" | "guarded" | "identification" | "mode" | "stableClients" | "maxStreams" | "graceMs"> {
  return {
    address: config.gatewayAddress,
    guarded: { hosts: listOf(config.gatewayHosts), origins: config.gatewayOrigins },
    identification: identified ? "caller" : "own",
    mode: config.gatewayMode,
    stableClients: listOf(config.gatewayStableClients),
    maxStreams: config.gatewayStreams,
    graceMs: config.graceMs,
  };
}

/** As the registry's: who can reach the gateway decides what it may reach by itself. */
function policyOf(config: GatewayConfig, own: readonly Own[]): EgressPolicy {
  const inside = isLoopback(config.gatewayAddress.host) ? "open" : "closed";
  return { inside, allow: config.egressAllow, own: () => own, machine: machineAddresses };
}

function listOf(text: string): readonly string[] {
  return text.split(",").flatMap((part) => part.trim().toLowerCase() || []);
}
