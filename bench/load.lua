-- Sends the requests of a file, one "METHOD PATH [BODY]" per line, in order and
-- repeatedly. They are formatted before the clock starts. With a file of keys, one
-- per line, each request uses the next.
--
--   wrk -s load.lua URL -- FILE FIRST [KEYS]

local requests, at = {}, 0

local function lines(path)
  local all = {}
  for line in io.lines(path) do
    all[#all + 1] = line
  end
  return all
end

function init(args)
  local templates, keys = lines(args[1]), args[3] and lines(args[3])
  for i = 1, math.max(#templates, keys and #keys or 0) do
    local method, path, body = templates[(i - 1) % #templates + 1]:match("^(%S+) (%S+) ?(.*)$")
    if keys then
      wrk.headers["Authorization"] = "Bearer " .. keys[(i - 1) % #keys + 1]
    end
    requests[i] = wrk.format(method, path, nil, body ~= "" and body or nil)
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
