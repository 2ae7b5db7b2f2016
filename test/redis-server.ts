import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { type RedisServer, redisMissing, startRedis } from "../scripts/redis.mjs";
import { onFileEnd } from "./file-end.ts";

const given = process.env.SKEIN_TEST_REDIS_URL;
let server: Promise<RedisServer> | null = null;
let client: Redis | null = null;

/** Why the tests of this file have no Redis, or null when they have one. */
export const redisSkip: string | null = given ? null : redisMissing();

/** What every key of this file's tests begins with. */
export const redisPrefix: string = `skein-test-${randomUUID().slice(0, 8)}`;

/** The URL of the server that `SKEIN_TEST_REDIS_URL` names, or else of one that the tests of this file share. */
export async function redisUrl(): Promise<string> {
  onFileEnd(close);
  if (given) return given;
  server ??= startRedis();
  return (await server).url;
}

/** A client of the package `ioredis` on the same server, as a caller's own. */
export async function ioRedisClient(): Promise<Redis> {
  client ??= quiet(new Redis(await redisUrl()));
  return client;
}

/** A connection that breaks while nobody uses it would write to the console. */
export function quiet(redis: Redis): Redis {
  redis.on("error", () => {});
  return redis;
}

async function close(): Promise<void> {
  const [used, started] = [client, server];
  client = null;
  server = null;
  if (given) await removeKeys(quiet(new Redis(given)));
  used?.disconnect();
  await (await started)?.stop();
}

/** On a server of someone else's, what the tests wrote is removed. */
async function removeKeys(redis: Redis): Promise<void> {
  let cursor = "0";
  do {
    const [next, keys] = await redis.scan(cursor, "MATCH", `${redisPrefix}:*`, "COUNT", 1000);
    if (keys.length > 0) await redis.unlink(...keys);
    cursor = next;
  } while (cursor !== "0");
  redis.disconnect();
}
