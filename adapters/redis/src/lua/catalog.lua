-- Puts a catalog in the place of the one that was read: key, what was read, what is to be kept.
if (redis.call('GET', ARGV[1]) or '') ~= ARGV[2] then
  return 0
end
redis.call('SET', ARGV[1], ARGV[3])
return 1
