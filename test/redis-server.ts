import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { type RedisServer, redisMissing, startRedis } from "../scripts/redis.mjs";
import { onFileEnd } from "./on-file-end.ts";

const given = process.env.SKEIN_TEST_REDIS_URL;
let server: Promise<RedisServer> | null = null;
let client: Redis | null = null;

/** The reason to skip tests that need Redis, or null if there is a server. */
export const redisSkip: string | null = given ? null : redisMissing();

/** The prefix of every key that the tests of this file write. */
export const redisPrefix: string = `skein-test-${randomUUID().slice(0, 8)}`;

/** The URL of the server of `SKEIN_TEST_REDIS_URL`, or of a server that the tests of a file share. */
export async function redisUrl(): Promise<string> {
  onFileEnd(close);
  if (given) return given;
  server ??= startRedis();
  return (await server).url;
}

/** A client of the package `ioredis` on the same server, to pass to a store. */
export async function ioRedisClient(): Promise<Redis> {
  client ??= quiet(new Redis(await redisUrl()));
  return client;
}

/** Adds an error listener: without one, ioredis prints errors of idle connections to the console. */
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

/** Deletes the keys of the tests from a server that was not started for them. */
async function removeKeys(redis: Redis): Promise<void> {
  let cursor = "0";
  do {
    const [next, keys] = await redis.scan(cursor, "MATCH", `${redisPrefix}:*`, "COUNT", 1000);
    if (keys.length > 0) await redis.unlink(...keys);
    cursor = next;
  } while (cursor !== "0");
  redis.disconnect();
}
