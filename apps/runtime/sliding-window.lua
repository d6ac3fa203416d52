-- Exact sliding windows: admits a call to a key when fewer than `limit` admitted calls lie in the window that ends now.
--
-- KEYS[1..n]  one per call, in the order of arrival; the same key may come more than once
-- ARGV[1]     limit: admitted calls in any window
-- ARGV[2]     window, in microseconds; a call exactly that old still counts
-- Reply       two whole numbers per key: calls left after this one (-1: rejected), and microseconds
--             until the oldest counted call is a window old, after which one more call is free
--
-- A key holds the times of its admitted calls, oldest first, at most `limit`. Each is an 8-byte little-endian double
-- (whole microseconds since 1970, exact up to 2^53). Rejected calls are not stored. 120 times are
-- 960 bytes, and take 1,128 bytes of Redis's memory with a key name of 52 (MEMORY USAGE, Redis
-- 7.0), because SET allocates the given size. APPEND and SETRANGE allocate ahead and take 1,640.
-- Offsets of 4 bytes from the oldest time would take 616, but all of them are rewritten whenever
-- the oldest leaves.
--
-- The clock is Redis's own, so all pods share it. If it has stepped back, the stored times move back with it until the
-- newest is now: they stay in order, the key admits no more than before, and it is free again one window later at
-- most. A step forward cannot be distinguished from time passing.

local BYTES = 8
local limit = tonumber(ARGV[1])
local window = tonumber(ARGV[2])

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])

-- Longer than the window: the expiry counts milliseconds from the start of the command, and losing a time early would
-- admit one call too many.
local ttl = math.ceil(window / 1000) + 1000

local function time_at(ring, index)
  return (struct.unpack('<d', ring, index * BYTES + 1))
end

local function moved_back(ring, count, step)
  local times = {}
  for index = 0, count - 1 do
    times[index + 1] = struct.pack('<d', time_at(ring, index) - step)
  end
  return table.concat(times)
end

local reply = {}
for i, key in ipairs(KEYS) do
  local ring = redis.call('GET', key) or ''
  local count = #ring / BYTES
  local step = count > 0 and time_at(ring, count - 1) - now or 0
  if step > 0 then
    ring = moved_back(ring, count, step)
  end

  local expired = 0
  while expired < count and now - time_at(ring, expired) > window do
    expired = expired + 1
  end

  local left = limit - (count - expired) - 1
  local first = 0
  if left >= 0 then
    ring = string.sub(ring, expired * BYTES + 1) .. struct.pack('<d', now)
    redis.call('SET', key, ring, 'PX', ttl)
  else
    left = -1
    first = count - limit -- 0, unless the limit was lowered: then as many more have to leave
    if step > 0 then
      redis.call('SET', key, ring, 'PX', ttl)
    end
  end
  reply[2 * i - 1] = left
  reply[2 * i] = time_at(ring, first) + window - now
end
return reply
