/** Start of a registry that holds all harvested servers, against one that holds nothing, until it is ready. */
import { connect, declared } from "../support/client.mjs";
import { Scope, startRedis, startRegistry } from "../support/processes.mjs";
import { interleave, row } from "../support/stats.mjs";
import { corpus } from "../support/tools.mjs";

export async function corpusLoad(scope, { quick }) {
  const url = await startRedis(scope);
  const rows = [];
  for (const store of ["embedded", ...(url ? [url] : [])]) {
    const place = (name) => ({ store, dataDir: scope.folder(), args: ["--redis-prefix", `${name}:`] });
    const full = place("full");
    const empty = place("empty");
    const { servers, tools } = await fill(full);
    const rounds = await interleave(quick ? 3 : 9, () => start(full, tools), () => start(empty, 0));
    rows.push(row({ what: `${store === "embedded" ? store : "redis"}, ${servers} servers, ${tools} tools`, unit: "ms to ready", rounds }));
  }
  return { rows };
}

async function fill(options) {
  const scope = new Scope();
  try {
    const registry = await startRegistry(scope, options);
    const client = connect(scope, registry.address);
    const servers = corpus();
    let tools = 0;
    for (const { serverId, definitions } of servers) {
      const { tools: results } = await client.call("Register", declared(serverId, definitions));
      tools += results.filter(({ reasons }) => reasons.length === 0).length;
    }
    return { servers: servers.length, tools };
  } finally {
    await scope.close();
  }
}

/** Ready means that the whole catalogue is there, so the first list must be complete. */
async function start(options, tools) {
  const scope = new Scope();
  try {
    const registry = await startRegistry(scope, options);
    const client = connect(scope, registry.address);
    let listed = 0;
    let pageToken = "";
    do {
      const page = await client.call("GetStubs", { pageToken });
      listed += page.stubs.length;
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    if (listed !== tools) throw new Error(`the registry lists ${listed} tools, not ${tools}`);
    return registry.startMs;
  } finally {
    await scope.close();
  }
}
