-- Deletes a value of an owner and returns it, or nil.
-- KEYS: the value; the owner's values by their expiry; the bytes of these. ARGV: the maximum bytes of a value.
local bytes = redis.pcall('STRLEN', KEYS[1])
if type(bytes) ~= 'number' then
  -- Another program wrote a value of another type.
  if string.find(bytes.err, 'WRONGTYPE', 1, true) then
    return false
  end
  return bytes
end
if bytes > tonumber(ARGV[1]) then
  return false
end
local value = redis.call('GETDEL', KEYS[1])
if value and redis.pcall('ZREM', KEYS[2], bytes .. ' ' .. KEYS[1]) == 1 then
  local used = redis.pcall('GET', KEYS[3])
  used = type(used) == 'string' and tonumber(used) or 0
  redis.call('SET', KEYS[3], math.max(used - bytes, 0), 'KEEPTTL')
end
return value
