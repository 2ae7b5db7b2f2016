import type { LedgerHour, LedgerPage, LedgerTable } from "../../session/ledger.ts";
import { defineScript, type RedisHandle } from "./redis-handle.ts";

/**
 * Replaces a page. Idempotent: if it is sent again after a lost reply, it finds its own stamp. KEYS: the hash, the sorted set. ARGV: the
 * expected
 * stamp or '', the new one, the text, the ended hour or '', its bucket.
 */
const REPLACE_PAGE = defineScript(`
local stamp = redis.call('HGET', KEYS[1], 'stamp') or ''
if stamp == ARGV[2] then return {'ok'} end
if stamp ~= ARGV[1] then return {'changed'} end
redis.call('HSET', KEYS[1], 'stamp', ARGV[2], 'text', ARGV[3])
if ARGV[4] ~= '' and redis.call('ZCOUNT', KEYS[2], ARGV[4], ARGV[4]) == 0 then
  redis.call('ZADD', KEYS[2], ARGV[4], ARGV[5])
end
return {'ok'}`);

/** The ledger of budgets: for each user a hash with the page, and a sorted set with the buckets by their hours. */
export class RedisLedger implements LedgerTable {
  readonly #handle: RedisHandle;

  constructor(handle: RedisHandle) {
    this.#handle = handle;
  }

  async read(userId: string): Promise<LedgerPage | null> {
    const key = this.#handle.names.spending(userId);
    const [stamp, text] = await this.#handle.command<(string | null)[]>("HMGET", key, "stamp", "text");
    return typeof stamp === "string" && typeof text === "string" ? { stamp, text } : null;
  }

  async replace(
    userId: string,
    expected: string | null,
    { stamp, text }: LedgerPage,
    ended: LedgerHour | null,
  ): Promise<boolean> {
    const { names } = this.#handle;
    const bucket = ended === null ? ["", ""] : [String(ended.hour), JSON.stringify(ended)];
    const [kind] = await this.#handle.run(
      REPLACE_PAGE,
      [names.spending(userId), names.spendingHours(userId)],
      [expected ?? "", stamp, text, ...bucket],
    );
    return kind === "ok";
  }

  async hourBefore(userId: string, hour: number): Promise<LedgerHour | null> {
    const key = this.#handle.names.spendingHours(userId);
    const range = [`(${hour}`, "-inf", "LIMIT", "0", "1"];
    const [bucket] = await this.#handle.command<string[]>("ZREVRANGEBYSCORE", key, ...range);
    return bucket === undefined ? null : (JSON.parse(bucket) as LedgerHour);
  }

  async erase(userId: string): Promise<void> {
    const { names } = this.#handle;
    for (const key of [names.spending(userId), names.spendingHours(userId)]) await this.#handle.command("DEL", key);
  }
}
