-- Stores a value with an expiry, and evicts the oldest values of its owner beyond a quota. What another program wrote to a key
-- is replaced.
-- KEYS: the value; the owner's values by their expiry; the bytes of these.
-- ARGV: the value; its lifetime in milliseconds; the maximum bytes and the maximum number of the owner's values; `keep` or
-- `replace` for a key that exists; the maximum bytes of a value.
-- Returns the time in milliseconds since 1970, or 0 if the key exists and is kept.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lifetime, bytes = tonumber(ARGV[2]), #ARGV[1]
local function has_other_type(reply)
  return type(reply) == 'table' and reply.err and string.find(reply.err, 'WRONGTYPE', 1, true)
end
local before = redis.pcall('STRLEN', KEYS[1])
if has_other_type(before) then
  before = 0
elseif type(before) ~= 'number' then
  return before
end
if before > 0 and before <= tonumber(ARGV[6]) and ARGV[5] == 'keep' then
  return 0
end
-- The first writing command fails if memory is short; then nothing is changed.
redis.call('SET', KEYS[1], ARGV[1], 'PX', lifetime)
-- A list of another program begins again: it is of another type, or longer than the quota lets one become.
local listed = redis.pcall('ZCARD', KEYS[2])
if has_other_type(listed) or type(listed) == 'number' and listed > tonumber(ARGV[4]) + 1 then
  redis.call('UNLINK', KEYS[2])
end
local used = redis.pcall('GET', KEYS[3])
used = type(used) == 'string' and tonumber(used) or 0
if not (used >= 0 and used < 2 ^ 53) then
  used = 0
end
local own = bytes .. ' ' .. KEYS[1]
-- An earlier value of the key may have been deleted without its entry in the list.
for _, earlier in ipairs({before, bytes}) do
  if redis.call('ZREM', KEYS[2], earlier .. ' ' .. KEYS[1]) == 1 then
    used = used - earlier
  end
end
local function forget(members)
  for _, member in ipairs(members) do
    redis.call('ZREM', KEYS[2], member)
    local size, key = string.match(member, '^(%d+) (.+)$')
    if size then
      used = used - tonumber(size)
      -- A value of another size or type is not the one of the list.
      if key ~= KEYS[1] and redis.pcall('STRLEN', key) == tonumber(size) then
        redis.call('DEL', key)
      end
    end
  end
end
forget(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now))
used = used + bytes
redis.call('ZADD', KEYS[2], now + lifetime, own)
while used > tonumber(ARGV[3]) or redis.call('ZCARD', KEYS[2]) > tonumber(ARGV[4]) do
  local oldest = redis.call('ZRANGE', KEYS[2], 0, 0)
  if #oldest == 0 or oldest[1] == own then
    break
  end
  forget(oldest)
end
if redis.call('ZCARD', KEYS[2]) == 1 then
  used = bytes
end
redis.call('SET', KEYS[3], string.format('%.0f', math.max(used, 0)), 'PX', lifetime)
redis.call('PEXPIRE', KEYS[2], lifetime)
return now
