/** Reads that memory can answer, and what Redis hears of them: only what it hears of an idle registry. */
import { Redis } from "ioredis";
import { connect, declared, encode, SERVICE } from "../support/client.mjs";
import { h2load, noH2load } from "../support/h2load.mjs";
import { startRedis, startRegistry } from "../support/processes.mjs";
import { row } from "../support/stats.mjs";
import { definitionOf } from "../support/tools.mjs";

/** Following the log, sweeping and claims go on meanwhile: some ten commands a second, whatever is read. */
const AT_MOST_PER_CALL = 0.02;

const READS = {
  GetStubs: {},
  GetFullSchema: { key: { case: "toolId", value: "bench/look_up" } },
  GetServer: { serverId: "bench" },
};

export async function noStoreCall(scope, { quick }) {
  const skipped = noH2load();
  if (skipped) return { skipped };
  const url = await startRedis(scope);
  if (!url) return { skipped: "redis-server is not installed" };
  const redis = new Redis(url);
  scope.defer(() => redis.disconnect());
  const registry = await startRegistry(scope, { store: url });
  const client = connect(scope, registry.address);
  await client.call("Register", declared("bench", [definitionOf("look_up", 1_000)]));

  const rows = [];
  for (const [method, fields] of Object.entries(READS)) {
    const request = encode(`${method}Request`, fields);
    const answerBytes = (await client.raw(`${SERVICE}/${method}`, request)).byteLength;
    const calls = quick ? 10_000 : 30_000;
    const before = await commands(redis);
    await h2load(scope, registry, { path: `${SERVICE}/${method}`, request, answerBytes, calls });
    const rounds = { ours: [((await commands(redis)) - before) / calls] };
    rows.push(row({ what: method, unit: "store commands/call", rounds, atMost: AT_MOST_PER_CALL }));
  }
  return { rows };
}

/** Commands of others that Redis has run so far, those inside scripts included. */
async function commands(redis) {
  const stats = await redis.info("commandstats");
  let sum = 0;
  for (const [, name, calls] of stats.matchAll(/cmdstat_(\S+?):calls=(\d+)/g)) if (name !== "info") sum += Number(calls);
  return sum;
}
