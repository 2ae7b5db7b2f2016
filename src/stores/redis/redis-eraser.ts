import { setTimeout as wait } from "node:timers/promises";
import { uuidv7 } from "../../internal/uuid.ts";
import { NOTHING_FOUND } from "../../session/log/append-plan.ts";
import type { Entry } from "../../session/log/entry.ts";
import { SessionError, SessionNotFoundError } from "../../session/errors.ts";
import type { StoreEraser } from "../../session/store.ts";
import { planRewrite } from "../complete/plan-rewrite.ts";
import { encodePlan } from "../rows/row-encoding.ts";
import type { Checkpoints } from "./checkpoints.ts";
import { defineScript, type RedisHandle } from "./redis-handle.ts";
import type { RedisPort } from "./redis-port.ts";
import { REPLACE } from "./session-scripts.ts";
import { argsOf, nextStamp, positionOf, writeHead } from "./stored-session.ts";

const POLL_MS = 50;
const REWRITE_MS_MAX = 3_600_000;

/** Writes marks, and deletes those with the value ''. KEYS: the hash. ARGV: key and value of each mark. */
const WRITE_MARKS = defineScript(`
for i = 1, #ARGV, 2 do
  if ARGV[i + 1] == '' then redis.call('HDEL', KEYS[1], ARGV[i]) else redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
return {'ok'}`);

/** Erases in Redis: replaces the log of a session by one with a new uid, and stores the marks of erasures in a hash. */
export class RedisEraser implements StoreEraser {
  readonly #handle: RedisHandle;
  readonly #port: RedisPort;
  readonly #marks: string;
  readonly replaceCheckpoint: StoreEraser["replaceCheckpoint"];

  constructor(port: RedisPort, checkpoints: Checkpoints) {
    this.replaceCheckpoint = (checkpoint) => checkpoints.replace(checkpoint);
    this.#handle = port.handle;
    this.#port = port;
    this.#marks = port.handle.names.index("marks");
  }

  async replace(sessionId: string, version: number, entries: readonly Entry[]): Promise<boolean> {
    const { cache, index, references } = this.#port;
    await references.finish();
    const session = await this.#port.load(sessionId);
    if (session === null) throw new SessionNotFoundError(sessionId);
    if (session.head.version !== version) return false;
    const { empty, plan } = planRewrite(session.head, entries);
    const { rows, located } = encodePlan({ head: empty, leafSeq: null, factsSeq: null }, plan, NOTHING_FOUND.entries);
    if (!session.marked) await index.mark(sessionId, session.stamp.gen);
    const { names } = this.#handle;
    const stamp = nextStamp({ ...session.stamp, uid: uuidv7() });
    const log = [names.entries(sessionId, stamp.uid), names.positions(sessionId, stamp.uid)];
    const keys = [...names.all(sessionId, session.stamp.uid), ...log, names.checkpoints(sessionId, stamp.uid)];
    const args = [session.stamp.text, stamp.uid, stamp.text, writeHead(located.head, stamp.gen), positionOf(0)];
    const [kind] = await references.removing(session, () =>
      this.#handle.run(REPLACE, keys, [...args, ...argsOf(rows)]),
    );
    cache.forget(sessionId);
    return kind === "ok";
  }

  async readMarks(wanted?: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const keys = wanted ?? (await this.#handle.command<string[]>("HKEYS", this.#marks));
    if (keys.length === 0) return new Map();
    const values = await this.#handle.command<(string | null)[]>("HMGET", this.#marks, ...keys);
    return new Map(keys.flatMap((key, index) => (values[index] == null ? [] : [[key, values[index] as string]])));
  }

  async writeMarks(marks: ReadonlyMap<string, string | null>): Promise<void> {
    await this.#handle.run(
      WRITE_MARKS,
      [this.#marks],
      [...marks].flatMap(([key, value]) => [key, value ?? ""]),
    );
  }

  /**
   * Makes the server rewrite its append-only file and its snapshot, if it has them, and waits until both are done.
   *
   * @throws {SessionError} `STORE_FAILED` if the server does not allow or cannot do that.
   */
  async rewrite(): Promise<void> {
    const info = await this.#persistence();
    if (info.get("cluster_enabled") === "1")
      throw this.#failed("is a cluster; send BGREWRITEAOF or BGSAVE to each of its nodes");
    if (info.get("aof_enabled") === "1") await this.#runRewrite("BGREWRITEAOF", "aof_last_bgrewrite_status");
    const [save] = Object.values(await this.#handle.command<object>("CONFIG", "GET", "save")).slice(-1);
    if (save !== "" || Number(info.get("rdb_saves")) > 0) await this.#runRewrite("BGSAVE", "rdb_last_bgsave_status");
  }

  /**
   * Runs a rewrite. First waits for one that is running, which may still contain the erased texts. A rewrite that another client starts
   * later covers our changes, too.
   */
  async #runRewrite(command: string, status: string): Promise<void> {
    await this.#untilIdle();
    try {
      await this.#handle.command(command);
    } catch (error) {
      if (!(error instanceof SessionError && error.message.includes("already in progress"))) throw error;
    }
    if ((await this.#untilIdle()).get(status) !== "ok") throw this.#failed(`could not finish ${command}; see its log`);
  }

  async #untilIdle(): Promise<ReadonlyMap<string, string>> {
    for (let waitedMs = 0; waitedMs < REWRITE_MS_MAX; waitedMs += POLL_MS) {
      const info = await this.#persistence();
      const busy = ["aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress"];
      if (busy.every((name) => info.get(name) !== "1")) return info;
      await wait(POLL_MS);
    }
    throw this.#failed("takes longer than an hour to write its files");
  }

  async #persistence(): Promise<ReadonlyMap<string, string>> {
    const text = await this.#handle.command<string>("INFO", "persistence", "cluster");
    return new Map(text.split("\r\n").map((line) => line.split(":", 2) as [string, string]));
  }

  #failed(problem: string): SessionError {
    return new SessionError("STORE_FAILED", `The Redis server ${this.#handle.address} ${problem}.`);
  }
}
