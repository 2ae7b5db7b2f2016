import { createHash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { storeClosed } from "../store-closed.ts";
import type { RedisConnection, RedisReply, RedisSubscriber } from "./redis-client.ts";
import { isNoScript, isPassing, redisFailure } from "./redis-failure.ts";

const ABSENCE_MS_MAX = 2000;
const ABSENCE_WAIT_MS = 20;

/** A script that the server runs as one step. All keys that it touches are given to it, and are in one slot. */
export interface RedisScript extends Repeating {
  readonly text: string;
  readonly sha: string;
}

/** Whether what may have been done may be done again, as when a connection breaks before the answer. */
export interface Repeating {
  readonly repeatable: boolean;
}

const REPEATABLE: Repeating = { repeatable: true };

/** A script, with the name that the server knows it by. */
export function defineScript(text: string, options: Repeating = REPEATABLE): RedisScript {
  return { text, sha: createHash("sha1").update(text).digest("hex"), ...options };
}

/** One connection, behind which all clients look the same and every failure is a `SessionError`. */
export class RedisHandle {
  /** The server, for messages. */
  readonly place: string;
  readonly #connection: RedisConnection;
  #closed = false;

  constructor(connection: RedisConnection, place: string) {
    this.#connection = connection;
    this.place = place;
  }

  async command(firstKey: string, args: readonly string[], options: Repeating = REPEATABLE): Promise<RedisReply> {
    try {
      return await this.#send(firstKey, args, options);
    } catch (error) {
      throw this.failure(error);
    }
  }

  /** Runs a script whose answer is a list. */
  run(script: RedisScript, keys: readonly string[], args: readonly string[]): Promise<readonly RedisReply[]> {
    return this.evaluate(script, keys, args) as Promise<readonly RedisReply[]>;
  }

  /** Runs a script, whatever it answers. */
  async evaluate(script: RedisScript, keys: readonly string[], args: readonly string[]): Promise<RedisReply> {
    const [firstKey = ""] = keys;
    const rest = [String(keys.length), ...keys, ...args];
    try {
      return await this.#send(firstKey, ["EVALSHA", script.sha, ...rest], script);
    } catch (error) {
      if (!isNoScript(error)) throw this.failure(error);
    }
    // The server has not seen it yet, or has forgotten it; nothing was run.
    return this.command(firstKey, ["EVAL", script.text, ...rest], script);
  }

  async openSubscriber(onBack: () => void): Promise<RedisSubscriber> {
    try {
      return await this.#connection.openSubscriber(onBack);
    } catch (error) {
      throw this.failure(error);
    }
  }

  /** Resolves when the server answers. */
  async ping(): Promise<void> {
    await this.command("", ["PING"]);
  }

  async close(): Promise<void> {
    this.#closed = true;
    try {
      await this.#connection.close();
    } catch {
      // The connection is gone, which is what was asked for.
    }
  }

  /** A short absence of the server, as when it is restarted, is waited for, and the command sent again. */
  async #send(firstKey: string, args: readonly string[], { repeatable }: Repeating): Promise<RedisReply> {
    const until = Date.now() + ABSENCE_MS_MAX;
    for (;;) {
      if (this.#closed) throw storeClosed();
      try {
        return await this.#connection.send(firstKey, args);
      } catch (error) {
        if (!repeatable || !isPassing(error) || Date.now() >= until) throw error;
      }
      await wait(ABSENCE_WAIT_MS);
    }
  }

  /** What a client threw, as an error of ours. */
  failure(error: unknown): unknown {
    return this.#closed ? storeClosed() : redisFailure(error, this.place);
  }
}
