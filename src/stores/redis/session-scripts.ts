import { defineScript, type RedisScript } from "./redis-handle.ts";

/**
 * The scripts that run where a session's keys are. Each checks everything first and writes after that: a refusal
 * changes nothing, and a server that takes no writes refuses the first one.
 *
 * Fields of a session's hash:
 * - `k` is its stamp: its unique name, how often it was written to, its generation (see session-index.ts) and what the
 *   last write was called. It changes with every write, so that comparing it compares everything.
 * - `h` is where its log ends, and when and in which generation that was written. The head is what the last row says.
 * - `del` is when it was deleted, or empty; `dg`, `dat` and `call` are the generation, time and name of the call that
 *   wrote that.
 * - `uid`, `hd` and `sg` never change: its unique name, its header, whose log it begins with.
 */

const STAMP = `
local function readStamp(key)
  local stamp = redis.call('HGET', key, 'k')
  if not stamp then return false end
  return string.match(stamp, '^(%S+) (%d+) (%d+) (%S+)$')
end
local function nextOf(number) return string.format('%.0f', tonumber(number) + 1) end
`;

const ROWS = `
local function putRows(from, entries, positions, first)
  for i = from, #ARGV, 2 do
    local at = string.format('%.0f', tonumber(first) + (i - from) / 2)
    redis.call('XADD', entries, at, 'e', ARGV[i + 1])
    redis.call('HSET', positions, ARGV[i], at)
  end
end
local function keepFor(ttl, keys)
  for _, key in ipairs(keys) do redis.call('EXPIRE', key, ttl) end
end
`;

const CLOCK = `
local function clock(now)
  if now ~= '' then return tonumber(now) end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
`;

/** Reads a session, or says that it is still as known. KEYS: session. ARGV: the known stamp. */
export const LOAD_SESSION: RedisScript = defineScript(`
local stamp = redis.call('HGET', KEYS[1], 'k')
if not stamp then return {'none'} end
if stamp == ARGV[1] then return {'same'} end
return {'full', unpack(redis.call('HMGET', KEYS[1], 'k', 'h', 'hd', 'sg', 'del', 'dg', 'dat'))}`);

/** A row without its entry, as far as the row itself says what the entry's id is. KEYS: entries. ARGV: place. */
export const ROW_AT: RedisScript = defineScript(`
local row = redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1])[1]
if not row then return {} end
return {string.match(row[2][2], '^[^\\n]*\\n"[^\\n]*') or row[2][2]}`);

/**
 * Appends, if the session is what was planned on and, where that is asked for, no id is taken and a lease is the live one.
 * Answers 1, or 0 where it did nothing.
 *
 * KEYS: session, entries, positions, lease, forks, checkpoints. ARGV: stamp, next stamp, next h, channel, first place,
 * token or '', clock, '1' where ids may be taken, ttl or '', and then id and text of each row.
 */
export const APPEND: RedisScript = defineScript(`${ROWS}${CLOCK}
if redis.call('HGET', KEYS[1], 'k') ~= ARGV[1] then return 0 end
if ARGV[6] ~= '' then
  local lease = redis.call('HMGET', KEYS[4], 'token', 'until')
  if lease[1] ~= ARGV[6] or tonumber(lease[2]) <= clock(ARGV[7]) then return 0 end
end
if ARGV[8] == '1' then
  for i = 10, #ARGV, 2 do
    if redis.call('HEXISTS', KEYS[3], ARGV[i]) == 1 then return 0 end
  end
end
putRows(10, KEYS[2], KEYS[3], ARGV[5])
redis.call('HSET', KEYS[1], 'k', ARGV[2], 'h', ARGV[3])
if ARGV[9] ~= '' and redis.call('EXISTS', KEYS[5]) == 0 then
  keepFor(ARGV[9], {KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[6]})
end
redis.pcall('PUBLISH', ARGV[4], '')
return 1`);

/**
 * Makes a session, if its id is free and its generation is the one that was marked.
 *
 * KEYS: session, entries, positions, floor. ARGV: uid, gen, stamp, ttl or '', first place, hd, sg, h, and then id and text
 * of each row.
 */
export const CREATE: RedisScript = defineScript(`${ROWS}
local uid = redis.call('HGET', KEYS[1], 'uid')
if uid then return {'exists', uid} end
local floor = redis.call('GET', KEYS[4]) or '0'
if floor ~= ARGV[2] then return {'gen', floor} end
redis.call('HSET', KEYS[1], 'uid', ARGV[1], 'k', ARGV[3], 'hd', ARGV[6], 'sg', ARGV[7], 'h', ARGV[8], 'del', '')
redis.call('DEL', KEYS[4])
putRows(9, KEYS[2], KEYS[3], ARGV[5])
if ARGV[4] ~= '' then keepFor(ARGV[4], {KEYS[1], KEYS[2], KEYS[3]}) end
return {'ok'}`);

