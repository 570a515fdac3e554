#!lua
-- Keeps definitions; bytes that are there already stay.
-- KEYS  blobs of the namespace, their last references, namespaces with blobs
-- ARGV  namespace, then digest and row pairs
local clock = redis.call('TIME')
local now = string.format('%.0f', tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000))
redis.call('SADD', KEYS[3], ARGV[1])
for i = 2, #ARGV, 2 do
  redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1])
  redis.call('ZADD', KEYS[2], now, ARGV[i])
end
return 1
