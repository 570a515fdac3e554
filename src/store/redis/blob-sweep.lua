#!lua flags=allow-oom
-- Removes blobs that nobody referenced for a while, a limited number a call.
-- KEYS  blobs of the namespace, their last references, namespaces with blobs
-- ARGV  namespace, keep ms, limit. Answers how many went
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local before = string.format('%.0f', now - tonumber(ARGV[2]))
local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', before, 'LIMIT', 0, tonumber(ARGV[3]))
for _, digest in ipairs(old) do
  redis.call('HDEL', KEYS[1], digest)
  redis.call('ZREM', KEYS[2], digest)
end
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('SREM', KEYS[3], ARGV[1]) end
return #old
