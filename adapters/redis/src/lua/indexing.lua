
-- Changes of entries in indexes, by their first letter. They are made where a commit has some, so
-- other commits pay nothing. Of an object: the values of its fields in indexes, in a form that keeps
-- their order, and behind `!` and the name of each index its entry there. An object that does not
-- exist has no values.
local function indexing()
  local function indexed(op)
    local object = objects[index(op[2])]
    return P .. object[1] .. '!index:' .. object[2]
  end

  local changes = {}

  -- Notes the value of a field; empty for one that no index has.
  function changes.v(write, op)
    if op[4] == '' then
      write('HDEL', indexed(op), op[3])
    else
      write('HSET', indexed(op), op[3], op[4])
    end
  end

  -- Forgets all values.
  function changes.V(write, op)
    local of = indexed(op)
    for _, field in ipairs(redis.call('HKEYS', of)) do
      if string.sub(field, 1, 1) ~= '!' then
        write('HDEL', of, field)
      end
    end
  end

  -- Gives an object the entries of its values: { _, object, its key, index, how many fields, those… }.
  -- It comes after all that can fail, so nothing is kept to put it back.
  function changes.X(_, op)
    local key, of, at = op[3], indexed(op), 4
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

  function changes.check(op, check)
    check(indexed(op), 'hash')
    local at = 4
    while op[1] == 'X' and op[at] do
      check(entries(op[at]), 'zset')
      at = at + 2 + tonumber(op[at + 1])
    end
  end

  return changes
end
