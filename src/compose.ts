/** Puts one replica together: the only place, with `core.ts`, that knows every room. */
import type { Store } from "./catalogue/ports.js";
import { hasIdentity } from "./config/config.js";
import { DEFAULT_NAMESPACE } from "./domain/ids.js";
import type { Config, HostPort } from "./config/setting.js";
import { formatAddress, isLoopback } from "./config/values.js";
import type { EgressPolicy, Own } from "./domain/admission/egress.js";
import { describeRedis, type RedisNode, readRedisAddress, redisNodes } from "./domain/redis-address.js";
import { Attempts } from "./files/problems.js";
import { keepGauges } from "./ops/gauges.js";
import { type Metrics } from "./ops/metrics.js";
import { type OpsServer, startOps } from "./ops/server.js";
import { machineAddresses } from "./ops/system.js";
import { type HttpServer, startHttp } from "./rpc/connect/server.js";
import { type GrpcOptions, type GrpcServer, startGrpc } from "./rpc/grpc/server.js";
import { createDoor, type Door } from "./rpc/identity/door.js";
import { REGISTER } from "./rpc/services/index.js";
import type { Tls } from "./rpc/tls.js";
import { openStore } from "./store/open.js";
import type { Gateway } from "./gateway/gateway.js";
import type { RedisFiles } from "./store/redis/redis-store.js";
import { composeGateway, gatewayTarget } from "./compose-gateway.js";
import { showsCallers } from "./config/gateway-exposure.js";
import { assemble, type Core, type World } from "./core.js";
import { type OpenedFiles, openFiles } from "./opened-files.js";
import { type OwnCredential, ownCredential } from "./rpc/identity/own.js";
import { takenAddresses } from "./taken-addresses.js";

/** A running replica. */
export interface Replica {
  readonly grpcAddress: { readonly host: string; readonly port: number };
  /** Undefined when it is off. */
  readonly httpAddress: { readonly host: string; readonly port: number } | undefined;
  readonly opsAddress: { readonly host: string; readonly port: number };
  /** Undefined where this process serves no gateway. */
  readonly gatewayAddress: { readonly host: string; readonly port: number } | undefined;
  /** Resolves when it has a catalogue to serve from. */
  readonly ready: Promise<void>;
  /** Why it is not ready; empty when it is. One sentence each. */
  problems(): readonly string[];
  /**
   * Resolves to the number of partitions that the store turned out to have, where it could not be asked at the start: a
   * replica started with that number can use it.
   */
  readonly otherPartitions: Promise<number>;
  /** Refuses what is new, lets what is under way end, leaves the store tidy. Safe to call twice. */
  stop(): Promise<void>;
}

