import { defineScript, type RedisScript } from "./redis-handle.ts";

/**
 * The scripts that run where the keys of the index are. `records` is a hash with what the index holds of each session;
 * every other part but `unsettled`, `reserved` and those for checkpoints follows from it, and changes in one step with it.
 */

/** The marked sessions and what the index holds of them. KEYS: unsettled, records. */
export const READ_UNSETTLED: RedisScript = defineScript(`
local marks = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
local list = {}
for i = 1, #marks, 2 do list[#list + 1] = {marks[i], marks[i + 1], redis.call('HGET', KEYS[2], marks[i])} end
return list`);

/** Marks every session that the index holds. KEYS: unsettled, records. */
export const MARK_ALL: RedisScript = defineScript(`
for _, id in ipairs(redis.call('HKEYS', KEYS[2])) do redis.call('ZADD', KEYS[1], 'NX', 0, id) end
return {}`);

/** Takes a mark away that no writer counts on any more. KEYS: unsettled. ARGV: session, the generation that has ended. */
export const UNMARK: RedisScript = defineScript(`
local gen = redis.call('ZSCORE', KEYS[1], ARGV[1])
if gen and tonumber(gen) <= tonumber(ARGV[2]) then redis.call('ZREM', KEYS[1], ARGV[1]) end
return {'ok'}`);

/**
 * Replaces the record of a session, if it is still the one that was read, and with it the session's positions.
 *
 * KEYS: records, and then every part that changes. ARGV: session, the old record or '', the new one or '', how many positions
 * are taken away, and then the number of the part and the member for each one taken away and each one added.
 */
export const REPLACE_RECORD: RedisScript = defineScript(`
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return {0} end
if ARGV[3] ~= '' then redis.call('HSET', KEYS[1], ARGV[1], ARGV[3]) else redis.call('HDEL', KEYS[1], ARGV[1]) end
local first = 5
local added = first + 2 * tonumber(ARGV[4])
for i = added, #ARGV, 2 do redis.call('ZADD', KEYS[tonumber(ARGV[i])], 0, ARGV[i + 1]) end
for i = first, added - 1, 2 do redis.call('ZREM', KEYS[tonumber(ARGV[i])], ARGV[i + 1]) end
return {1}`);

/**
 * Takes one of a limited number of slots, for a session about to be made. A slot that was taken long ago and never
 * used is answered with, as its maker may be gone.
 *
 * KEYS: the sessions that count, reserved slots. ARGV: limit, the slot (a session's id, a space, and more), after how
 * many ms it is old.
 */
export const RESERVE: RedisScript = defineScript(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now - tonumber(ARGV[3])))
if #old > 0 then return {'old', old} end
if redis.call('ZSCORE', KEYS[2], ARGV[2]) then return {'ok'} end
local count = redis.call('ZCARD', KEYS[1])
for _, slot in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  local id = string.match(slot, '^[^ ]+')
  if not redis.call('ZSCORE', KEYS[1], id) then count = count + 1 end
end
if count >= tonumber(ARGV[1]) then return {'full'} end
redis.call('ZADD', KEYS[2], string.format('%.0f', now), ARGV[2])
redis.call('EXPIRE', KEYS[2], 86400)
return {'ok'}`);

/** Makes a checkpoint's id lead to a session. KEYS: pointers, those of the session. ARGV: id, old pointer or '', new. */
export const POINT_CHECKPOINT: RedisScript = defineScript(`
local now = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if now ~= ARGV[2] then return {now} end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
redis.call('SADD', KEYS[2], ARGV[1])
return {'', 'ok'}`);

/** Makes a checkpoint's id lead nowhere. KEYS: pointers, those of the session. ARGV: id, the pointer that it must be. */
export const DROP_CHECKPOINT: RedisScript = defineScript(
  `
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return {0} end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('SREM', KEYS[2], ARGV[1])
return {1}`,
  { repeatable: false },
);

/**
 * Makes all checkpoints that lead to one unique name of a session lead to another, or nowhere.
 *
 * KEYS: pointers, those of the session. ARGV: what the pointers begin with, and what instead or ''.
 */
export const MOVE_CHECKPOINTS: RedisScript = defineScript(`
for _, id in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  local pointer = redis.call('HGET', KEYS[1], id)
  if not pointer then redis.call('SREM', KEYS[2], id)
  elseif string.sub(pointer, 1, #ARGV[1]) == ARGV[1] then
    if ARGV[2] ~= '' then redis.call('HSET', KEYS[1], id, ARGV[2] .. string.sub(pointer, #ARGV[1] + 1))
    else
      redis.call('HDEL', KEYS[1], id)
      redis.call('SREM', KEYS[2], id)
    end
  end
end
return {'ok'}`);
