-- Decides and charges a request of one key in one step, by Redis's own clock.
-- The rules are those of decide.go, and the same tests check both.
--
-- KEYS[1]  contains the whole state of the API key
-- ARGV[1]  "take" to decide a request, "read" to return the state only
-- ARGV[2]  requests per minute
-- ARGV[3]  requests per day
-- ARGV[4]  when an operator last lifted bans, 0 for never
-- ARGV[5]  the caller's state of the key, to be merged first, or ""
-- ARGV[6]  the time, only in tests
--
-- Returns a string: the outcome, the time and the state afterwards. Times are Unix
-- milliseconds.
--
-- Numbers are doubles, exact up to 2^53: counts and times stay far below. A limit above
-- that is compared with counts that can't reach it, and the caller computes what remains
-- of it.

local SECOND, MINUTE, DAY = 1000, 60000, 86400000
local STRIKE_WINDOW, LEVEL_MEMORY = 10 * MINUTE, DAY

local operation, seed = ARGV[1], ARGV[5]
local per_minute, per_day, unbanned_at = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local now = tonumber(ARGV[6])
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end

local stored = redis.call('GET', KEYS[1])

-- parse reads a state. It returns nil for anything else that was stored there.
local function parse(text)
  local a, b, c, d, e, f, g, h, i, j, k = string.match(text,
    '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  if not a then return nil end
  return {
    minute = {used = tonumber(a), till = tonumber(b), refused = tonumber(c)},
    day = {used = tonumber(d), till = tonumber(e), refused = tonumber(f)},
    strikes = tonumber(g), strikes_since = tonumber(h),
    banned_at = tonumber(i), banned_till = tonumber(j), level = tonumber(k),
  }
end

local function format(s)
  return string.format('%d %d %d %d %d %d %d %d %d %d %d',
    s.minute.used, s.minute.till, s.minute.refused, s.day.used, s.day.till, s.day.refused,
    s.strikes, s.strikes_since, s.banned_at, s.banned_till, s.level)
end

-- merge adds to s what only o knows. See mergeStates in redis_state.go.
local function merge_window(w, o)
  if o.till > w.till then return o end
  if o.till == w.till then
    w.used = math.max(w.used, o.used)
    if w.refused == 0 then w.refused = o.refused end
  end
  return w
end

local function merge(s, o)
  s.minute = merge_window(s.minute, o.minute)
  s.day = merge_window(s.day, o.day)
  if o.banned_at > s.banned_at then
    s.banned_at, s.banned_till, s.level = o.banned_at, o.banned_till, o.level
    s.strikes, s.strikes_since = o.strikes, o.strikes_since
  elseif o.banned_at == s.banned_at then
    s.banned_till = math.min(s.banned_till, o.banned_till)
  end
end

local function floor_second(ms) return math.floor(ms / SECOND) * SECOND end
local function ceil_second(ms) return math.ceil(ms / SECOND) * SECOND end

-- follow_clock shortens windows from before the clock was set back.
local function follow_clock(s)
  s.minute.till = math.min(s.minute.till, ceil_second(now + MINUTE))
  s.day.till = math.min(s.day.till, floor_second(now + DAY))
  s.strikes_since = math.min(s.strikes_since, now)
end

local function left(w, limit)
  if now >= w.till then return limit end
  return math.max(0, limit - w.used)
end

-- strike records a refusal by w and returns whether it caused a ban.
local function strike(s, w)
  if w.refused == 0 then w.refused = now end
  if now - w.refused <= SECOND then return false end
  if s.strikes == 0 then s.strikes_since = now end
  s.strikes = s.strikes + 1
  if s.strikes < math.max(100, per_minute) then return false end
  local spans = {5 * MINUTE, 15 * MINUTE, 60 * MINUTE, DAY}
  s.level = math.min(s.level + 1, #spans)
  s.banned_at = math.max(now, s.banned_at + 1, unbanned_at + 1)
  s.banned_till = ceil_second(now + spans[s.level])
  s.strikes, s.strikes_since = 0, 0
  return true
end

-- take decides a request and returns the outcome.
local function take(s)
  if now < s.banned_till and s.banned_at > unbanned_at then return 'banned' end
  local minute_left, day_left = left(s.minute, per_minute), left(s.day, per_day)
  if minute_left == 0 or day_left == 0 then
    local by_day = day_left < minute_left or day_left == minute_left and s.day.till > s.minute.till
    if strike(s, by_day and s.day or s.minute) then return 'bans' end
    return by_day and 'day' or 'minute'
  end
  if now >= s.minute.till then s.minute = {used = 0, till = ceil_second(now + MINUTE), refused = 0} end
  if now >= s.day.till then s.day = {used = 0, till = (math.floor(now / DAY) + 1) * DAY, refused = 0} end
  s.minute.used = s.minute.used + 1
  s.day.used = s.day.used + 1
  return 'admitted'
end

local state = stored and parse(stored)
if seed ~= '' then
  local known = parse(seed)
  if state then merge(state, known) else state = known end
end
if not state then return 'unknown' end

follow_clock(state)
if unbanned_at >= state.banned_at and state.banned_till > unbanned_at then
  state.banned_till = floor_second(unbanned_at)
end

local outcome = 'read'
if operation == 'take' then
  if now >= state.strikes_since + STRIKE_WINDOW then state.strikes, state.strikes_since = 0, 0 end
  if now >= state.banned_till + LEVEL_MEMORY then state.level = 0 end
  outcome = take(state)
end

local text = format(state)
if text ~= stored then
  local matters_till = math.max(state.minute.till, state.day.till,
    state.strikes > 0 and state.strikes_since + STRIKE_WINDOW or 0,
    state.level > 0 and state.banned_till + LEVEL_MEMORY or 0,
    state.banned_till)
  -- A test's clock may be set back, while Redis expires keys by its own.
  local ttl = matters_till - now + (ARGV[6] and 60 * MINUTE or 0)
  if ttl > 0 then
    redis.call('SET', KEYS[1], text, 'PX', string.format('%d', ttl))
  else
    redis.call('DEL', KEYS[1])
  end
end
return outcome .. ' ' .. string.format('%d', now) .. ' ' .. text
