-- Sends the requests of a file, one "METHOD PATH [BODY]" a line, in their order
-- and over again. They are put together before the clock starts.
--
--   wrk -s load.lua URL -- FILE FIRST

local requests, at = {}, 0

function init(args)
  for line in io.lines(args[1]) do
    local method, path, body = line:match("^(%S+) (%S+) ?(.*)$")
    requests[#requests + 1] = wrk.format(method, path, nil, body ~= "" and body or nil)
  end
  at = tonumber(args[2]) % #requests
  io.stderr:write("ready\n")
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary)
  local e = summary.errors
  io.stderr:write(string.format("done %d %d %d %d\n", summary.requests, summary.duration,
    e.status, e.connect + e.read + e.write + e.timeout))
end
