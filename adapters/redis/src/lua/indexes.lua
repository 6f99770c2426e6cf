
-- A step of making the indexes of a kind: its state changes from one to the next, keys go, and
-- objects get their entries. While the state is none that a program has, all commits that write
-- such objects are refused.
return run(function()
  local kind, before, after = arg(), arg(), arg()
  check_type(STATES, 'hash')
  if (redis.call('HGET', STATES, kind) or '') ~= before then
    return { 'lost' }
  end
  for _, key in ipairs(list()) do
    redis.call('UNLINK', key)
  end
  local changes = indexing()
  for _, op in ipairs(lists()) do
    changes[op[1]](redis.call, op)
  end
  if after == '' then
    redis.call('HDEL', STATES, kind)
  else
    redis.call('HSET', STATES, kind, after)
  end
  return { 'ok' }
end)