/**
 * Deletes a session or brings it back; a call that comes twice, as a client may send it again, is one.
 *
 * KEYS: session, lease. ARGV: uid, gen, time of deletion or '', now, channel, the name of the call.
 */
export const SET_DELETED: RedisScript = defineScript(`${STAMP}
local uid, rev, gen = readStamp(KEYS[1])
if uid ~= ARGV[1] then return {'gone'} end
local s = redis.call('HMGET', KEYS[1], 'del', 'call')
if s[2] == ARGV[6] then return {'ok'} end
if (s[1] == '') == (ARGV[3] == '') then return {'no'} end
if gen ~= ARGV[2] then return {'gen'} end
redis.call('HSET', KEYS[1], 'del', ARGV[3], 'dg', gen, 'dat', ARGV[4], 'call', ARGV[6],
  'k', uid .. ' ' .. nextOf(rev) .. ' ' .. gen .. ' ' .. ARGV[6])
if redis.call('EXISTS', KEYS[2]) == 1 then redis.call('HSET', KEYS[2], 'until', '0') end
redis.pcall('PUBLISH', ARGV[5], '')
return {'ok'}`);

/** Ends a generation of a session that was not written to since. KEYS: session. ARGV: stamp. */
export const END_GENERATION: RedisScript = defineScript(`${STAMP}
if redis.call('HGET', KEYS[1], 'k') ~= ARGV[1] then return {0} end
local uid, rev, gen, nonce = readStamp(KEYS[1])
redis.call('HSET', KEYS[1], 'k', uid .. ' ' .. rev .. ' ' .. nextOf(gen) .. ' ' .. nonce)
return {1}`);

/** Keeps anyone who marked up to a generation from making the session with it. KEYS: session, floor. ARGV: gen. */
export const FENCE: RedisScript = defineScript(`
if redis.call('EXISTS', KEYS[1]) == 1 then return {0} end
if tonumber(redis.call('GET', KEYS[2]) or '0') <= tonumber(ARGV[1]) then
  redis.call('SET', KEYS[2], string.format('%.0f', tonumber(ARGV[1]) + 1), 'EX', 86400)
end
return {1}`);

/** Finds entries by id up to a place. KEYS: positions, entries. ARGV: the place and then ids. */
export const FIND: RedisScript = defineScript(`
local found = {}
for i = 2, #ARGV do
  local place = redis.call('HGET', KEYS[1], ARGV[i])
  if place and tonumber(place) <= tonumber(ARGV[1]) then
    local row = redis.call('XRANGE', KEYS[2], place, place)[1]
    if row then found[#found + 1] = row end
  end
end
return found`);

/**
 * Keeps what a fork takes of a log, also when the log's session is purged, and lets none of it run out.
 *
 * KEYS: session, entries, positions, forks, checkpoints, lease, remains. ARGV: uid, the fork's uid, its id, version, now.
 */
export const RETAIN: RedisScript = defineScript(`
local live = redis.call('HGET', KEYS[1], 'uid') == ARGV[1]
local kept = redis.call('HGET', KEYS[7], 'needed')
if not live and (not kept or tonumber(kept) < tonumber(ARGV[4])) then return {'gone'} end
redis.call('HSET', KEYS[4], ARGV[2], cjson.encode({ARGV[3], ARGV[4], ARGV[5]}))
for i = 2, 4 do redis.call('PERSIST', KEYS[i]) end
if live then for _, i in ipairs({1, 5, 6}) do redis.call('PERSIST', KEYS[i]) end end
return {'ok'}`);

const NEEDED = `
local function neededBy(forks)
  local needed = 0
  for _, fork in ipairs(redis.call('HVALS', forks)) do
    needed = math.max(needed, tonumber(cjson.decode(fork)[2]))
  end
  return string.format('%.0f', needed)
end
`;

/**
 * Lets go of what a fork took; when its session is purged and no other fork is left, removes the log.
 *
 * KEYS: forks, remains, entries, positions. ARGV: the fork's uid. Answers how far the rest is needed, or whose log it
 * began with.
 */
export const RELEASE: RedisScript = defineScript(
  `${NEEDED}
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 or redis.call('EXISTS', KEYS[2]) == 0 then return {'kept'} end
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HSET', KEYS[2], 'needed', neededBy(KEYS[1]))
  return {'cut', redis.call('HGET', KEYS[2], 'needed')}
end
local segments = redis.call('HGET', KEYS[2], 'sg')
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
return {'removed', segments}`,
  { repeatable: false },
);

/**
 * Removes a deleted session, except what forks take of its log.
 *
 * KEYS: session, entries, positions, forks, checkpoints, remains, lease, floor. ARGV: uid, gen, and the time it must have
 * been deleted before.
 */
