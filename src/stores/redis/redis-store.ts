import { checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import { SessionError, show } from "../../session/errors.ts";
import { BLOB_OPTIONS, type BlobOptions } from "../../session/blob.ts";
import type { SessionStore } from "../../session/store.ts";
import { createStore } from "../complete/create-store.ts";
import { checkClock, checkCount, invalidOption } from "../complete/valid-arguments.ts";
import { MARK_ALL } from "./index-scripts.ts";
import { openRedis } from "./open-redis.ts";
import { connectionOf, isRedisClient, type RedisClient } from "./redis-client.ts";
import { RedisDriver } from "./redis-driver.ts";
import { redisFailure } from "./redis-failure.ts";
import { RedisHandle } from "./redis-handle.ts";

/** Options of `openRedisStore`. */
export interface RedisStoreOptions extends BlobOptions {
  /** The URL of the server, `redis://` or `rediss://`. Default: the server on this machine. */
  readonly url?: string;
  /** A connected client of `redis` or `ioredis` to use instead. You close it yourself. */
  readonly client?: RedisClient;
  /** The prefix of every key (default `skein`), so that several stores can share a server. */
  readonly prefix?: string;
  /**
   * A last resort against growth: Redis deletes a session, with all its keys and without any event, if there was no append for this time,
   * unless it has forks. Choose it much longer than the time after which sessions expire.
   */
  readonly ttlSeconds?: number;
  /** The clock to use. By default, the system clock, but for leases the clock of the server. */
  readonly clock?: () => Date;
}

const DEFAULT_URL = "redis://127.0.0.1:6379";
const LAYOUT_VERSION = 4;
const TTL_SECONDS_MAX = 10 * 366 * 86_400;

/**
 * Opens a store in Redis or Valkey, which any number of processes on any number of machines can share.
 *
 * @throws {SessionError} `DRIVER_MISSING` without a client, `INVALID_OPTION` for a wrong option, `UNSUPPORTED_VERSION` for
 * keys of a later version, `STORE_FAILED` if the server cannot be used.
 */
export async function openRedisStore(options: RedisStoreOptions = {}): Promise<SessionStore> {
  checkRedisOptions(options);
  const { client, url = DEFAULT_URL, prefix = "skein", ttlSeconds } = options;
  const address = client === undefined ? addressOf(url) : "of the given client";
  const refuse = (error: unknown): never => {
    throw redisFailure(error, address);
  };
  const connection = client === undefined ? await openRedis(url).catch(refuse) : connectionOf(client);
  const handle = new RedisHandle(connection, address, prefix);
  try {
    await checkServer(handle, ttlSeconds);
    await checkLayout(handle);
    return createStore(new RedisDriver(handle, options), options);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Refuses a server that evicts keys when its memory is full, which would lose sessions silently. */
async function checkServer(handle: RedisHandle, ttlSeconds: number | undefined): Promise<void> {
  let text: unknown;
  try {
    text = await handle.command("INFO", "memory");
  } catch (error) {
    // Some hosted services forbid INFO; nothing else depends on it.
    if (error instanceof SessionError && error.message.includes("does not allow")) return;
    throw error;
  }
  const [, policy = "noeviction"] = /^maxmemory_policy:(\S+)/m.exec(String(text)) ?? [];
  const [, maximum = "0"] = /^maxmemory:(\d+)/m.exec(String(text)) ?? [];
  const evicts = policy.startsWith("allkeys-") || (policy.startsWith("volatile-") && ttlSeconds !== undefined);
  if (maximum === "0" || !evicts) return;
  throw new SessionError(
    "STORE_FAILED",
    `The Redis server ${handle.address} evicts keys when its memory is full (maxmemory-policy ${policy}), which would lose sessions; set it to noeviction.`,
  );
}

async function checkLayout(handle: RedisHandle): Promise<void> {
  const { names } = handle;
  const key = names.index("layout");
  let version = await handle.command<string | null>("GET", key);
  if (version === null) {
    await handle.command("SET", key, String(LAYOUT_VERSION), "NX");
    version = await handle.command<string | null>("GET", key);
  }
  // Data of earlier layouts is still read, but the index of layout 1 has no open runs, so all its sessions are marked for an
  // update. The version is raised so that earlier versions of Skein refuse to write their layout or to read format 3 of a log.
  if (version === "1") await handle.run(MARK_ALL, [names.index("unsettled"), names.index("records")], []);
  if (version === "1" || version === "2" || version === "3") {
    await handle.command("SET", key, String(LAYOUT_VERSION));
    return;
  }
  if (Number(version) === LAYOUT_VERSION) return;
  throw new SessionError(
    "UNSUPPORTED_VERSION",
    `The keys of the Redis server ${handle.address} have layout version ${show(version)}; this version of skein knows ${LAYOUT_VERSION}, so update skein to open them.`,
  );
}

const OPTIONS: KeysOf<RedisStoreOptions> = {
  url: true,
  client: true,
  prefix: true,
  ttlSeconds: true,
  clock: true,
  ...BLOB_OPTIONS,
};

function checkRedisOptions(options: RedisStoreOptions): void {
  checkOptionsOf(options, OPTIONS, "openRedisStore");
  const { url, client, prefix, ttlSeconds, clock } = options;
  if (url !== undefined && client !== undefined)
    throw new SessionError("INVALID_OPTION", "A Redis store accepts either a url or a client, not both.");
  if (client !== undefined && !isRedisClient(client))
    throw invalidOption("client", client, "a client of redis or ioredis");
  if (prefix !== undefined && !(typeof prefix === "string" && /^[A-Za-z0-9._:-]{1,64}$/.test(prefix)))
    throw invalidOption("prefix", prefix, "1 to 64 letters, digits and characters of ._:-");
  if (ttlSeconds !== undefined) checkCount(ttlSeconds, "ttlSeconds", 1, TTL_SECONDS_MAX);
  checkClock(clock);
}

/** The address in a URL without user and password, which no message may show. */
function addressOf(url: string): string {
  try {
    const { protocol, host, pathname } = new URL(url);
    const known = protocol === "redis:" || protocol === "rediss:";
    if (known && host !== "" && /^\/?\d*$/.test(pathname))
      return `${protocol}//${host}${pathname === "/" ? "" : pathname}`;
  } catch {
    // Refused below. The original error would show the URL.
  }
  throw new SessionError(
    "INVALID_OPTION",
    "The url of a Redis store must look like redis://host:6379 or rediss://user:password@host:6379/0.",
  );
}
