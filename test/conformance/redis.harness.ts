import { openRedisStore } from "../../src/store/redis/redis-store.js";
import type { Store } from "../../src/catalogue/ports.js";
import type { Redis } from "ioredis";
import type { OpenHarness } from "./store.suite.js";
import { random, silent } from "./values.js";

let prefixes = 0;

/** Lets time pass for what is stored: the server's clock stays, and every stored time moves back. */
export const ELAPSE = `
local ms = tonumber(ARGV[1])
for i, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  if kind == 'zset' then
    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do redis.call('ZINCRBY', key, -ms, member) end
  elseif kind == 'string' then
    local left = redis.call('PTTL', key)
    if left > 0 then redis.call('PEXPIRE', key, math.max(left - ms, 0)) end
  end
end`;

/** A Redis by its address, and a connection to each server that holds keys. */
export interface RedisUnderTest {
  readonly url: string;
  readonly servers: readonly { readonly admin: Redis }[];
}

/** Each harness has a key prefix of its own. */
export function redisHarness(redis: RedisUnderTest): OpenHarness {
  return async (window) => {
    const opened: Store[] = [];
    const open = async (keyPrefix: string): Promise<Store> => {
      const parts = { url: redis.url, keyPrefix, random, logger: silent };
      const store = await openRedisStore(window ? { ...parts, window } : parts);
      opened.push(store);
      return store;
    };
    const prefix = `t${prefixes++}:`;
    return {
      store: await open(prefix),
      other: await open(prefix),
      fresh: () => open(`t${prefixes++}:`),
      async elapse(ms) {
        for (const { admin } of redis.servers) {
          // One by one: keys of a Cluster's node may lie in several slots.
          for (const key of await admin.keys(`${prefix}*`)) await admin.eval(ELAPSE, 1, key, ms);
        }
      },
      async close() {
        await Promise.all(opened.map((store) => store.close()));
      },
    };
  };
}
