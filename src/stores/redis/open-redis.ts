import { SessionError } from "../../session/errors.ts";
import { checkOfficialClient, openOfficialSubscriber, type RedisConnection, type RedisReply } from "./redis-client.ts";

const CONNECT_TIMEOUT_MS = 5000;
const RECONNECT_WAIT_MS_MIN = 20;
const RECONNECT_WAIT_MS_MAX = 1000;
const PING_MS = 10_000;
/** A connection without any answer for so long, not even to a ping, counts as lost. */
const SILENCE_MS_MAX = 30_000;
/** How long a connection may be silent while calls are pending. Then it is closed, and the calls fail or are retried. */
const CALL_MS_MAX = 5000;

/**
 * Connects to a server with the `redis` package.
 *
 * @throws {SessionError} `DRIVER_MISSING` if it is not installed, `DRIVER_VERSION` if it is too old.
 */
export async function openRedis(url: string): Promise<RedisConnection> {
  const { createClient } = await loadRedis();
  const open = () => {
    let connected = false;
    const client = createClient({
      url,
      // A queued call could wait without a limit for the server; a call that fails immediately can be retried.
      disableOfflineQueue: true,
      pingInterval: PING_MS,
      // A timer per command costs more than sending it, and without the offline queue no command waits to be sent.
      commandOptions: { timeout: 0 },
      socket: {
        connectTimeout: CONNECT_TIMEOUT_MS,
        socketTimeout: SILENCE_MS_MAX,
        // If the first connection fails, opening the store fails; later, the client reconnects without a limit.
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
  const { sent, answered } = watchForSilence(() => {
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
    openSubscriber: (onReconnect) => openOfficialSubscriber(open(), onReconnect),
    async close() {
      // `close` waits for pending answers, which never come if the server cannot be reached.
      if (client.isReady) await client.close();
      else if (client.isOpen) client.destroy();
    },
  };
}

/** Calls `onSilence` if calls are pending and none was answered for `CALL_MS_MAX`. Uses one timer for all calls. */
function watchForSilence(onSilence: () => void): { readonly sent: () => void; readonly answered: () => void } {
  let [pending, lastAnswerMs] = [0, 0];
  let timer: NodeJS.Timeout | null = null;
  const check = (): void => {
    if (pending > 0 && performance.now() - lastAnswerMs > CALL_MS_MAX) onSilence();
    if (pending > 0) return;
    clearInterval(timer ?? undefined);
    timer = null;
  };
  return {
    sent: () => {
      if (pending++ === 0) lastAnswerMs = performance.now();
      timer ??= setInterval(check, CALL_MS_MAX / 5).unref();
    },
    answered: () => {
      pending -= 1;
      lastAnswerMs = performance.now();
    },
  };
}

/** The package, once its version was found to be right. */
const checked = new WeakSet<object>();

/** Loads the `redis` package. @throws {SessionError} `DRIVER_MISSING` if it is not installed, `DRIVER_VERSION` if it is too old. */
export async function loadRedis(): Promise<typeof import("redis")> {
  try {
    const redis = await import("redis");
    // A client with other options than the last one takes 40 ms to make, and so does the next one after it.
    if (!checked.has(redis)) checkOfficialClient(redis.createClient());
    checked.add(redis);
    return redis;
  } catch (cause) {
    if (cause instanceof SessionError) throw cause;
    throw new SessionError(
      "DRIVER_MISSING",
      "The Redis store needs a client: install the package redis, version 5 or later, or pass your own client.",
      { cause },
    );
  }
}
