import { defineScript, type RedisScript } from "./redis-handle.ts";

/**
 * The scripts on the keys of one session, which are all in one cluster slot. KEYS are those of `KeyNames.all`, in that order.
 * Each script checks all conditions before its first write, so a refusal changes nothing, and neither does a server that
 * refuses writes.
 *
 * Fields of a session's hash:
 * - `k` is its stamp: its uid, the number of writes, its generation (see session-index.ts) and the name of the last write. It
 *   changes with every write, so comparing it detects every change.
 * - `h` is the length of its log, with the time and generation of the last append. The head is read from the last row.
 * - `del` is the time of its deletion, or empty; `dg`, `dat` and `call` are the generation, time and name of the call that
 *   set it.
 * - `uid`, `hd` and `sg` are its unique name, its header and its inherited segments. Only an erasure changes `uid` and `sg`.
 */

function sessionScript(text: string): RedisScript {
  const keys = "local session, lease, floor, entries, positions, forks, checkpoints, remains = unpack(KEYS)";
  return defineScript(`${keys}${text}`);
}

/** A script that is not idempotent, and so is never resent when it is unknown whether it ran. */
function sessionScriptOnce(text: string): RedisScript {
  return { ...sessionScript(text), repeatable: false };
}

const STAMP = `
local function readStamp()
  local stamp = redis.call('HGET', session, 'k')
  if not stamp then return false end
  return string.match(stamp, '^(%S+) (%d+) (%d+) (%S+)$')
end
local function nextOf(number) return string.format('%.0f', tonumber(number) + 1) end
`;

/** Lua that writes the rows from argument `from` on, starting at the position `ARGV[5]`. Inlined, as a Lua function would be slower. */
function putRows(from: number): string {
  return `
for i = ${from}, #ARGV, 2 do
  local at = i == ${from} and ARGV[5] or string.format('%.0f', tonumber(ARGV[5]) + (i - ${from}) / 2)
  redis.call('XADD', entries, at, 'e', ARGV[i + 1])
  redis.call('HSET', positions, ARGV[i], at)
end
`;
}

/** Lua that sets the TTL of keys. */
function setTtl(ttl: string, keys: string): string {
  return `for _, key in ipairs({${keys}}) do redis.call('EXPIRE', key, ${ttl}) end`;
}

const CLOCK = `
local function clock(now)
  if now ~= '' then return tonumber(now) end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
`;

/** Reads a session, unless it still has the known stamp. ARGV: the known stamp. */
export const LOAD_SESSION: RedisScript = sessionScript(`
local stamp = redis.call('HGET', session, 'k')
if not stamp then return {'none'} end
if stamp == ARGV[1] then return {'same'} end
return {'full', unpack(redis.call('HMGET', session, 'k', 'h', 'hd', 'sg', 'del', 'dg', 'dat'))}`);

/** A row without its entry. Rows of earlier layouts come with it, as only the entry has the id. ARGV: position. */
export const ROW_AT: RedisScript = sessionScript(`
local row = redis.call('XRANGE', entries, ARGV[1], ARGV[1])[1]
if not row then return {} end
return {string.match(row[2][2], '^[^\\n]*\\n"[^\\n]*') or row[2][2]}`);

/**
 * A page of rows: at least one, at most `count`, and no more than `bytes`.
 * ARGV: first position, last position, count, bytes, '' or 1 to begin with the last.
 */
export const PAGE: RedisScript = sessionScript(`
local rows, bytes = {}, 0
local first, last, count, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
while #rows < count do
  local row
  if ARGV[5] == '' then row = redis.call('XRANGE', entries, first, last, 'COUNT', 1)[1]
  else row = redis.call('XREVRANGE', entries, last, first, 'COUNT', 1)[1] end
  if not row then break end
  bytes = bytes + #row[2][2]
  if #rows > 0 and bytes > most then break end
  rows[#rows + 1] = row
  local at = tonumber(string.match(row[1], '^%d+'))
  if ARGV[5] == '' then first = string.format('%.0f', at + 1)
  else last = string.format('%.0f', at - 1) end
  if tonumber(first) > tonumber(last) then break end
end
return rows`);

