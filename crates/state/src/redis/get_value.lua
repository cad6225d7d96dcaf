-- Returns the time of the server beside a value, or nil.
-- KEYS: the value. ARGV: the maximum bytes of a value.
local time = redis.call('TIME')
local bytes = redis.pcall('STRLEN', KEYS[1])
if type(bytes) ~= 'number' then
  -- Another program wrote a value of another type.
  if string.find(bytes.err, 'WRONGTYPE', 1, true) then
    return {time, false}
  end
  return bytes
end
if bytes > tonumber(ARGV[1]) then
  return {time, false}
end
return {time, redis.call('GET', KEYS[1])}
