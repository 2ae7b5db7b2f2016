import { SessionError } from "../../session/errors.ts";
import { checkOfficialClient, openOfficialSubscriber, type RedisConnection, type RedisReply } from "./redis-client.ts";

const CONNECT_TIMEOUT_MS = 5000;
const RECONNECT_WAIT_MS_MIN = 20;
const RECONNECT_WAIT_MS_MAX = 1000;
const PING_MS = 10_000;
/** A server that answers nothing for so long, not even a ping, is taken for gone. */
const SILENCE_MS_MAX = 30_000;
/** The same while calls wait for an answer: their connection is given up, and they fail or are made again. */
const CALL_MS_MAX = 5000;

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
  const { sent, answered } = watchAnswers(() => {
    client.destroy();
    void client.connect().catch(() => {});
  });
  return {
    send: (_firstKey, args) => {
      sent();
      const reply = client.sendCommand<RedisReply>(args);
      reply.then(answered, answered);
      return reply;
    },
    openSubscriber: (onBack) => openOfficialSubscriber(open(), onBack),
    async close() {
      // Closing waits for answers, and a server that is away gives none.
      if (client.isReady) await client.close();
      else if (client.isOpen) client.destroy();
    },
  };
}

/** Counts calls and answers; `silent` is called where calls wait and none is answered for too long. One timer for all of them. */
function watchAnswers(silent: () => void): { readonly sent: () => void; readonly answered: () => void } {
  let [waiting, heardMs] = [0, 0];
  let timer: NodeJS.Timeout | null = null;
  const look = (): void => {
    if (waiting > 0 && performance.now() - heardMs > CALL_MS_MAX) silent();
    if (waiting > 0) return;
    clearInterval(timer ?? undefined);
    timer = null;
  };
  return {
    sent: () => {
      if (waiting++ === 0) heardMs = performance.now();
      timer ??= setInterval(look, CALL_MS_MAX / 5).unref();
    },
    answered: () => {
      waiting -= 1;
      heardMs = performance.now();
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
