import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { onTestFinished, test } from "vitest";
import { type RedisServer, redisMissing, startRedis } from "../../scripts/redis.mjs";
import type { SessionStore } from "../../src/session/store.ts";
import { openRedisStore, type RedisStoreOptions } from "../../src/stores/redis/index.ts";
import { quiet, redisPrefix, redisSkip, redisUrl } from "../redis-server.ts";
import { skipBecause } from "../skip.ts";

/** The configuration with which a server keeps every acknowledged write, also when it is killed. */
export const DURABLE: readonly string[] = ["--appendonly", "yes", "--appendfsync", "always"];

/** A test that is skipped, with the reason, if there is no Redis. */
export function redisTest(name: string, run: () => Promise<void>): void {
  testUnless(redisSkip, name, run);
}

/** A test that is skipped, with the reason, where no Redis can be started. */
export function ownServerTest(name: string, run: () => Promise<void>): void {
  testUnless(redisMissing(), name, run);
}

function testUnless(reason: string | null, name: string, run: () => Promise<void>): void {
  test(name, async (context) => {
    if (reason !== null) skipBecause(context, reason);
    await run();
  });
}

/** A key prefix that no other test uses. */
export function newPrefix(): string {
  return `${redisPrefix}:${randomUUID().slice(0, 8)}`;
}

/** Starts a separate server for a test, which can be stopped and restarted. */
export async function startServer(flags: readonly string[] = []): Promise<RedisServer> {
  const server = await startRedis(flags);
  onTestFinished(() => server.stop());
  return server;
}

/** A store that is closed after the test. */
export async function openStore(options: RedisStoreOptions): Promise<SessionStore> {
  const store = await openRedisStore(options);
  onTestFinished(() => store.close());
  return store;
}

/** A separate client for a test, to inspect the server. */
export async function openClient(url?: string): Promise<Redis> {
  const client = quiet(new Redis(url ?? (await redisUrl())));
  onTestFinished(() => client.disconnect());
  return client;
}

/** Every key of a store. */
export async function keysOf(client: Redis, prefix: string): Promise<string[]> {
  return (await client.keys(`${prefix}:*`)).sort();
}
