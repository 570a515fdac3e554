/** How many Registers of new servers a registry takes, by store. For information: the disk decides much of it. */
import { declared, encode, SERVICE, connect } from "../support/client.mjs";
import { startRedis, startRegistry } from "../support/processes.mjs";
import { interleave, row } from "../support/stats.mjs";
import { Streams } from "../support/streams.mjs";
import { definitionOf } from "../support/tools.mjs";

const IN_FLIGHT = 32;
const TOOLS = 10;

export async function commit(scope, { quick }) {
  const url = await startRedis(scope);
  const stores = ["embedded", ...(url ? [url] : [])];
  const memory = await target(scope, "memory");
  const calls = quick ? 300 : 1_000;
  const rows = [];
  for (const store of stores) {
    const other = await target(scope, store);
    const rounds = await interleave(quick ? 3 : 7, () => other.register(calls), () => memory.register(calls));
    rows.push(row({ what: `${store === "embedded" ? store : "redis"} against memory, ${TOOLS} tools`, unit: "Registers/s", rounds }));
  }
  return { rows };
}

async function target(scope, store) {
  const registry = await startRegistry(scope, { store });
  const client = connect(scope, registry.address);
  const connection = await Streams.connect(scope, registry.address);
  const tools = Array.from({ length: TOOLS }, (_, t) => definitionOf(`tool_${t}`, 600));
  let total = 0;
  /** Registers that many new servers; answers how many went through in a second. */
  const register = async (calls) => {
    const requests = Array.from({ length: calls }, () => encode("RegisterRequest", declared(`server-${total++}`, tools)));
    const began = performance.now();
    await new Promise((resolve) => {
      let ended = 0;
      const more = () => {
        const request = requests.pop();
        if (request) connection.open(`${SERVICE}/Register`, request);
      };
      connection.onEnd = () => {
        if (++ended === calls) resolve();
        else more();
      };
      for (let i = 0; i < IN_FLIGHT; i++) more();
    });
    const perSecond = (calls * 1_000) / (performance.now() - began);
    const { server } = await client.call("GetServer", { serverId: `server-${total - 1}` });
    if (server?.toolCount !== TOOLS) throw new Error(`the last of ${calls} Registers left ${server?.toolCount} tools`);
    return perSecond;
  };
  await register(100);
  return { register };
}
