#!lua flags=no-writes
-- What the caller may not do, without doing it. No keys are declared: none is touched.
-- ARGV  a key of the registry, number of commands without keys, then those, then commands whose first argument is a key
-- Answers '1' if GET may be run at all, on whatever key, then the commands that are denied
local denied = {'0'}
if redis.acl_check_cmd('get') then denied[1] = '1' end
for i = 3, #ARGV do
  local allowed
  if i <= 2 + tonumber(ARGV[2]) then allowed = redis.acl_check_cmd(ARGV[i])
  else allowed = redis.acl_check_cmd(ARGV[i], ARGV[1]) end
  if not allowed then denied[#denied + 1] = ARGV[i] end
end
return denied