/**
 * Appends, if the session still has the stamp that the append was planned on, the required lease is live and no id is taken.
 * Returns 1, or 0 if it wrote nothing.
 *
 * Most appends need none of the optional checks. They pass fewer keys and arguments and create no Lua function, which takes
 * the server 11 microseconds instead of 16 and saves the client work.
 *
 * KEYS: session, entries, positions and, with optional checks, lease, forks, checkpoints.
 * ARGV: stamp, next stamp, next h, the optional checks or '', first position, then id and text of each row.
 * The optional checks are separated by spaces, each may be empty: lease token, clock, '1' to check the ids, ttl.
 */
export const APPEND: RedisScript = defineScript(`
local session, entries, positions, lease, forks, checkpoints = unpack(KEYS)
if redis.call('HGET', session, 'k') ~= ARGV[1] then return {0} end
local token, now, unseen, ttl = '', '', '', ''
if ARGV[4] ~= '' then${CLOCK}
  token, now, unseen, ttl = string.match(ARGV[4], '^(%d*) (%d*) (%d*) (%d*)$')
  if token ~= '' then
    local held = redis.call('HMGET', lease, 'token', 'until')
    if held[1] ~= token or tonumber(held[2]) <= clock(now) then return {0} end
  end
end
for i = 6, unseen == '1' and #ARGV or 0, 2 do
  if redis.call('HEXISTS', positions, ARGV[i]) == 1 then return {0} end
end
${putRows(6)}
redis.call('HSET', session, 'k', ARGV[2], 'h', ARGV[3])
if ttl ~= '' and redis.call('EXISTS', forks) == 0 then
  ${setTtl("ttl", "session, entries, positions, lease, checkpoints")}
end
redis.pcall('PUBLISH', session, '')
return {1}`);

/**
 * Creates a session, if its id is free and the marked generation is the one in which it can be created.
 *
 * ARGV: uid, gen, stamp, ttl or '', first position, hd, sg, h, then id and text of each row.
 */
export const CREATE: RedisScript = sessionScript(`
local uid = redis.call('HGET', session, 'uid')
if uid then return {'exists', uid} end
local least = redis.call('GET', floor) or '0'
if least ~= ARGV[2] then return {'gen', least} end
redis.call('HSET', session, 'uid', ARGV[1], 'k', ARGV[3], 'hd', ARGV[6], 'sg', ARGV[7], 'h', ARGV[8], 'del', '')
redis.call('DEL', floor)
${putRows(9)}
if ARGV[4] ~= '' then ${setTtl("ARGV[4]", "session, entries, positions")} end
return {'ok'}`);

/**
 * Deletes or undeletes a session. Idempotent by the name of the call, since a client may resend it.
 *
 * ARGV: uid, gen, time of deletion or '', now, the name of the call.
 */
export const SET_DELETED: RedisScript = sessionScript(`${STAMP}
local uid, rev, gen = readStamp()
if uid ~= ARGV[1] then return {'gone'} end
local s = redis.call('HMGET', session, 'del', 'call')
if s[2] == ARGV[5] then return {'ok'} end
if (s[1] == '') == (ARGV[3] == '') then return {'no'} end
if gen ~= ARGV[2] then return {'gen'} end
redis.call('HSET', session, 'del', ARGV[3], 'dg', gen, 'dat', ARGV[4], 'call', ARGV[5],
  'k', uid .. ' ' .. nextOf(rev) .. ' ' .. gen .. ' ' .. ARGV[5])
if redis.call('EXISTS', lease) == 1 then redis.call('HSET', lease, 'until', '0') end
redis.pcall('PUBLISH', session, '')
return {'ok'}`);

/** Ends the generation of a session, if it still has this stamp. ARGV: stamp. */
export const END_GENERATION: RedisScript = sessionScript(`${STAMP}
if redis.call('HGET', session, 'k') ~= ARGV[1] then return {0} end
local uid, rev, gen, nonce = readStamp()
redis.call('HSET', session, 'k', uid .. ' ' .. rev .. ' ' .. nextOf(gen) .. ' ' .. nonce)
return {1}`);

