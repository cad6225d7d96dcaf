-- Tool calls of many callers for wrk: `wrk -s call.lua URL -- BODIES TOKENS`, each a file of which a line is one.
-- Ends with a line for the script that runs it: RESULT requests, seconds, p50 and p99 in ms, and what was no good answer.

local bodies, tokens = {}, {}
local sent = 0

local function read(file, into)
  for line in io.lines(file) do into[#into + 1] = line end
end

function init(args)
  read(args[1], bodies)
  read(args[2], tokens)
end

function request()
  sent = sent + 1
  return wrk.format("POST", "/mcp", {
    ["Content-Type"] = "application/json",
    ["Accept"] = "application/json, text/event-stream",
    ["Authorization"] = "Bearer " .. tokens[sent % #tokens + 1],
    ["Host"] = wrk.headers["Host"],
  }, bodies[sent % #bodies + 1])
end

function done(summary, latency)
  local errors = summary.errors
  local bad = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format("RESULT %d %.3f %.2f %.2f %d\n", summary.requests, summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, bad))
end
