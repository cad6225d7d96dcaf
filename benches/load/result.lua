-- Prints the results of wrk as a line for the script that runs it: RESULT, requests, seconds, p50 and p99 in ms, and failed
-- requests. Used alone for plain GETs to the record server.

function done(summary, latency)
  local errors = summary.errors
  local bad = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format("RESULT %d %.3f %.2f %.2f %d\n", summary.requests, summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, bad))
end
