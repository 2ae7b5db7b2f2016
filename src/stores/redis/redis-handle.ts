import { createHash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { storeClosed } from "../complete/store-closed.ts";
import { KeyNames } from "./key-names.ts";
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
  /** The store's keys. */
  readonly names: KeyNames;
  readonly #connection: RedisConnection;
  #closed = false;

  constructor(connection: RedisConnection, place: string, prefix: string) {
    this.#connection = connection;
    this.place = place;
    this.names = new KeyNames(prefix);
  }

  async command(firstKey: string, args: readonly string[], options: Repeating = REPEATABLE): Promise<RedisReply> {
    try {
      return await this.#send(firstKey, args).catch((error) => this.#sendAgain(firstKey, args, options, error));
    } catch (error) {
      throw this.failure(error);
    }
  }

  /** Runs a script whose answer is a list. */
  run(script: RedisScript, keys: readonly string[], args: readonly string[]): Promise<readonly RedisReply[]> {
    return this.evaluate(script, keys, args) as Promise<readonly RedisReply[]>;
  }

  /** Runs a script, whatever it answers. */
  evaluate(script: RedisScript, keys: readonly string[], args: readonly string[]): Promise<RedisReply> {
    const [firstKey = ""] = keys;
    const command = ["EVALSHA", script.sha, String(keys.length), ...keys, ...args];
    return this.#send(firstKey, command).catch((error) => this.#evaluateAgain(firstKey, command, script, error));
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

  async #evaluateAgain(
    firstKey: string,
    command: readonly string[],
    script: RedisScript,
    error: unknown,
  ): Promise<RedisReply> {
    try {
      return await this.#sendAgain(firstKey, command, script, error);
    } catch (later) {
      if (!isNoScript(later)) throw this.failure(later);
    }
    // The server has not seen it yet, or has forgotten it; nothing was run.
    return this.command(firstKey, ["EVAL", script.text, ...command.slice(2)], script);
  }

  #send(firstKey: string, args: readonly string[]): Promise<RedisReply> {
    return this.#closed ? Promise.reject(storeClosed()) : this.#connection.send(firstKey, args);
  }

  /** A short absence of the server, as when it is restarted, is waited for, and the command sent again. */
  async #sendAgain(
    firstKey: string,
    args: readonly string[],
    { repeatable }: Repeating,
    error: unknown,
  ): Promise<RedisReply> {
    const until = Date.now() + ABSENCE_MS_MAX;
    let problem = error;
    while (repeatable && isPassing(problem) && Date.now() < until) {
      await wait(ABSENCE_WAIT_MS);
      try {
        return await this.#send(firstKey, args);
      } catch (again) {
        problem = again;
      }
    }
    throw problem;
  }

  /** What a client threw, as an error of ours. */
  failure(error: unknown): unknown {
    return this.#closed ? storeClosed() : redisFailure(error, this.place);
  }
}
