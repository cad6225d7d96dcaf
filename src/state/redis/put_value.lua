-- Stores a value with an expiry, and evicts the oldest values of its owner beyond a quota.
-- KEYS: the value; the owner's values by their expiry; the bytes of these.
-- ARGV: the value; its lifetime in milliseconds; the maximum bytes and the maximum number of the owner's values; `keep` or
-- `replace` for a key that exists.
-- Returns the time in milliseconds since 1970, or 0 if the key exists and is kept.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lifetime = tonumber(ARGV[2])
local before = redis.call('STRLEN', KEYS[1])
if before > 0 and ARGV[5] == 'keep' then
  return 0
end
-- The first writing command fails if memory is short; then nothing is changed.
redis.call('SET', KEYS[1], ARGV[1], 'PX', lifetime)
local own = #ARGV[1] .. ' ' .. KEYS[1]
local used = tonumber(redis.call('GET', KEYS[3]) or '0') + #ARGV[1]
if before > 0 and redis.call('ZREM', KEYS[2], before .. ' ' .. KEYS[1]) == 1 then
  used = used - before
end
local function forget(members)
  for _, member in ipairs(members) do
    local bytes, key = string.match(member, '^(%d+) (.*)$')
    redis.call('DEL', key)
    redis.call('ZREM', KEYS[2], member)
    used = used - tonumber(bytes)
  end
end
forget(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now))
redis.call('ZADD', KEYS[2], now + lifetime, own)
while used > tonumber(ARGV[3]) or redis.call('ZCARD', KEYS[2]) > tonumber(ARGV[4]) do
  local oldest = redis.call('ZRANGE', KEYS[2], 0, 0)
  if #oldest == 0 or oldest[1] == own then
    break
  end
  forget(oldest)
end
redis.call('SET', KEYS[3], math.max(used, 0), 'PX', lifetime)
redis.call('PEXPIRE', KEYS[2], lifetime)
return now
