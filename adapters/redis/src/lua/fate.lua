
-- Outcomes are kept for a while. Up to which number those of an origin are gone is kept for good.

local OUTCOMES = P .. '!outcomes'
local AGE = P .. '!outcomes:age'
local GONE = P .. '!outcomes:gone'

local function now()
  local time = redis.call('TIME')
  return string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end

-- Of two numbers with sixteen hexadecimal digits, in halves that a double holds.
local function is_at_most(a, b)
  local high = tonumber(string.sub(a, 1, 8), 16) - tonumber(string.sub(b, 1, 8), 16)
  if high ~= 0 then
    return high < 0
  end
  return tonumber(string.sub(a, 9), 16) <= tonumber(string.sub(b, 9), 16)
end

local function is_forgotten(origin, number)
  local last = redis.call('HGET', GONE, origin)
  return last and is_at_most(number, last)
end

-- Removes old outcomes, and notes up to which number they are gone.
local function prune(keep, at_most)
  local until_then = string.format('%.0f', tonumber(now()) - tonumber(keep))
  local old = redis.call('ZRANGEBYSCORE', AGE, '-inf', until_then, 'LIMIT', 0, at_most)
  for _, id in ipairs(old) do
    local origin, number = string.sub(id, 1, 32), string.sub(id, 34)
    local last = redis.call('HGET', GONE, origin)
    if not last or is_at_most(last, number) then
      redis.call('HSET', GONE, origin, number)
    end
    redis.call('HDEL', OUTCOMES, id)
    redis.call('ZREM', AGE, id)
  end
end
