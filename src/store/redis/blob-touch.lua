#!lua flags=allow-oom
-- KEYS  last references of the namespace's blobs
-- ARGV  digests
local clock = redis.call('TIME')
local now = string.format('%.0f', tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000))
for _, digest in ipairs(ARGV) do
  redis.call('ZADD', KEYS[1], 'XX', now, digest)
end
return 1