/** Rejects with Problems, everything that is in the way, when files, the store or ports cannot be had; nothing is left open then. */
export async function startReplica(config: Config, world: World): Promise<Replica> {
  const { clock, log } = world;
  const opened: { close(): Promise<void> }[] = [];
  const own = storePlaces(config);
  const ready = promised<void>();
  const partitioned = promised<number>();
  try {
    const policy = egressPolicy(config, own);
    const attempts = new Attempts();
    const files = attempts.try(() => openFiles(config, world, policy));
    if (files) opened.push({ close: async () => files.close() });
    attempts.add(await takenAddresses(config));
    // With bad settings the store is left alone; a taken port is told together with what is wrong with the store.
    const store = files && (await attempts.tryLater(() => openStoreOf(config, world, own, partitioned.resolve)));
    if (store) opened.push(store);
    if (!files || !store || attempts.failed) throw attempts.problems(files && SECOND_REGISTRY);
    const { identity, tls } = files;
    const core = assemble(config, world, store, policy, files);
    const inside = insideCredential(config, world);
    const door = createDoor(core, inside?.letIn(identity) ?? identity);
    const problems = (): readonly string[] => notReady(core, describeStore(config));
    const ops = await startOps({ address: config.opsAddress, ready: problems, metrics: core.metrics.registry, log, tls });
    opened.push(ops);
    own.push({ what: "the registry's own ops listener", ...ops.address });
    const cached = core.metrics.schemaLoads.cell({ result: "cached" });
    const refusal = (path: string) => (path === REGISTER ? core.registry.refusal("register") : undefined);
    const grpc = await startGrpc({
      address: config.grpcAddress,
      door,
      tls,
      log,
      metrics: core.metrics,
      onRepeated: (method) => {
        if (method.endsWith("/GetFullSchema")) cached.value++;
      },
      graceMs: config.graceMs,
      refusal,
    });
    opened.push(grpc);
    own.push({ what: "the registry's own gRPC listener", ...grpc.address });
    const http = await httpOf(config, world, core.metrics, { door, tls, refusal });
    if (http) {
      opened.push(http);
      own.push({ what: "the registry's own HTTP listener", ...http.address });
    }
    const gateway = await gatewayOf(config, world, { grpc: grpc.address, token: inside?.token }, own, core.metrics);
    if (gateway) {
      opened.push({ close: () => gateway.stop() });
      own.push({ what: "the registry's own gateway", ...gateway.address });
    }
    const stopGauges = keepGauges({
      registry: core.registry,
      metrics: core.metrics,
      clock,
      onReady: (is) => {
        grpc.setReady(is);
        if (is) ready.resolve();
      },
      kept: core.kept,
      firstIndex: core.firstIndex,
    });
    core.start();
    const replica = replicaOf(core, store, files, { ops, grpc, http, gateway }, stopGauges);
    return { ...replica, ready: ready.promise, problems, otherPartitions: partitioned.promise };
  } catch (error) {
    for (const one of opened.reverse()) await one.close();
    throw error;
  }
}

interface Listening {
  readonly ops: OpsServer;
  readonly grpc: GrpcServer;
  readonly http: HttpServer | undefined;
  readonly gateway: Gateway | undefined;
}

function replicaOf(
  core: Core,
  store: Store,
  files: OpenedFiles,
  { ops, grpc, http, gateway }: Listening,
  stopGauges: () => void,
): Pick<Replica, "grpcAddress" | "httpAddress" | "opsAddress" | "gatewayAddress" | "stop"> {
  let stopping: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    // First of all, as long as the registry that it asks still answers.
    await gateway?.stop();
    grpc.drain();
    http?.drain();
    core.registry.drain();
    await Promise.all([grpc.close(), http?.close()]);
    stopGauges();
    await core.stop();
    await ops.close();
    files.close();
    await store.close();
  };
  return {
    grpcAddress: grpc.address,
    httpAddress: http?.address,
    opsAddress: ops.address,
    gatewayAddress: gateway?.address,
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
}

/** For a gateway in the process of a registry that asks who calls; undefined where it is told what to show, or whom to ask. */
function insideCredential(config: Config, { env = {} }: World): OwnCredential | undefined {
  const told = ["TOOLCRIB_URL", "TOOLCRIB_TOKEN", "TOOLCRIB_TOKEN_FILE", "TOOLCRIB_CERT"].some((name) => env[name]);
  if (!config.gateway || !hasIdentity(config) || told) return undefined;
  return ownCredential({ id: "gateway", grants: [{ role: "reader", namespaces: [env["TOOLCRIB_NAMESPACE"] || DEFAULT_NAMESPACE] }] });
}

interface Here {
  readonly grpc: HostPort;
  readonly token: string | undefined;
}

/** A gateway in this process asks the registry as any other does; TOOLCRIB_URL names another address of it, such as its certificate's. */
async function gatewayOf(config: Config, world: World, { grpc, token }: Here, own: readonly Own[], metrics: Metrics): Promise<Gateway | undefined> {
  if (!config.gateway) return undefined;
  const { env = {} } = world;
  const here = `${config.tlsCert === "" ? "grpc" : "grpcs"}://${formatAddress({ ...grpc, host: dialled(grpc.host) })}`;
  const named = gatewayTarget(env["TOOLCRIB_URL"] || here, env);
  const target = token === undefined ? named : { ...named, access: { ...named.access, token: () => token } };
  const identified = showsCallers(config, hasIdentity(config));
  return composeGateway(config, { target, namespace: env["TOOLCRIB_NAMESPACE"] ?? "", identified, own }, world, metrics.gateway);
}