export const PURGE: RedisScript = defineScript(
  `${NEEDED}${STAMP}
local uid, _, gen = readStamp(KEYS[1])
local s = redis.call('HMGET', KEYS[1], 'del', 'sg')
if uid ~= ARGV[1] or s[1] == '' or s[1] >= ARGV[3] then return {'no'} end
if gen ~= ARGV[2] then return {'gen'} end
redis.call('SET', KEYS[8], nextOf(gen), 'EX', 86400)
redis.call('UNLINK', KEYS[1], KEYS[5], KEYS[7])
if redis.call('EXISTS', KEYS[4]) == 1 then
  local needed = neededBy(KEYS[4])
  redis.call('HSET', KEYS[6], 'needed', needed, 'sg', s[2])
  return {'cut', needed}
end
redis.call('UNLINK', KEYS[2], KEYS[3])
return {'removed', s[2]}`,
  { repeatable: false },
);

/** Removes entries at the end of a purged log. KEYS: entries, positions. ARGV: place in the stream and id of each. */
export const CUT: RedisScript = defineScript(`
for i = 1, #ARGV, 2 do
  redis.call('XDEL', KEYS[1], ARGV[i])
  redis.call('HDEL', KEYS[2], ARGV[i + 1])
end
return {'ok'}`);

/**
 * Gives a session to a run. KEYS: session, lease. ARGV: run, ttl, clock.
 *
 * A token is the server's time in microseconds, or one more than the last where that is larger: so tokens grow also over
 * sessions that were purged and made again.
 */
export const ACQUIRE_LEASE: RedisScript = defineScript(`${CLOCK}
local s = redis.call('HMGET', KEYS[1], 'uid', 'del')
if not s[1] or s[2] ~= '' then return {'gone'} end
local now = clock(ARGV[3])
local held = redis.call('HMGET', KEYS[2], 'run', 'until', 'token')
if held[2] and tonumber(held[2]) > now then return {'busy', held[1]} end
local time = redis.call('TIME')
local token = tonumber(time[1]) * 1000000 + tonumber(time[2])
if held[3] and tonumber(held[3]) >= token then token = tonumber(held[3]) + 1 end
local expires = now + tonumber(ARGV[2])
redis.call('HSET', KEYS[2], 'run', ARGV[1], 'token', string.format('%.0f', token), 'until', string.format('%.0f', expires))
redis.call('PERSIST', KEYS[2])
local left = redis.call('TTL', KEYS[1])
if left > 0 then redis.call('EXPIRE', KEYS[2], left) end
return {'ok', string.format('%.0f', token), string.format('%.0f', expires)}`);

/** Holds a lease longer. KEYS: lease. ARGV: token, ttl, clock. */
export const RENEW_LEASE: RedisScript = defineScript(`${CLOCK}
local now = clock(ARGV[3])
local held = redis.call('HMGET', KEYS[1], 'token', 'until')
if held[1] ~= ARGV[1] or tonumber(held[2]) <= now then return {'lost'} end
local expires = string.format('%.0f', now + tonumber(ARGV[2]))
redis.call('HSET', KEYS[1], 'until', expires)
return {'ok', expires}`);

/** Lets go of a lease. KEYS: lease. ARGV: token. */
export const RELEASE_LEASE: RedisScript = defineScript(`
if redis.call('HGET', KEYS[1], 'token') == ARGV[1] then redis.call('HSET', KEYS[1], 'until', '0') end
return {'ok'}`);

/** The live lease. KEYS: session, lease. ARGV: clock. */
export const CURRENT_LEASE: RedisScript = defineScript(`${CLOCK}
local s = redis.call('HMGET', KEYS[1], 'uid', 'del')
local held = redis.call('HMGET', KEYS[2], 'run', 'token', 'until')
if not s[1] or s[2] ~= '' or not held[1] or tonumber(held[3]) <= clock(ARGV[1]) then return {'none'} end
return {'ok', held[1], held[2], held[3]}`);

/** Writes a checkpoint that no one can see yet. KEYS: session, checkpoints. ARGV: uid, token, body, ttl. */
export const PUT_CHECKPOINT: RedisScript = defineScript(`
local s = redis.call('HMGET', KEYS[1], 'uid', 'del')
if s[1] ~= ARGV[1] or s[2] ~= '' then return {'gone'} end
local sequence = redis.call('HINCRBY', KEYS[2], '#', 1)
redis.call('HSET', KEYS[2], ARGV[2], cjson.encode({sequence, ARGV[3]}))
local left = redis.call('TTL', KEYS[1])
if left > 0 then redis.call('EXPIRE', KEYS[2], left) end
return {'ok'}`);

/** All of a hash, as a list on every client. KEYS: the hash. */
export const READ_ALL: RedisScript = defineScript("return redis.call('HGETALL', KEYS[1])");
