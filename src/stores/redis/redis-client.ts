import { SessionError } from "../../session/errors.ts";

/** What a command is answered with. */
export type RedisReply = string | number | null | readonly RedisReply[];

/** A client of the package `redis`, made by `createClient` and connected. */
export interface OfficialRedisClient {
  sendCommand(args: readonly string[], options?: { readonly typeMapping?: object }): Promise<unknown>;
  duplicate(): unknown;
}

/** A client of the package `redis`, made by `createCluster` and connected. */
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

/** A client of the caller's own. */
export type RedisClient = OfficialRedisClient | OfficialRedisCluster | IoRedisClient;

/** What the store needs of a client, whichever it is. */
export interface RedisConnection {
  /** Sends a command to where its first key lives. */
  send(firstKey: string, args: readonly string[]): Promise<RedisReply>;
  /** A connection for messages only, which comes back and subscribes again by itself. */
  openSubscriber(onBack: () => void): Promise<RedisSubscriber>;
  /** Waits for what was sent and ends the connection. */
  close(): Promise<void>;
}

/** A connection that takes messages. */
export interface RedisSubscriber {
  /** Resolves once every later message on the channel will be heard. */
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

/** A caller's client as a connection. Closing it leaves the client open. */
export function connectionOf(client: RedisClient): RedisConnection {
  // Both kinds of client have a `sendCommand`, but only ioredis has a `call`.
  if ("call" in client) return connectionOfIoRedis(client);
  checkOfficialClient(client);
  const send =
    "slots" in client
      ? (firstKey: string, args: readonly string[]) =>
          client.sendCommand(firstKey, false, [...args], AS_TEXT) as Promise<RedisReply>
      : (_firstKey: string, args: readonly string[]) => client.sendCommand(args, AS_TEXT) as Promise<RedisReply>;
  return {
    send,
    openSubscriber: (onBack) => openOfficialSubscriber(client.duplicate() as OfficialDuplicate, onBack),
    close: async () => {},
  };
}

/** Refuses a client of the package `redis` that cannot end its connections as later ones do. */
export function checkOfficialClient(client: object): void {
  if ("destroy" in client) return;
  throw new SessionError(
    "DRIVER_VERSION",
    "The installed version of redis is too old for the Redis store: install version 5 or later.",
  );
}

/** The caller may have asked its client for buffers, which says nothing about what the store wants. */
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

/** A subscriber on a client of the package `redis` that is not connected yet. */
export async function openOfficialSubscriber(client: OfficialDuplicate, onBack: () => void): Promise<RedisSubscriber> {
  // What becomes of the connection shows in the commands; an event without a listener would end the process.
  client.on("error", () => {});
  try {
    await client.connect();
  } catch (error) {
    destroy(client);
    throw error;
  }
  // It subscribes again before it says that it is ready.
  client.on("ready", onBack);
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
    // It was closed already.
  }
}

const ARGUMENTS_MAX = 10_000;

function connectionOfIoRedis(client: IoRedisClient): RedisConnection {
  return {
    send: (_firstKey, [command = "", ...args]) => {
      // A call takes only so many arguments; the client takes the rest as a list.
      const rest = args.splice(ARGUMENTS_MAX) as string[] & string;
      return client.call(command, ...args, ...(rest.length === 0 ? [] : [rest])) as Promise<RedisReply>;
    },
    openSubscriber: async (onBack) => ioRedisSubscriber(client.duplicate() as IoRedisDuplicate, onBack),
    close: async () => {},
  };
}

function ioRedisSubscriber(client: IoRedisDuplicate, onBack: () => void): RedisSubscriber {
  const listeners = new Map<string, () => void>();
  client.on("error", () => {});
  client.on("message", (channel) => listeners.get(channel)?.());
  // It subscribes again after it says that it is ready, so that asking once more tells when that is done.
  client.on("ready", () => {
    if (listeners.size > 0) client.subscribe(...listeners.keys()).then(onBack, () => {});
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
