#!lua flags=no-writes
-- KEYS  lease ends, lease facts, braked
-- ARGV  limit
-- Answers now, number of leases, number of due ones, then per due lease, longest overdue first: id, end, facts, braked
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local now_text = string.format('%.0f', now)
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now_text, 'WITHSCORES', 'LIMIT', 0, tonumber(ARGV[1]))
local answer = {now_text, redis.call('ZCARD', KEYS[1]), redis.call('ZCOUNT', KEYS[1], '-inf', now_text)}
for i = 1, #due, 2 do
  local id = due[i]
  answer[#answer + 1] = id
  answer[#answer + 1] = string.format('%.0f', tonumber(due[i + 1]))
  answer[#answer + 1] = redis.call('HGET', KEYS[2], id) or ''
  answer[#answer + 1] = redis.call('SISMEMBER', KEYS[3], id)
end
return answer
