import { createHash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { storeClosed } from "../complete/store-closed.ts";
import { KeyNames } from "./key-names.ts";
import type { RedisConnection, RedisReply, RedisSubscriber } from "./redis-client.ts";
import { isPassing, redisFailure } from "./redis-failure.ts";

const ABSENCE_MS_MAX = 2000;
const ABSENCE_WAIT_MS = 20;

/** A script that the server runs as one step. All keys that it touches are given to it, and are in one slot. */
export interface RedisScript {
  readonly text: string;
  readonly sha: string;
  /** Whether what may have been done may be done again, as when a connection breaks before the answer. */
  readonly repeatable: boolean;
}

/** A script, with the name that the server knows it by. */
export function defineScript(
  text: string,
  { repeatable }: { repeatable: boolean } = { repeatable: true },
): RedisScript {
  return { text, sha: createHash("sha1").update(text).digest("hex"), repeatable };
}

/** One connection, behind which all clients look the same and every failure is a `SessionError`. */
export class RedisHandle {
  /** The server, for messages. */
  readonly address: string;
  /** The store's keys. */
  readonly names: KeyNames;
  readonly #connection: RedisConnection;
  #closed = false;

  constructor(connection: RedisConnection, address: string, prefix: string) {
    this.#connection = connection;
    this.address = address;
    this.names = new KeyNames(prefix);
  }

  /** Sends a command that may be repeated to where its key lives, which comes first in it. */
  async command<Answer = RedisReply>(...args: readonly string[]): Promise<Answer> {
    return (await this.#send(args[1] ?? "", args)) as Answer;
  }

  /** Runs a script, whose answer is a list. */
  async run(script: RedisScript, keys: readonly string[], args: readonly string[]): Promise<readonly RedisReply[]> {
    const [firstKey = ""] = keys;
    const sent = ["EVALSHA", script.sha, String(keys.length), ...keys, ...args];
    return (await this.#send(firstKey, sent, script)) as readonly RedisReply[];
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
    await this.command("PING");
  }

  async close(): Promise<void> {
    this.#closed = true;
    try {
      await this.#connection.close();
    } catch {
      // The connection is gone, which is what was asked for.
    }
  }

  /** A short absence of the server, as when it is restarted, is waited for, and what may be repeated sent again. */
  async #send(firstKey: string, args: readonly string[], script?: RedisScript): Promise<RedisReply> {
    let [sent, until] = [args, 0];
    for (;;) {
      try {
        if (this.#closed) throw storeClosed();
        return await this.#connection.send(firstKey, sent);
      } catch (error) {
        if (script !== undefined && error instanceof Error && error.message.startsWith("NOSCRIPT")) {
          // The server has not seen it yet, or has forgotten it; nothing was run.
          sent = ["EVAL", script.text, ...args.slice(2)];
          continue;
        }
        const repeatable = script === undefined || script.repeatable;
        until ||= Date.now() + ABSENCE_MS_MAX;
        if (!repeatable || !isPassing(error) || Date.now() >= until) throw this.failure(error);
        await wait(ABSENCE_WAIT_MS);
      }
    }
  }

  /** What a client threw, as an error of ours. */
  failure(error: unknown): unknown {
    return this.#closed ? storeClosed() : redisFailure(error, this.address);
  }
}
