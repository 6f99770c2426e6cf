
-- What became of an id: origin and number. One of which nothing is known is barred first, so that
-- the answer stays true; of one that may have been forgotten nothing is said.
return run(function()
  local id, origin, number, keep = arg(), arg(), arg(), arg()
  local fate = redis.call('HGET', OUTCOMES, id)
  if fate then
    return { fate }
  end
  if is_forgotten(origin, number) then
    return { 'unknown' }
  end
  prune(keep, 64)
  redis.call('HSET', OUTCOMES, id, 'barred')
  redis.call('ZADD', AGE, now(), id)
  return { 'barred' }
end)
