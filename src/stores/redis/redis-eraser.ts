import { uuidv7 } from "../../internal/uuid.ts";
import { NOTHING_FOUND } from "../../session/append-plan.ts";
import type { Entry } from "../../session/entry.ts";
import { SessionNotFoundError } from "../../session/errors.ts";
import type { StoreEraser } from "../../session/store.ts";
import { planAgain } from "../complete/plan-again.ts";
import { encodePlan } from "../rows/encode-plan.ts";
import type { SessionCache } from "../rows/session-cache.ts";
import type { ForkReferences } from "./fork-references.ts";
import { defineScript, type RedisHandle } from "./redis-handle.ts";
import { argsOf, placeOf, type RedisPort } from "./redis-port.ts";
import type { SessionIndex } from "./session-index.ts";
import { REPLACE } from "./session-scripts.ts";
import { nextStamp, type StoredSession, writeHead } from "./stored-session.ts";

/** What erasing needs of its store. */
export interface EraserParts {
  readonly port: RedisPort;
  readonly cache: SessionCache<StoredSession>;
  readonly index: SessionIndex;
  readonly references: ForkReferences;
}

/** Writes marks, and removes those without a value. KEYS: the hash. ARGV: key and value of each. */
const WRITE_MARKS = defineScript(`
for i = 1, #ARGV, 2 do
  if ARGV[i + 1] == '' then redis.call('HDEL', KEYS[1], ARGV[i]) else redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
return {'ok'}`);

/** Gives sessions other logs under other unique names, and keeps marks in a hash. */
export class RedisEraser implements StoreEraser {
  readonly #handle: RedisHandle;
  readonly #parts: EraserParts;
  readonly #marks: string;

  constructor(handle: RedisHandle, parts: EraserParts) {
    this.#handle = handle;
    this.#parts = parts;
    this.#marks = handle.names.index("marks");
  }

  async replace(sessionId: string, version: number, entries: readonly Entry[]): Promise<boolean> {
    const { port, cache, index, references } = this.#parts;
    await references.finish();
    const session = await port.load(sessionId);
    if (session === null) throw new SessionNotFoundError(sessionId);
    if (session.head.version !== version) return false;
    const { empty, plan } = planAgain(session.head, entries);
    const { rows, place } = encodePlan({ head: empty, leafSeq: null, factsSeq: null }, plan, NOTHING_FOUND.entries);
    if (!session.marked) await index.mark(sessionId, session.stamp.gen);
    const { names } = this.#handle;
    const stamp = nextStamp({ ...session.stamp, uid: uuidv7() });
    const log = [names.entries(sessionId, stamp.uid), names.positions(sessionId, stamp.uid)];
    const keys = [...names.all(sessionId, session.stamp.uid), ...log, names.checkpoints(sessionId, stamp.uid)];
    const args = [session.stamp.text, stamp.uid, stamp.text, writeHead(place.head, stamp.gen), placeOf(0)];
    const [kind] = await references.removing(session, () =>
      this.#handle.run(REPLACE, keys, [...args, ...argsOf(rows)]),
    );
    cache.forget(sessionId);
    return kind === "ok";
  }

  async readMarks(wanted?: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const keys = wanted ?? ((await this.#handle.command(this.#marks, ["HKEYS", this.#marks])) as string[]);
    if (keys.length === 0) return new Map();
    const values = (await this.#handle.command(this.#marks, ["HMGET", this.#marks, ...keys])) as (string | null)[];
    return new Map(keys.flatMap((key, index) => (values[index] == null ? [] : [[key, values[index] as string]])));
  }

  async writeMarks(marks: ReadonlyMap<string, string | null>): Promise<void> {
    await this.#handle.run(
      WRITE_MARKS,
      [this.#marks],
      [...marks].flatMap(([key, value]) => [key, value ?? ""]),
    );
  }

  /** Where the server keeps a log of its commands, it is written anew without those that were undone. */
  async rewrite(): Promise<void> {
    const info = String(await this.#handle.command(this.#marks, ["INFO", "persistence"]));
    if (/aof_enabled:1/.test(info)) await this.#handle.command(this.#marks, ["BGREWRITEAOF"]);
  }
}