/** Prevents the creation of a missing session in this generation or an earlier one. ARGV: gen. */
export const FENCE: RedisScript = sessionScript(`
if redis.call('EXISTS', session) == 1 then return {0} end
if tonumber(redis.call('GET', floor) or '0') <= tonumber(ARGV[1]) then
  redis.call('SET', floor, string.format('%.0f', tonumber(ARGV[1]) + 1), 'EX', 86400)
end
return {1}`);

/** Finds entries by id, up to a position. ARGV: the position, then ids. */
export const FIND: RedisScript = sessionScript(`
local found = {}
for i = 2, #ARGV do
  local position = redis.call('HGET', positions, ARGV[i])
  if position and tonumber(position) <= tonumber(ARGV[1]) then
    local row = redis.call('XRANGE', entries, position, position)[1]
    if row then found[#found + 1] = row end
  end
end
return found`);

/**
 * Keeps the entries that a fork inherits, also after their session is purged, and removes the TTL of their keys.
 *
 * ARGV: uid, the fork's uid, its id, version, now.
 */
export const RETAIN: RedisScript = sessionScript(`
local live = redis.call('HGET', session, 'uid') == ARGV[1]
local kept = redis.call('HGET', remains, 'needed')
if not live and (not kept or tonumber(kept) < tonumber(ARGV[4])) then return {'gone'} end
redis.call('HSET', forks, ARGV[2], cjson.encode({ARGV[3], ARGV[4], ARGV[5]}))
for _, key in ipairs({entries, positions, forks}) do redis.call('PERSIST', key) end
if live then for _, key in ipairs({session, checkpoints, lease}) do redis.call('PERSIST', key) end end
return {'ok'}`);

const NEEDED = `
local function needed()
  local most = 0
  for _, fork in ipairs(redis.call('HVALS', forks)) do
    most = math.max(most, tonumber(cjson.decode(fork)[2]))
  end
  return string.format('%.0f', most)
end
local function leaveLog(segments)
  if redis.call('EXISTS', forks) == 1 then redis.call('HSET', remains, 'needed', needed(), 'sg', segments)
  else redis.call('UNLINK', entries, positions) end
end
`;

/**
 * Removes the reference of a fork. If the session of the log is purged and no other fork is left, deletes the log.
 *
 * ARGV: the fork's uid.
 */
export const RELEASE: RedisScript = sessionScriptOnce(`${NEEDED}
if redis.call('HDEL', forks, ARGV[1]) == 0 or redis.call('EXISTS', remains) == 0 then return {'kept'} end
if redis.call('EXISTS', forks) == 1 then
  redis.call('HSET', remains, 'needed', needed())
else
  redis.call('UNLINK', forks, remains, entries, positions)
end
return {'ok'}`);

/**
 * Purges a deleted session, except the entries that forks inherit.
 *
 * ARGV: uid, gen, and the time it must have been deleted before.
 */
export const PURGE: RedisScript = sessionScriptOnce(`${NEEDED}${STAMP}
local uid, _, gen = readStamp()
local s = redis.call('HMGET', session, 'del', 'sg')
if uid ~= ARGV[1] or s[1] == '' or s[1] >= ARGV[3] then return {'no'} end
if gen ~= ARGV[2] then return {'gen'} end
redis.call('SET', floor, nextOf(gen), 'EX', 86400)
redis.call('UNLINK', session, checkpoints, lease)
leaveLog(s[2])
return {'ok'}`);

/**
 * Replaces the log of a session by one with a new uid, if the session still has the stamp that this was planned on. The old
 * log is then treated like that of a purged session.
 *
 * KEYS: those of the session, then entries, positions and checkpoints of the new uid. ARGV: stamp, the new uid, the new
 * stamp, the new h, first position, then id and text of each row.
 */
export const REPLACE: RedisScript = sessionScriptOnce(`${NEEDED}
local s = redis.call('HMGET', session, 'k', 'sg')
if s[1] ~= ARGV[1] then return {'behind'} end
local ttl = redis.call('TTL', session)
redis.call('HSET', session, 'uid', ARGV[2], 'k', ARGV[3], 'h', ARGV[4], 'sg', '[]')
if redis.call('EXISTS', checkpoints) == 1 then redis.call('RENAME', checkpoints, KEYS[11]) end
leaveLog(s[2])
entries, positions = KEYS[9], KEYS[10]
${putRows(6)}
if ttl > 0 then ${setTtl("ttl", "entries, positions")} end
return {'ok'}`);

