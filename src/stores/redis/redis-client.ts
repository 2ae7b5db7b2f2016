import { SessionError } from "../../session/errors.ts";

/** The reply to a command. */
export type RedisReply = string | number | null | readonly RedisReply[];

/** A connected client of the package `redis`, from `createClient`. */
export interface OfficialRedisClient {
  sendCommand(args: readonly string[], options?: { readonly typeMapping?: object }): Promise<unknown>;
  duplicate(): unknown;
}

/** A connected client of the package `redis`, from `createCluster`. */
export interface OfficialRedisCluster {
  readonly slots: unknown;
  sendCommand(
    firstKey: string | undefined,
    isReadonly: boolean | undefined,
    args: string[],
    options?: { readonly typeMapping?: object },
  ): Promise<unknown>;
  duplicate(): unknown;
}

/** A client of the package `ioredis`, for one server or a cluster. */
export interface IoRedisClient {
  call(command: string, ...args: string[]): Promise<unknown>;
  duplicate(): unknown;
}

/** A client that you connect and close yourself. */
export type RedisClient = OfficialRedisClient | OfficialRedisCluster | IoRedisClient;

/** What the store needs from any of the supported clients. */
export interface RedisConnection {
  /** Sends a command to the node that has its first key. */
  send(firstKey: string, args: readonly string[]): Promise<RedisReply>;
  /** Opens a connection for messages only. It reconnects and subscribes again by itself, and then calls `onReconnect`. */
  openSubscriber(onReconnect: () => void): Promise<RedisSubscriber>;
  /** Waits for pending calls and closes the connection. */
  close(): Promise<void>;
}

/** A connection that receives messages. */
export interface RedisSubscriber {
  /** Resolves once every later message on the channel will reach the listener. */
  subscribe(channel: string, listener: () => void): Promise<void>;
  unsubscribe(channel: string): Promise<void>;
  close(): void;
}

/** Whether a value is a client that the store can use. */
export function isRedisClient(value: unknown): value is RedisClient {
  if (typeof value !== "object" || value === null) return false;
  const { sendCommand, call, duplicate } = value as Partial<Record<string, unknown>>;
  return typeof duplicate === "function" && (typeof sendCommand === "function" || typeof call === "function");
}

/** Wraps the caller's client as a connection. Closing the connection leaves the client open. */
export function connectionOf(client: RedisClient): RedisConnection {
  // Clients of both packages have `sendCommand`, but only those of ioredis have `call`.
  if ("call" in client) return connectionOfIoRedis(client);
  checkOfficialClient(client);
  const send =
    "slots" in client
      ? (firstKey: string, args: readonly string[]) =>
          client.sendCommand(firstKey, false, [...args], AS_TEXT) as Promise<RedisReply>
      : (_firstKey: string, args: readonly string[]) => client.sendCommand(args, AS_TEXT) as Promise<RedisReply>;
  return {
    send,
    openSubscriber: (onReconnect) => openOfficialSubscriber(client.duplicate() as OfficialDuplicate, onReconnect),
    close: async () => {},
  };
}

/** Refuses a client of an old version of the package `redis`, which has no `destroy`. */
export function checkOfficialClient(client: object): void {
  if ("destroy" in client) return;
  throw new SessionError(
    "DRIVER_VERSION",
    "The installed version of redis is too old for the Redis store: install version 5 or later.",
  );
}

/** Requests replies as strings, even if the caller configured the client to return buffers. */
const AS_TEXT = Object.freeze({ typeMapping: Object.freeze({}) });

interface OfficialDuplicate {
  on(event: string, listener: () => void): unknown;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: () => void): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  destroy(): void;
}

interface IoRedisDuplicate {
  on(event: string, listener: (channel: string) => void): unknown;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  disconnect(): void;
}

/** Connects a client of the package `redis` as a subscriber. */
export async function openOfficialSubscriber(
  client: OfficialDuplicate,
  onReconnect: () => void,
): Promise<RedisSubscriber> {
  // Connection errors reject the commands. An error event without a listener would end the process.
  client.on("error", () => {});
  try {
    await client.connect();
  } catch (error) {
    destroy(client);
    throw error;
  }
  // The client has subscribed again before it emits `ready`.
  client.on("ready", onReconnect);
  return {
    subscribe: async (channel, listener) => void (await client.subscribe(channel, listener)),
    unsubscribe: async (channel) => void (await client.unsubscribe(channel)),
    close: () => destroy(client),
  };
}

function destroy(client: OfficialDuplicate): void {
  try {
    client.destroy();
  } catch {
    // The client was closed already.
  }
}

const ARGUMENTS_MAX = 10_000;

function connectionOfIoRedis(client: IoRedisClient): RedisConnection {
  return {
    send: (_firstKey, [command = "", ...args]) => {
      // A function call has a limit on its arguments; ioredis accepts the others as a list.
      const rest = args.splice(ARGUMENTS_MAX) as string[] & string;
      return client.call(command, ...args, ...(rest.length === 0 ? [] : [rest])) as Promise<RedisReply>;
    },
    openSubscriber: async (onReconnect) => ioRedisSubscriber(client.duplicate() as IoRedisDuplicate, onReconnect),
    close: async () => {},
  };
}

function ioRedisSubscriber(client: IoRedisDuplicate, onReconnect: () => void): RedisSubscriber {
  const listeners = new Map<string, () => void>();
  client.on("error", () => {});
  client.on("message", (channel) => listeners.get(channel)?.());
  // ioredis emits `ready` before it has subscribed again. Subscribing once more resolves when that is done.
  client.on("ready", () => {
    if (listeners.size > 0) client.subscribe(...listeners.keys()).then(onReconnect, () => {});
  });
  return {
    async subscribe(channel, listener) {
      listeners.set(channel, listener);
      await client.subscribe(channel);
    },
    async unsubscribe(channel) {
      listeners.delete(channel);
      await client.unsubscribe(channel);
    },
    close: () => client.disconnect(),
  };
}
