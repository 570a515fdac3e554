#!lua
-- One commit: conditions, log entry, record and lease effects. The same steps as memory/commit.ts.
-- KEYS  log head, log, records, revisions, lease ends, lease facts, braked, ended, buried
-- ARGV  server key, expected revision, '1' if there is a record, record, body, seed, window revisions, window bytes,
--       tombstone ms, '1' to bury, number of leases that must be due, revision and chain of a place in the log that this
--       was decided at ('' for none), the leases that must be due, then per effect either
--       'grant' id ttl facts, or 'end' id '1' to bury
local function int(n) return string.format('%.0f', n) end

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local tombstone_end = int(now + tonumber(ARGV[9]))
local server = ARGV[1]

local current = redis.call('HGET', KEYS[4], server) or '0'
if current ~= ARGV[2] then return {'conflict', current} end

local due = tonumber(ARGV[11])
for i = 14, 13 + due do
  local ends = redis.call('ZSCORE', KEYS[5], ARGV[i])
  if not ends or tonumber(ends) > now then return {'not-due', ARGV[i]} end
end

local head = redis.call('HMGET', KEYS[1], 'revision', 'chain', 'base', 'base_chain', 'bytes')
local prev = head[2] or '0'
local revision = tonumber(head[1] or '0') + 1
local base = tonumber(head[3] or '0')
local base_chain = head[4] or '0'
local bytes = tonumber(head[5] or '0') + #ARGV[5]

-- Revisions come again in a log that began anew: the place that this was decided at must still be part of it.
local seen, seen_chain = ARGV[12], ARGV[13]
if seen ~= '' then
  local held = nil
  if tonumber(seen) == revision - 1 then held = prev
  elseif tonumber(seen) == base then held = base_chain
  else
    local entry = redis.call('XRANGE', KEYS[2], seen .. '-0', seen .. '-0')[1]
    held = entry and entry[2][6]
  end
  if held ~= seen_chain then return {'conflict', current} end
end

local seed = ''
if revision == 1 then seed = ARGV[6] end
local chain = string.sub(redis.sha1hex(seed .. prev .. int(revision) .. ARGV[5]), 1, 16)

-- First of all writes: it is the only one that can be refused, by a stream that is ahead of its head.
redis.call('XADD', KEYS[2], int(revision) .. '-0', 'body', ARGV[5], 'prev', prev, 'chain', chain, 'at', int(now))

-- At most this many at once, so that a window made smaller does not stall Redis; the next commits go on with it.
local left = 100
local trimmed = false
while left > 0 and revision - base > 1 and (revision - base > tonumber(ARGV[7]) or bytes > tonumber(ARGV[8])) do
  local id = int(base + 1) .. '-0'
  local oldest = redis.call('XRANGE', KEYS[2], id, id)[1]
  if oldest then
    bytes = bytes - #oldest[2][2]
    base_chain = oldest[2][6]
  end
  base = base + 1
  trimmed = true
  left = left - 1
end
if trimmed then redis.call('XTRIM', KEYS[2], 'MINID', int(base + 1) .. '-0') end

redis.call('HSET', KEYS[1], 'revision', int(revision), 'chain', chain, 'base', int(base), 'base_chain', base_chain,
  'bytes', int(bytes))

if ARGV[3] == '1' then
  redis.call('HSET', KEYS[3], server, int(revision) .. ':' .. ARGV[4])
  redis.call('HSET', KEYS[4], server, int(revision))
  redis.call('ZREM', KEYS[9], server)
else
  redis.call('HDEL', KEYS[3], server)
  redis.call('HDEL', KEYS[4], server)
  if ARGV[10] == '1' then
    redis.call('ZREMRANGEBYSCORE', KEYS[9], '-inf', int(now))
    redis.call('ZADD', KEYS[9], tombstone_end, server)
  end
end

local i = 14 + due
while ARGV[i] do
  local id = ARGV[i + 1]
  if ARGV[i] == 'grant' then
    redis.call('ZADD', KEYS[5], int(now + tonumber(ARGV[i + 2])), id)
    redis.call('HSET', KEYS[6], id, ARGV[i + 2] .. ':' .. ARGV[i + 3])
    redis.call('SREM', KEYS[7], id)
    i = i + 4
  else
    redis.call('ZREM', KEYS[5], id)
    redis.call('HDEL', KEYS[6], id)
    redis.call('SREM', KEYS[7], id)
    if ARGV[i + 2] == '1' then
      redis.call('ZREMRANGEBYSCORE', KEYS[8], '-inf', int(now))
      redis.call('ZADD', KEYS[8], tombstone_end, id)
    end
    i = i + 3
  end
end

return {'committed', int(revision), chain, int(now)}
