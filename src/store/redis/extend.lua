#!lua flags=allow-oom
-- The brake: each known lease ends no sooner than one TTL from now, and counts as braked.
-- KEYS  lease ends, lease facts, braked
-- ARGV  lease ids
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
for _, id in ipairs(ARGV) do
  local facts = redis.call('HGET', KEYS[2], id)
  if facts then
    local ttl = tonumber(string.match(facts, '^%d+'))
    redis.call('ZADD', KEYS[1], 'GT', string.format('%.0f', now + ttl), id)
    redis.call('SADD', KEYS[3], id)
  end
end
return 1
