import { openRedisStore } from "../../src/store/redis/redis-store.js";
import type { Store } from "../../src/catalogue/ports.js";
import type { TestRedis } from "../support/redis.js";
import type { OpenHarness } from "./store.suite.js";
import { random, silent } from "./values.js";

let prefixes = 0;

/** Lets time pass for what is stored: the server's clock stays, and every stored time moves back. */
const ELAPSE = `
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

/** Each harness has a key prefix of its own. */
export function redisHarness(redis: TestRedis): OpenHarness {
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
        const keys = await redis.admin.keys(`${prefix}*`);
        await redis.admin.eval(ELAPSE, keys.length, ...keys, ms);
      },
      async close() {
        await Promise.all(opened.map((store) => store.close()));
      },
    };
  };
}
