import { createHash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { storeClosed } from "../complete/store-closed.ts";
import { KeyNames } from "./key-names.ts";
import type { RedisConnection, RedisReply, RedisSubscriber } from "./redis-client.ts";
import { isTemporary, redisFailure } from "./redis-failure.ts";

const RETRY_MS_MAX = 2000;
const RETRY_DELAY_MS = 20;

/** A Lua script, which the server runs atomically. All keys that it uses are passed to it and are in one cluster slot. */
export interface RedisScript {
  readonly text: string;
  readonly sha: string;
  /** Whether the script is idempotent, so that it can be sent again if the connection breaks before the reply. */
  readonly repeatable: boolean;
}

/** Defines a script, with the hash by which the server caches it. */
export function defineScript(
  text: string,
  { repeatable }: { repeatable: boolean } = { repeatable: true },
): RedisScript {
  return { text, sha: createHash("sha1").update(text).digest("hex"), repeatable };
}

/** One connection, with the same behaviour for every client: it retries safe calls and converts failures to a `SessionError`. */
export class RedisHandle {
  /** The address of the server, for error messages. */
  readonly address: string;
  /** The names of the keys of the store. */
  readonly names: KeyNames;
  readonly #connection: RedisConnection;
  #closed = false;

  constructor(connection: RedisConnection, address: string, prefix: string) {
    this.#connection = connection;
    this.address = address;
    this.names = new KeyNames(prefix);
  }

  /** Sends an idempotent command to the node that has its key, which must be the first argument. */
  async command<Answer = RedisReply>(...args: readonly string[]): Promise<Answer> {
    return (await this.#send(args[1] ?? "", args)) as Answer;
  }

  /** Runs a script that returns a list. */
  async run(script: RedisScript, keys: readonly string[], args: readonly string[]): Promise<readonly RedisReply[]> {
    const [firstKey = ""] = keys;
    const sent = ["EVALSHA", script.sha, String(keys.length), ...keys, ...args];
    return (await this.#send(firstKey, sent, script)) as readonly RedisReply[];
  }

  async openSubscriber(onReconnect: () => void): Promise<RedisSubscriber> {
    try {
      return await this.#connection.openSubscriber(onReconnect);
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
      // The connection is closed already.
    }
  }

  /** Sends a call. If the server cannot be reached for a short time, such as during a restart, retries a call that is safe to repeat. */
  async #send(firstKey: string, args: readonly string[], script?: RedisScript): Promise<RedisReply> {
    let [sent, until] = [args, 0];
    for (;;) {
      try {
        if (this.#closed) throw storeClosed();
        return await this.#connection.send(firstKey, sent);
      } catch (error) {
        if (script !== undefined && error instanceof Error && error.message.startsWith("NOSCRIPT")) {
          // The server does not have the script in its cache; nothing was run.
          sent = ["EVAL", script.text, ...args.slice(2)];
          continue;
        }
        const repeatable = script === undefined || script.repeatable;
        until ||= Date.now() + RETRY_MS_MAX;
        if (!repeatable || !isTemporary(error) || Date.now() >= until) throw this.failure(error);
        await wait(RETRY_DELAY_MS);
      }
    }
  }

  /** Converts an error of a client to a `SessionError`. */
  failure(error: unknown): unknown {
    return this.#closed ? storeClosed() : redisFailure(error, this.address);
  }
}
