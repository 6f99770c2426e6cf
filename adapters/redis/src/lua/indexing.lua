
-- Changes of entries in indexes. Of an object: the values of its fields in indexes, in a form that
-- keeps their order, and behind `!` and the name of each index its entry there. An object that does
-- not exist has no values.
local function indexed(o)
  return P .. objects[o][1] .. '!index:' .. objects[o][2]
end

-- Notes the value of a field; empty for one that no index has.
local function note_value(write, o, field, value)
  if value == '' then
    write('HDEL', indexed(o), field)
  else
    write('HSET', indexed(o), field, value)
  end
end

-- Gives an object the entries of its values: { _, object, its key, index, how many fields, those… }.
-- It comes after all that can fail, so nothing is kept to put it back.
local function settle_entries(op)
  local o, key, at = index(op[2]), op[3], 4
  local of = indexed(o)
  while op[at] do
    local name, size = op[at], tonumber(op[at + 1])
    local parts, entry = {}, false
    for i = 1, size do
      parts[#parts + 1] = redis.call('HGET', of, op[at + 1 + i]) or nil
    end
    if #parts == size then
      entry = table.concat(parts) .. key
    end
    local before = redis.call('HGET', of, '!' .. name)
    if before and before ~= entry then
      redis.call('ZREM', entries(name), before)
      redis.call('HDEL', of, '!' .. name)
    end
    if entry and before ~= entry then
      redis.call('ZADD', entries(name), 0, entry)
      redis.call('HSET', of, '!' .. name, entry)
    end
    at = at + 2 + size
  end
end
