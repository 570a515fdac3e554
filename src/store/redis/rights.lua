#!lua flags=no-writes
-- What the caller may not do, without doing it. No keys are declared: none is touched.
-- ARGV  a key of the registry, number of commands without keys, then those, then commands whose first argument is a key
-- Answers the commands that are denied; and, first of all, '1' if commands are allowed but not on the key
local denied = {'0'}
for i = 3, #ARGV do
  local name = ARGV[i]
  if not redis.acl_check_cmd(name) then
    denied[#denied + 1] = name
  elseif i > 2 + tonumber(ARGV[2]) and not redis.acl_check_cmd(name, ARGV[1]) then
    denied[1] = '1'
  end
end
return denied
