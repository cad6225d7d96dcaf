-- Deletes the values that begin with one of some marks of equal length. Their memory is freed in the background.
-- KEYS: the values. ARGV: the marks. Returns the keys of the deleted values.
local marks, deleted = {}, {}
for _, mark in ipairs(ARGV) do
  marks[mark] = true
end
for _, key in ipairs(KEYS) do
  local start = redis.pcall('GETRANGE', key, 0, #ARGV[1] - 1)
  if type(start) == 'string' then
    if marks[start] and redis.call('UNLINK', key) == 1 then
      deleted[#deleted + 1] = key
    end
  elseif not string.find(start.err, 'WRONGTYPE', 1, true) then
    return start
  end
end
return deleted
