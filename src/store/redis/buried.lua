#!lua flags=no-writes
-- KEYS  buried servers
-- ARGV  server key
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local tombstone = redis.call('ZSCORE', KEYS[1], ARGV[1])
if tombstone and tonumber(tombstone) > now then return 1 end
return 0
