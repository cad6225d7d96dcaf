-- Deletes a value of an owner and returns it, or nil.
-- KEYS: the value; the owner's values by their expiry; the bytes of these.
local value = redis.call('GETDEL', KEYS[1])
if value and redis.call('ZREM', KEYS[2], #value .. ' ' .. KEYS[1]) == 1 then
  redis.call('SET', KEYS[3], math.max(tonumber(redis.call('GET', KEYS[3]) or '0') - #value, 0), 'KEEPTTL')
end
return value
