
-- A commit: everything is checked, and only then written, since a script that fails is not rolled
-- back.

local version

-- With commands, which may fail for reasons of their own, what was there before is kept.
local undo

local function save(key)
  if undo and undo[key] == nil then
    undo[key] = { redis.call('DUMP', key), redis.call('PEXPIRETIME', key) }
  end
end

local function write(command, key, ...)
  save(key)
  return redis.call(command, key, ...)
end

local function restore()
  for key, kept in pairs(undo) do
    if kept[1] then
      local expires = kept[2] > 0 and string.format('%.0f', kept[2]) or '0'
      redis.call('RESTORE', key, expires, kept[1], 'REPLACE', 'ABSTTL')
    else
      redis.call('DEL', key)
    end
  end
end

-- Exact decimal sums: limbs of seven digits, the last ones first.
local LIMB = 10000000

local function limbs(text)
  local sign, digits = string.match(text, '^(-?)(%d+)$')
  local found = {}
  for last = #digits, 1, -7 do
    found[#found + 1] = tonumber(string.sub(digits, math.max(1, last - 6), last))
  end
  return sign == '-' and -1 or 1, found
end

local function sum(a, b)
  local sign_a, x = limbs(a)
  local sign_b, y = limbs(b)
  local total, size, sign, carry = {}, math.max(#x, #y), 1, 0
  for i = 1, size do
    total[i] = sign_a * (x[i] or 0) + sign_b * (y[i] or 0)
    if total[i] ~= 0 then
      sign = total[i] < 0 and -1 or 1
    end
  end
  for i = 1, size do
    local limb = sign * total[i] + carry
    carry = math.floor(limb / LIMB)
    total[i] = limb - carry * LIMB
  end
  total[size + 1] = carry
  local text = ''
  for i = size + 1, 1, -1 do
    text = text .. string.format('%07d', total[i])
  end
  text = string.gsub(text, '^0+', '')
  if text == '' then
    return '0'
  end
  return (sign < 0 and '-' or '') .. text
end

-- Adds to a counter, which is a field of a hash, or a string.
local function add(key, field, amount)
  save(key)
  if #amount <= 18 then
    local reply
    if field then
      reply = redis.pcall('HINCRBY', key, field, amount)
    else
      reply = redis.pcall('INCRBY', key, amount)
    end
    if type(reply) ~= 'table' then
      return
    end
  end
  if field then
    local before = redis.call('HGET', key, field) or '0'
    redis.call('HSET', key, field, sum(before, amount))
  else
    local before = redis.call('GET', key) or '0'
    redis.call('SET', key, sum(before, amount), 'KEEPTTL')
  end
end

local function touch(o)
  local of = versions(o)
  if redis.call('HEXISTS', of, '.') == 0 then
    write('HSET', of, '.', version)
    write('HINCRBY', P .. '!kinds', objects[o][1], 1)
  end
  return of
end

local function delete(o)
  local of = versions(o)
  if redis.call('HEXISTS', of, '.') == 0 then
    return
  end
  for _, field in ipairs(redis.call('HKEYS', of)) do
    if field ~= '.' and field ~= '!' and string.sub(field, -1) ~= '-' then
      write('DEL', collection(o, field))
      write('DEL', units(o, field))
    end
  end
  write('DEL', data(o))
  write('DEL', of)
  write('HSET', of, '!', version)
  write('HINCRBY', P .. '!kinds', objects[o][1], -1)
end

local function forget(id)
  local gone = redis.call('ZRANGEBYLEX', ALL_ROWS, '[' .. id .. ':', '[' .. id .. ';')
  for _, row in ipairs(gone) do
    write('ZREM', ALL_ROWS, row)
    local size = tonumber(string.sub(row, 51, 60))
    write('SREM', P .. '!witnesses' .. string.sub(row, 62, 61 + size), row)
  end
end

-- Whether the server says that a value is beyond what it holds.
local function is_beyond(why)
  for _, said in ipairs({ 'out of range', 'overflow', 'not a valid float', 'NaN or Infinity', 'exceeds maximum' }) do
    if string.find(why, said, 1, true) then
      return true
    end
  end
  return false
end

-- What each write does, by its first letter.
local WRITE = {
  c = function(op)
    touch(index(op[2]))
  end,
  d = function(op)
    delete(index(op[2]))
  end,
  a = function(op)
    local o, field = index(op[2]), op[3]
    local of = touch(o)
    write('HSET', data(o), field, op[4])
    write('HSET', of, field, version)
  end,
  n = function(op)
    local o, field = index(op[2]), op[3]
    local of = touch(o)
    add(data(o), field, op[4])
    write('HSET', of, field, version)
  end,
  i = function(op)
    local o, field, element = index(op[2]), op[3], op[4]
    local of = touch(o)
    write('SADD', collection(o, field), element)
    write('HSET', units(o, field), element, version)
    write('HSET', of, field, version)
  end,
  p = function(op)
    local o, field, key = index(op[2]), op[3], op[4]
    local of = touch(o)
    write('HSET', collection(o, field), key, op[5])
    write('HSET', units(o, field), key, version)
    write('HSET', of, field, version)
  end,
  -- Removes an element or an entry.
  r = function(op)
    local o, field, unit = index(op[2]), op[3], op[4]
    local of = touch(o)
    if write(op[5], collection(o, field), unit) == 1 then
      write('HDEL', units(o, field), unit)
      write('HSET', of, field, version, field .. '-', version)
    end
  end,
  l = function(op)
    local o, field = index(op[2]), op[3]
    local of = touch(o)
    write('RPUSH', collection(o, field), op[4])
    write('HSET', of, field, version)
  end,
  -- Empties a collection.
  z = function(op)
    local o, field = index(op[2]), op[3]
    local of = touch(o)
    if write('DEL', collection(o, field)) == 1 then
      write('DEL', units(o, field))
      write('HSET', of, field, version, field .. '-', version)
    end
  end,
  w = function(op)
    write('ZADD', ALL_ROWS, 0, op[3])
    write('SADD', P .. '!witnesses' .. op[2], op[3])
  end,
  f = function(op)
    forget(op[2])
  end,
  R = function(op)
    local rows = P .. '!records:' .. op[2]
    write('HSET', rows, op[3], version .. ':' .. op[4])
    write('ZADD', rows .. ':order', 0, op[3])
  end,
  D = function(op)
    local rows = P .. '!records:' .. op[2]
    write('HDEL', rows, op[3])
    write('ZREM', rows .. ':order', op[3])
  end,
  -- A key of another application: { type, words… }.
  m = function(op)
    write(unpack(op, 3))
  end,
  -- Adds to a counter of another application: { type, key, amount, field if it is in a hash }.
  M = function(op)
    add(op[3], op[5], op[4])
  end,
  -- The object exists, which was checked.
  E = function() end,
  -- A declared command: { how many keys, those, words… }.
  q = function(op)
    local keys = tonumber(op[2])
    for i = 1, keys do
      save(op[2 + i])
    end
    local reply = redis.pcall(unpack(op, 3 + keys))
    if type(reply) == 'table' and reply.err then
      stop(is_beyond(reply.err) and 'beyond' or 'refused', op[3 + keys] .. ': ' .. reply.err)
    end
  end,
}

-- The type of the collection that a write changes.
local TYPES = { i = 'set', p = 'hash', l = 'list' }

local function check_counter(key, found)
  if found and not string.match(found, '^-?%d+$') then
    stop('refused', 'key ' .. key .. ' holds ' .. string.sub(found, 1, 40) .. ', but is mapped as a counter')
  end
end

local function check_own(op, check)
  local o = index(op[2])
  check(versions(o), 'hash')
  if op[1] == 'a' or op[1] == 'n' then
    check(data(o), 'hash')
  elseif TYPES[op[1]] then
    check(collection(o, op[3]), TYPES[op[1]])
    check(units(o, op[3]), 'hash')
  elseif op[1] == 'r' then
    check(collection(o, op[3]), op[5] == 'SREM' and 'set' or 'hash')
    check(units(o, op[3]), 'hash')
  end
end

-- Our own rows have these types, unless somebody else was there.
local function check_rows(op, check)
  if op[1] == 'w' or op[1] == 'f' then
    check(ALL_ROWS, 'zset')
    if op[1] == 'w' then
      check(P .. '!witnesses' .. op[2], 'set')
    end
  elseif op[1] == 'R' or op[1] == 'D' then
    check(P .. '!records:' .. op[2], 'hash')
    check(P .. '!records:' .. op[2] .. ':order', 'zset')
  end
end

-- Changes of entries in indexes, if the commit has some.
local changes

-- Nothing may fail once something was written, so types are looked at first.
local function check_types(ops)
  local seen = {}
  local function check(key, wanted)
    if not seen[key] then
      check_type(key, wanted)
      seen[key] = wanted
    elseif seen[key] ~= wanted then
      stop('refused', 'key ' .. key .. ' is mapped as a ' .. seen[key] .. ' and as a ' .. wanted)
    end
  end
  check(P .. '!commits', 'string')
  check(P .. '!kinds', 'hash')
  for _, op in ipairs(ops) do
    check_rows(op, check)
    if string.find('danipclrz', op[1], 1, true) then
      check_own(op, check)
    elseif op[1] == 'v' or op[1] == 'V' or op[1] == 'X' then
      changes = changes or indexing()
      changes.check(op, check)
    elseif op[1] == 'm' and op[2] ~= '' then
      check(op[4], op[2])
    elseif op[1] == 'E' then
      if redis.call('EXISTS', unpack(op, 2)) == 0 then
        stop('refused', 'nothing is kept under ' .. op[2] .. ', and an object without fields needs a marker')
      end
    elseif op[1] == 'M' then
      check(op[3], op[2])
      check_counter(op[3], op[5] and redis.call('HGET', op[3], op[5]) or (not op[5] and redis.call('GET', op[3])))
    end
  end
end

local function check_id(id, origin, number)
  check_type(OUTCOMES, 'hash')
  check_type(AGE, 'zset')
  check_type(GONE, 'hash')
  local fate = redis.call('HGET', OUTCOMES, id)
  if fate == 'barred' then
    stop('barred')
  elseif fate or is_forgotten(origin, number) then
    stop('conflict')
  end
end

local function note(id, keep)
  prune(keep, 64)
  redis.call('HSET', OUTCOMES, id, 'committed')
  redis.call('ZADD', AGE, now(), id)
end

-- Guards: { kind, key } for none there, { kind, key, bound } for a floor below it. Both are
-- sixteen hexadecimal digits.
local function check_guards()
  for i = 1, count() do
    local guard = list()
    local _, value = record(guard[1], guard[2])
    if value and not guard[3] then
      stop('conflict')
    elseif value and #value == 8 then
      local floor = ''
      for byte = 1, 8 do
        floor = floor .. string.format('%02x', string.byte(value, byte))
      end
      if is_at_most(guard[3], floor) then
        stop('conflict')
      end
    elseif value and guard[3] == '0000000000000000' then
      stop('conflict')
    end
  end
end

-- The objects that are written must have the indexes that the program declares: { kind, state } of
-- each kind that has some.
local function check_states(written, declared)
  local states = {}
  for _, o in ipairs(written) do
    states[objects[index(o)][1]] = ''
  end
  for _, of in ipairs(declared) do
    states[of[1]] = of[2]
  end
  for kind, state in pairs(states) do
    check_state(kind, state)
  end
end

-- All witness rows of what is written must be known: of these objects, or of all. One question finds
-- that there are neither rows nor indexes.
local function check_beside(known)
  local all, written, declared = arg(), list(), lists()
  if #written == 0 and all == '' then
    return
  end
  local kept = redis.call('EXISTS', ALL_ROWS, STATES)
  local has_rows = kept == 2 or kept == 1 and redis.call('EXISTS', ALL_ROWS) == 1
  if #declared > 0 or kept == 2 or kept == 1 and not has_rows then
    check_states(written, declared)
  end
  if not has_rows then
    return
  end
  local found = {}
  local is_known = true
  local function meet(key, range)
    local members = range and redis.call('ZRANGE', key, 0, -1) or redis.call('SMEMBERS', key)
    for _, row in ipairs(members) do
      found[#found + 1] = row
      is_known = is_known and known[string.sub(row, 1, 49)]
    end
  end
  if all ~= '' then
    meet(ALL_ROWS, true)
  else
    meet(STORE_ROWS)
    for _, o in ipairs(written) do
      meet(rows(index(o)))
    end
  end
  if not is_known then
    stop('witnessed', found)
  end
end

local function apply(ops)
  version = string.format('%.0f', redis.call('INCR', P .. '!commits'))
  for _, op in ipairs(ops) do
    if WRITE[op[1]] then
      WRITE[op[1]](op)
    else
      changes[op[1]](write, op)
    end
  end
end

return run(function()
  local id, origin, number, keep = arg(), arg(), arg(), arg()
  if id ~= '' then
    check_id(id, origin, number)
  end
  check_guards()
  validate()
  local known = {}
  for _, one in ipairs(list()) do
    known[one] = true
  end
  check_beside(known)
  local has_commands = arg() ~= ''
  local ops = lists()
  check_types(ops)
  if has_commands then
    undo = {}
  end
  if #ops > 0 then
    local is_done, why = pcall(apply, ops)
    if not is_done and has_commands then
      restore()
      if type(why) == 'table' and why.stop then
        stop(unpack(why.stop))
      end
      stop('refused', type(why) == 'table' and why.err or tostring(why))
    elseif not is_done then
      return { 'torn', type(why) == 'table' and why.err or tostring(why) }
    end
  end
  if id ~= '' then
    note(id, keep)
  end
  return { 'ok', version or '' }
end)
