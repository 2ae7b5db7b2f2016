import { SessionError } from "../../session/errors.ts";
import { checkOfficialClient, openOfficialSubscriber, type RedisConnection, type RedisReply } from "./redis-client.ts";

const CONNECT_TIMEOUT_MS = 5000;
const RECONNECT_WAIT_MS_MIN = 20;
const RECONNECT_WAIT_MS_MAX = 1000;
const PING_MS = 10_000;
/** A server that answers nothing for so long, not even a ping, is taken for gone. */
const SILENCE_MS_MAX = 30_000;

/**
 * Connects to a server with the `redis` package.
 *
 * @throws {SessionError} `DRIVER_MISSING` when it is not installed, `DRIVER_VERSION` when it is too old.
 */
export async function openRedis(url: string): Promise<RedisConnection> {
  const { createClient } = await loadRedis();
  const open = () => {
    let connected = false;
    const client = createClient({
      url,
      // A call that waits for a server to come back could wait for ever; one that fails at once can be made again.
      disableOfflineQueue: true,
      pingInterval: PING_MS,
      // A time for each command to be sent in costs more than sending it, and nothing waits here to be sent.
      commandOptions: { timeout: 0 },
      socket: {
        connectTimeout: CONNECT_TIMEOUT_MS,
        socketTimeout: SILENCE_MS_MAX,
        // A first connection that fails is told to whoever opens the store; a later one is tried again for ever.
        reconnectStrategy: (retries) =>
          connected && Math.min(RECONNECT_WAIT_MS_MAX, RECONNECT_WAIT_MS_MIN * 2 ** Math.min(retries, 10)),
      },
    });
    client.on("error", () => {});
    client.on("ready", () => {
      connected = true;
    });
    return client;
  };
  const client = open();
  await client.connect();
  return {
    send: (_firstKey, args) => client.sendCommand<RedisReply>(args),
    openSubscriber: (onBack) => openOfficialSubscriber(open(), onBack),
    async close() {
      // Closing waits for answers, and a server that is away gives none.
      if (client.isReady) await client.close();
      else if (client.isOpen) client.destroy();
    },
  };
}

/** The `redis` package. @throws {SessionError} `DRIVER_MISSING` when it is not installed, `DRIVER_VERSION` when it is too old. */
export async function loadRedis(): Promise<typeof import("redis")> {
  try {
    const redis = await import("redis");
    checkOfficialClient(redis.createClient());
    return redis;
  } catch (cause) {
    if (cause instanceof SessionError) throw cause;
    throw new SessionError(
      "DRIVER_MISSING",
      "The Redis store needs a client: install the package redis, version 5 or later, or pass a client of your own.",
      { cause },
    );
  }
}
