-- Tool calls of many callers for wrk: `wrk -s call.lua URL -- BODIES TOKENS`, two files with one body or token a line.

dofile("result.lua")

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
