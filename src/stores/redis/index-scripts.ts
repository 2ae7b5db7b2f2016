import { defineScript, type RedisScript } from "./redis-handle.ts";

/**
 * The scripts on the keys of the index, which are all in one cluster slot. `records` is a hash with the record of each
 * session. Every other key, except `unsettled`, `reserved` and those for checkpoints, is derived from the records and
 * changes atomically with them.
 */

/** The marked sessions with their records. KEYS: unsettled, records. */
export const READ_UNSETTLED: RedisScript = defineScript(`
local marks = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
local list = {}
for i = 1, #marks, 2 do list[#list + 1] = {marks[i], marks[i + 1], redis.call('HGET', KEYS[2], marks[i])} end
return list`);

/** Marks every session of the index. KEYS: unsettled, records. */
export const MARK_ALL: RedisScript = defineScript(`
for _, id in ipairs(redis.call('HKEYS', KEYS[2])) do redis.call('ZADD', KEYS[1], 'NX', 0, id) end
return {}`);

/** Removes the mark of a generation that has ended, so that no writer relies on it. KEYS: unsettled. ARGV: session, generation. */
export const UNMARK: RedisScript = defineScript(`
local gen = redis.call('ZSCORE', KEYS[1], ARGV[1])
if gen and tonumber(gen) <= tonumber(ARGV[2]) then redis.call('ZREM', KEYS[1], ARGV[1]) end
return {'ok'}`);

/**
 * Replaces the record of a session and its members in the sorted sets (compare-and-set): only if the record is still the
 * one that was read.
 *
 * KEYS: records, then every sorted set that changes. ARGV: session, the old record or '', the new one or '', the number of
 * members to remove, then for each member to remove, and each one to add, the index of its key and the member.
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
 * Reserves room within a limit for a session that is about to be created. If there are old reservations, returns them
 * instead, as their processes may have died.
 *
 * KEYS: the sessions that count, the reservations. ARGV: limit, the reservation (a session's id, a space, and more), the
 * age in ms from which a reservation is old.
 */
export const RESERVE: RedisScript = defineScript(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now - tonumber(ARGV[3])))
if #old > 0 then return {'old', old} end
if redis.call('ZSCORE', KEYS[2], ARGV[2]) then return {'ok'} end
local count = redis.call('ZCARD', KEYS[1])
for _, reservation in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  local id = string.match(reservation, '^[^ ]+')
  if not redis.call('ZSCORE', KEYS[1], id) then count = count + 1 end
end
if count >= tonumber(ARGV[1]) then return {'full'} end
redis.call('ZADD', KEYS[2], string.format('%.0f', now), ARGV[2])
redis.call('EXPIRE', KEYS[2], 86400)
return {'ok'}`);

/** Sets the pointer of a checkpoint's id, if it is still the old one. KEYS: pointers, ids of the session. ARGV: id, old pointer or '', new. */
export const POINT_CHECKPOINT: RedisScript = defineScript(`
local now = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if now ~= ARGV[2] then return {now} end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
redis.call('SADD', KEYS[2], ARGV[1])
return {'', 'ok'}`);

/** Deletes the pointer of a checkpoint's id. KEYS: pointers, ids of the session. ARGV: id, the expected pointer. */
export const DROP_CHECKPOINT: RedisScript = defineScript(
  `
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return {0} end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('SREM', KEYS[2], ARGV[1])
return {1}`,
  { repeatable: false },
);

/**
 * Replaces the prefix of all checkpoint pointers of a session, or deletes those pointers.
 *
 * KEYS: pointers, ids of the session. ARGV: the prefix, the new prefix or '' to delete.
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