/** Nobody can dial "every address". */
function dialled(host: string): string {
  return host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
}

/** Who is let in, and over what. */
interface Access {
  readonly door: Door;
  readonly tls: Tls | undefined;
  readonly refusal: NonNullable<GrpcOptions["refusal"]>;
}

async function httpOf(
  config: Config,
  { log, version }: World,
  metrics: Metrics,
  access: Access,
): Promise<HttpServer | undefined> {
  const { httpAddress, corsOrigins, graceMs } = config;
  if (httpAddress === "off") return undefined;
  const identified = hasIdentity(config);
  return startHttp({ ...access, address: httpAddress, log, version, metrics, identified, corsOrigins, graceMs });
}

/** Who can reach the registry decides what it may reach: registrants of this machine may name what they reach themselves. */
function egressPolicy(config: Config, own: readonly Own[]): EgressPolicy {
  const local = [config.grpcAddress, config.httpAddress, config.opsAddress].every(
    (a) => a === "off" || isLoopback(a.host),
  );
  return { inside: local ? "open" : "closed", allow: config.egressAllow, own: () => own, machine: machineAddresses };
}

function openStoreOf(
  config: Config,
  world: World,
  own: Own[],
  onPartitions: (count: number) => void,
): Promise<Store> {
  return openStore(config.store.kind === "redis" ? config.store.url : config.store.kind, {
    ...world,
    logger: world.log,
    dataDir: config.dataDir,
    keyPrefix: config.redisPrefix,
    partitions: config.partitions === 0 ? undefined : config.partitions,
    redis: { files: redisFiles(config), onNode: (node) => remember(own, node), onPartitions },
  });
}

/** For whoever starts the registry twice: folder and ports are all taken then. */
const SECOND_REGISTRY =
  "To run a second registry beside the first, give it a folder and ports of its own: --data-dir ./data-2 " +
  "--grpc-address 127.0.0.1:7860 --http-address 127.0.0.1:7861 --ops-address 127.0.0.1:7862";

/** Where the store is, as far as the settings say; nobody may register that as an MCP server. */
function storePlaces({ store }: Config): Own[] {
  const address = store.kind === "redis" ? readRedisAddress(store.url) : undefined;
  return address ? redisNodes(address).map((node) => ({ what: STORE, ...node })) : [];
}

const STORE = "the registry's own store";

/** A primary behind Sentinels and the nodes of a Cluster become known while they are used. */
function remember(own: Own[], { host, port }: RedisNode): void {
  if (!own.some((known) => known.host === host && known.port === port)) own.push({ what: STORE, host, port });
}

function redisFiles(config: Config): RedisFiles {
  const { redisPasswordFile, redisSentinelPasswordFile, redisCa, redisCert, redisKey } = config;
  const passwords = { password: redisPasswordFile, sentinelPassword: redisSentinelPasswordFile };
  return { ...passwords, ca: redisCa, cert: redisCert, key: redisKey };
}

/** The store in a few words, without what is secret of it. */
export function describeStore({ store, dataDir }: Config): string {
  if (store.kind === "embedded") return `embedded in ${dataDir}`;
  if (store.kind === "memory") return "in memory";
  const address = readRedisAddress(store.url);
  return address ? describeRedis(address) : "Redis";
}

/** Why this replica should get no traffic. A store lost after a good start is no reason: reads go on from memory (P8). */
function notReady({ registry, firstIndex }: Core, store: string): readonly string[] {
  const waiting = registry.partitions.flatMap(({ state, index }) => {
    if (state.kind !== "starting") return [];
    const why = state.cause === undefined ? state.problem : `waiting for ${store} (${state.cause})`;
    return [registry.partitions.length === 1 ? why : `partition ${index}: ${why}`];
  });
  return waiting.length > 0 ? waiting : [firstIndex.problem ?? []].flat();
}

function promised<T>(): { readonly promise: Promise<T>; resolve(value: T): void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((done) => (resolve = done));
  return { promise, resolve: (value) => resolve(value) };
}
