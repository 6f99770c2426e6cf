
-- { data, versions… } of each read, by its first letter.
local READ = {
  x = function(read)
    return redis.call('HMGET', versions(index(read[2])), '.', '!')
  end,
  h = function(read)
    local o, field = index(read[2]), read[3]
    local version = redis.call('HMGET', versions(o), field, '!')
    return { redis.call('HGET', data(o), field), version[1], version[2] }
  end,
  c = function(read)
    local o, field, element = index(read[2]), read[3], read[4]
    local version = redis.call('HGET', units(o, field), element)
    local removed = redis.call('HMGET', versions(o), field .. '-', '!')
    local found = redis.call('SISMEMBER', collection(o, field), element)
    return { found, version, removed[1] or removed[2] }
  end,
  e = function(read)
    local o, field, key = index(read[2]), read[3], read[4]
    local version = redis.call('HGET', units(o, field), key)
    local removed = redis.call('HMGET', versions(o), field .. '-', '!')
    local found = redis.call('HGET', collection(o, field), key)
    return { found, version, removed[1] or removed[2] }
  end,
  -- The whole of a collection, or its size, by the command that gives it.
  s = function(read)
    local o, field = index(read[2]), read[3]
    local version = redis.call('HMGET', versions(o), field, '!')
    local found = redis.call(read[4], collection(o, field), unpack(read, 5))
    return { found, version[1], version[2] }
  end,
  r = function(read)
    local version, value = record(read[2], read[3])
    return { value, version }
  end,
  k = function(read)
    local rows = P .. '!records:' .. read[2]
    local keys = redis.call('ZRANGEBYLEX', rows .. ':order', '[' .. read[3], '+', 'LIMIT', 0, read[4])
    local found = {}
    for i = 1, #keys do
      local _, value = record(read[2], keys[i])
      found[2 * i - 1] = keys[i]
      found[2 * i] = value
    end
    return found
  end,
  -- Witness rows from a transaction on: all of each.
  w = function(read)
    local from, limit = '[' .. read[2], tonumber(read[3])
    local found = redis.call('ZRANGEBYLEX', ALL_ROWS, from, '+', 'LIMIT', 0, limit)
    if limit > 0 and #found == limit then
      local last = found[limit]
      local rest = redis.call('ZRANGEBYLEX', ALL_ROWS, '(' .. last, '[' .. string.sub(last, 1, 49) .. ';')
      for i = 1, #rest do
        found[limit + i] = rest[i]
      end
    end
    return found
  end,
  i = function(read)
    local reply, mark = find(read)
    return { reply, mark }
  end,
  q = function(read)
    local reply, mark = ask(read)
    return { reply, mark }
  end,
}

-- After what was validated: reads, and the objects whose witness rows are wanted.
return run(function()
  validate()
  local reads = lists()
  local wanted = list()
  local answers = {}
  for i = 1, #reads do
    answers[i] = READ[reads[i][1]](reads[i])
  end
  local found = {}
  if redis.call('EXISTS', ALL_ROWS) == 1 then
    found[1] = redis.call('SMEMBERS', STORE_ROWS)
    for i = 1, #wanted do
      found[i + 1] = redis.call('SMEMBERS', rows(index(wanted[i])))
    end
  end
  return { 'ok', answers, found }
end)
