#!lua flags=allow-oom
-- KEYS  note
-- ARGV  expected version. Answers 1 when it was removed
local note = redis.call('GET', KEYS[1])
if not note or string.match(note, '^%d+') ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