/** Deletes entries at the end of a purged log. ARGV: position in the stream and id of each. */
export const CUT: RedisScript = sessionScript(`
for i = 1, #ARGV, 2 do
  redis.call('XDEL', entries, ARGV[i])
  redis.call('HDEL', positions, ARGV[i + 1])
end
return {'ok'}`);

/**
 * Acquires the lease of a session. ARGV: run, ttl, clock.
 *
 * The token is the time of the server in microseconds, or the last token plus one if that is larger. So tokens only grow,
 * even over sessions that were purged and created again.
 */
export const ACQUIRE_LEASE: RedisScript = sessionScript(`${CLOCK}
local s = redis.call('HMGET', session, 'uid', 'del')
if not s[1] or s[2] ~= '' then return {'gone'} end
local now = clock(ARGV[3])
local held = redis.call('HMGET', lease, 'run', 'until', 'token')
if held[2] and tonumber(held[2]) > now then return {'busy', held[1]} end
local time = redis.call('TIME')
local token = tonumber(time[1]) * 1000000 + tonumber(time[2])
if held[3] and tonumber(held[3]) >= token then token = tonumber(held[3]) + 1 end
local expires = now + tonumber(ARGV[2])
redis.call('HSET', lease, 'run', ARGV[1], 'token', string.format('%.0f', token), 'until', string.format('%.0f', expires))
redis.call('PERSIST', lease)
local left = redis.call('TTL', session)
if left > 0 then redis.call('EXPIRE', lease, left) end
return {'ok', string.format('%.0f', token), string.format('%.0f', expires)}`);

/** Renews a lease; with a ttl of 0, releases it. ARGV: token, ttl, clock. */
export const RENEW_LEASE: RedisScript = sessionScript(`${CLOCK}
local now = clock(ARGV[3])
local held = redis.call('HMGET', lease, 'token', 'until')
if held[1] ~= ARGV[1] or tonumber(held[2]) <= now then return {'lost'} end
local expires = string.format('%.0f', now + tonumber(ARGV[2]))
redis.call('HSET', lease, 'until', expires)
return {'ok', expires}`);

/** The live lease. ARGV: clock. */
export const CURRENT_LEASE: RedisScript = sessionScript(`${CLOCK}
local s = redis.call('HMGET', session, 'uid', 'del')
local held = redis.call('HMGET', lease, 'run', 'token', 'until')
if not s[1] or s[2] ~= '' or not held[1] or tonumber(held[3]) <= clock(ARGV[1]) then return {'none'} end
return {'ok', held[1], held[2], held[3]}`);

/** Stores a checkpoint, invisible until its pointer is set. ARGV: uid, token, body. */
export const PUT_CHECKPOINT: RedisScript = sessionScript(`
local s = redis.call('HMGET', session, 'uid', 'del')
if s[1] ~= ARGV[1] or s[2] ~= '' then return {'gone'} end
local sequence = redis.call('HINCRBY', checkpoints, '#', 1)
redis.call('HSET', checkpoints, ARGV[2], cjson.encode({sequence, ARGV[3]}))
local left = redis.call('TTL', session)
if left > 0 then redis.call('EXPIRE', checkpoints, left) end
return {'ok'}`);

/** Replaces the content of a checkpoint and keeps its sequence number. KEYS: the hash. ARGV: token, content. */
export const REPLACE_CHECKPOINT: RedisScript = defineScript(`
local old = redis.call('HGET', KEYS[1], ARGV[1])
if not old then return {'none'} end
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode({cjson.decode(old)[1], ARGV[2]}))
return {'ok'}`);

/** The fields and values of a hash, as a list of pairs on every client. KEYS: the hash. */
export const READ_ALL: RedisScript = defineScript(`
local all, list = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #all, 2 do list[#list + 1] = {all[i], all[i + 1]} end
return list`);
