#!lua flags=allow-oom
-- Renews leases: a full Redis must not make servers expire.
-- KEYS  lease ends, lease facts, braked, ended
-- ARGV  lease ids. Answers per id: 1 renewed, 2 ended on purpose, 0 unknown
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local answers = {}
for i, id in ipairs(ARGV) do
  local facts = redis.call('HGET', KEYS[2], id)
  if facts then
    local ttl = tonumber(string.match(facts, '^%d+'))
    redis.call('ZADD', KEYS[1], string.format('%.0f', now + ttl), id)
    redis.call('SREM', KEYS[3], id)
    answers[i] = 1
  else
    local tombstone = redis.call('ZSCORE', KEYS[4], id)
    if tombstone and tonumber(tombstone) > now then answers[i] = 2 else answers[i] = 0 end
  end
end
return answers
