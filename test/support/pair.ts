/** Two replicas on one Redis, and what tests ask of them. */
import { onTestFinished } from "vitest";
import { startRedis, type TestRedis } from "./redis.js";
import { type RegistryProcess, RemoteRegistry, type RemoteWatch, startRegistry } from "./registry.js";
import { eventually } from "./upstream.js";

export interface Replica {
  readonly process: RegistryProcess;
  readonly api: RemoteRegistry;
}

export interface Pair {
  readonly redis: TestRedis;
  readonly a: Replica;
  readonly b: Replica;
}

/** Stopped when the test ends. */
export async function redisForTest(): Promise<TestRedis> {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  return redis;
}

export async function startReplicaOn(
  url: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
  port = 0,
): Promise<Replica> {
  const process = await startRegistry({ store: url, args, env, port });
  return { process, api: new RemoteRegistry(process.grpc) };
}

export async function startPair(redis?: TestRedis): Promise<Pair> {
  const shared = redis ?? (await redisForTest());
  const [a, b] = await Promise.all([startReplicaOn(shared.url), startReplicaOn(shared.url)]);
  return { redis: shared, a, b };
}

/**
 * Registers a tool of its own and waits until each watcher heard of it: whatever was committed before has then arrived
 * there too, so what is still missing will not come.
 */
export async function flush(writer: RemoteRegistry, watches: readonly RemoteWatch[], marker: string): Promise<void> {
  const definition = Buffer.from(JSON.stringify({ name: "mark", inputSchema: { type: "object" } }));
  await writer.call("register", {
    serverId: marker,
    instanceId: "marker-instance",
    leaseTtl: { seconds: 3600 },
    declared: { tools: [{ definition }] },
  });
  await eventually(
    () => watches.map((w) => w.told.includes(`REGISTERED ${marker}/mark`)),
    (heard) => heard.every(Boolean),
  );
}

/** What a watcher was told about one server. */
export function toldOf(watch: RemoteWatch, serverId: string): string[] {
  return watch.events.filter((e) => e.serverId === serverId).map((e) => `${e.type} ${e.toolId || e.serverId}`);
}

/** A resumed watch, once it knows how far it is. */
export async function resume(api: RemoteRegistry, token: string): Promise<RemoteWatch> {
  const watch = api.watch({ resumeToken: token });
  await eventually(
    () => watch.bookmarks > 0 || watch.error !== undefined,
    (done) => done,
  );
  if (watch.error) throw watch.error;
  return watch;
}
