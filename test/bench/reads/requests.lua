-- Spreads a run's requests over many keys, round robin: wrk -s requests.lua URL -- KEYS RESOURCE START ENCODING
--
-- KEYS      a file with a line for each key: the key, a space, the organization's id
-- RESOURCE  what follows the organization's id in the path; `-` for nothing (wrk takes no empty argument)
-- START     the line to begin with, from 0, so that runs do not all begin with the same keys
-- ENCODING  the header Accept-Encoding
-- Output    the last line is one JSON object: requests, micros, errors (responses that are not 2xx or 3xx),
--           broken (connections and timeouts),
--           p50Micros and p99Micros
--
-- One thread only: each of wrk's threads has its own Lua state and would begin with the same line. Requests are
-- formatted before the run.

local requests = {}
local following = 1

function init(args)
  local resource = args[2] == '-' and '' or args[2]
  wrk.headers['Accept-Encoding'] = args[4]
  for line in io.lines(args[1]) do
    local key, organization = line:match('^(%S+) (%S+)$')
    wrk.headers['Authorization'] = 'Bearer ' .. key
    requests[#requests + 1] = wrk.format('GET', '/v1/orgs/' .. organization .. resource)
  end
  following = tonumber(args[3]) % #requests + 1
end

function request()
  local text = requests[following]
  following = following % #requests + 1
  return text
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"micros":%d,"errors":%d,"broken":%d,"p50Micros":%d,"p99Micros":%d}\n',
    summary.requests, summary.duration, errors.status, errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
