-- Counts a request of a client by the generic cell rate algorithm, with the time of the server.
-- KEYS: the client. ARGV: the microseconds in which one request is refilled; the number of requests of a full bucket.
-- Returns 1 if the request is allowed, the requests that remain, the microseconds until the bucket is full, and those
-- until the next request is allowed.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local stored = redis.pcall('GET', KEYS[1])
if type(stored) == 'table' and not string.find(stored.err, 'WRONGTYPE', 1, true) then
  return stored
end
-- What another program wrote is no count: it is of another type, no number, or later than that of an empty bucket.
local full_at = type(stored) == 'string' and tonumber(stored) or 0
if not (full_at >= now and full_at <= now + burst * interval) then
  full_at = now
end
local next_full_at = full_at + interval
local wait = next_full_at - burst * interval - now
if wait > 0 then
  return {0, 0, full_at - now, wait}
end
redis.call('SET', KEYS[1], string.format('%.0f', next_full_at), 'PX', math.ceil((next_full_at - now) / 1000))
return {1, math.floor((burst * interval - (next_full_at - now)) / interval), next_full_at - now, 0}
