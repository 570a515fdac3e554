#!lua
-- KEYS  note, last version given
-- ARGV  bytes, ttl ms, expected version: '' for any, '0' for none. Answers the new version, or '' when it is another
if ARGV[3] ~= '' then
  local note = redis.call('GET', KEYS[1])
  local version = note and string.match(note, '^%d+') or '0'
  if version ~= ARGV[3] then return '' end
end
-- Counted from the clock, so that versions do not come again after the count was lost.
local clock = redis.call('TIME')
local now = (tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)) * 1000
local version = string.format('%.0f', math.max(tonumber(redis.call('GET', KEYS[2]) or '0') + 1, now))
redis.call('SET', KEYS[2], version)
redis.call('SET', KEYS[1], version .. ':' .. ARGV[1], 'PX', ARGV[2])
return version
