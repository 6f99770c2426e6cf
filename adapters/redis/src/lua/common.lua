-- What every script begins with. Arguments are taken one after the other; a list is its length and
-- its items. Keys are put together from the prefix, so they are not among KEYS: a cluster would
-- need them there, and is refused.

local at = 0

local function arg()
  at = at + 1
  return ARGV[at]
end

local function count()
  return tonumber(arg())
end

local function list()
  local items = {}
  for i = 1, count() do
    items[i] = arg()
  end
  return items
end

local function lists()
  local items = {}
  for i = 1, count() do
    items[i] = list()
  end
  return items
end

-- Ends the script with an answer; nothing was written yet.
local function stop(...)
  error({ stop = { ... } })
end

local P = arg()

-- The objects that the rest names by index: kind and key.
local objects = lists()

local function data(o)
  return P .. objects[o][1] .. ':' .. objects[o][2]
end

local function collection(o, field)
  return P .. objects[o][1] .. '.' .. field .. ':' .. objects[o][2]
end

-- Of an object: `.` since when it exists, `!` when it was deleted, the version of each field, and
-- with `-` behind a field's name when something was removed from it.
local function versions(o)
  return P .. objects[o][1] .. '!:' .. objects[o][2]
end

-- Of each element of a set, and of each key of a map.
local function units(o, field)
  return P .. objects[o][1] .. '.' .. field .. '!:' .. objects[o][2]
end

local function rows(o)
  return P .. '!witnesses:' .. objects[o][1] .. ':' .. objects[o][2]
end

local function entries(name)
  return P .. '!index:' .. name
end

-- The indexes that the objects of each kind have.
local STATES = P .. '!indexes'

local STORE_ROWS = P .. '!witnesses'
local ALL_ROWS = P .. '!witnesses:order'

local function index(text)
  return tonumber(text)
end

-- A record's version and value; its row is both, with a colon in between.
local function record(kind, key)
  local row = redis.call('HGET', P .. '!records:' .. kind, key)
  if not row then
    return '', false
  end
  local colon = string.find(row, ':', 1, true)
  return string.sub(row, 1, colon - 1), string.sub(row, colon + 1)
end

local function type_of(key)
  return redis.call('TYPE', key).ok
end

local function check_type(key, wanted)
  local found = type_of(key)
  if found ~= 'none' and found ~= wanted then
    stop('refused', 'key ' .. key .. ' is a ' .. found .. ', expected a ' .. wanted)
  end
end

-- A reply as text that no other reply has.
local function spell(reply)
  if type(reply) == 'table' then
    local parts = {}
    for i = 1, #reply do
      parts[i] = spell(reply[i])
    end
    local text = table.concat(parts)
    return '*' .. #reply .. ':' .. #text .. ':' .. text
  elseif type(reply) == 'number' then
    return '#' .. string.format('%.0f', reply) .. ';'
  elseif reply then
    return '$' .. #reply .. ':' .. reply
  end
  return '-'
end

-- What stands for a reply where it is validated; nothing for one without content. `order` says of
-- which parts the order means nothing: none, each (`set`), each pair (`pairs`); of a number only
-- whether there are any may count (`any`).
local function digest(reply, order)
  if reply == false or reply == 0 or (type(reply) == 'table' and #reply == 0) then
    return ''
  end
  if order == 'any' then
    return redis.sha1hex(order)
  elseif type(reply) ~= 'table' or order == '' then
    return redis.sha1hex(spell(reply))
  end
  local parts = {}
  if order == 'pairs' then
    for i = 1, #reply, 2 do
      parts[#parts + 1] = spell(reply[i]) .. spell(reply[i + 1])
    end
  else
    for i = 1, #reply do
      parts[i] = spell(reply[i])
    end
  end
  table.sort(parts)
  return redis.sha1hex(table.concat(parts))
end

-- Asks what is kept as others keep it: { type that the key must have, order, words… }.
local function ask(question)
  local wanted, order = question[2], question[3]
  if wanted ~= '' then
    check_type(question[5], wanted)
  end
  local reply = redis.pcall(unpack(question, 4))
  if type(reply) == 'table' and reply.err then
    stop('refused', question[4] .. ': ' .. reply.err)
  end
  if type(reply) == 'table' and reply.ok then
    reply = reply.ok
  end
  return reply, digest(reply, order)
end

-- Refuses a program whose indexes of a kind are not those that its objects have.
local function check_state(kind, state)
  local found = redis.call('HGET', STATES, kind) or ''
  if found == state then
    return
  elseif string.sub(found, 1, 1) == '?' then
    stop('later', 'the indexes of ' .. kind .. ' are being made: try again when that is done')
  end
  local function shown(of)
    return of == '' and 'no index' or of
  end
  stop('refused', 'objects ' .. kind .. ' have ' .. shown(found) .. ' here, and this program declares ' .. shown(state)
    .. ': another version of the program has opened the store since; open it again with the one that is to go on')
end

-- Asks an index: { _, kind, its state, command, index, words… }.
local function find(question)
  check_state(question[2], question[3])
  local key = entries(question[5])
  check_type(key, 'zset')
  local reply = redis.call(question[4], key, unpack(question, 6))
  return reply, digest(reply, '')
end

local function now_is(check)
  local what = check[1]
  if what == 'h' then
    return redis.call('HGET', versions(index(check[3])), check[4])
  elseif what == 'u' then
    return redis.call('HGET', units(index(check[3]), check[4]), check[5])
  elseif what == 'r' then
    return (record(check[3], check[4]))
  elseif what == 'i' then
    local _, mark = find({ 'i', unpack(check, 3) })
    return mark
  end
  local question = { 'q', unpack(check, 3) }
  local _, mark = ask(question)
  return mark
end

-- Whether all that was read is what it was: { what, what it was, … }.
local function validate()
  for i = 1, count() do
    local check = list()
    if (now_is(check) or '') ~= check[2] then
      stop('conflict')
    end
  end
end

local function run(main)
  local is_done, answer = pcall(main)
  if is_done then
    return answer
  elseif type(answer) == 'table' and answer.stop then
    return answer.stop
  elseif type(answer) == 'table' then
    return answer
  end
  return redis.error_reply('ERR ' .. tostring(answer))
end
