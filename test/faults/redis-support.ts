import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { onTestFinished, test } from "vitest";
import { type RedisServer, redisMissing, startRedis } from "../../scripts/redis.mjs";
import type { Entry } from "../../src/session/entry.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openRedisStore, type RedisStoreOptions } from "../../src/stores/redis/index.ts";
import { quiet, redisPrefix, redisSkip, redisUrl } from "../redis-server.ts";
import { skipBecause } from "../skip.ts";

/** What makes a server keep every answered write, also when it is killed. */
export const DURABLE: readonly string[] = ["--appendonly", "yes", "--appendfsync", "always"];

/** One message. */
export const message = { type: "message", message: { role: "user", content: "hello" } } as const;

/** A test that is skipped, with the reason, where there is no Redis. */
export function redisTest(name: string, run: () => Promise<void>, timeoutMs?: number): void {
  testUnless(redisSkip, name, run, timeoutMs);
}

/** A test that is skipped, with the reason, where no Redis can be started. */
export function ownServerTest(name: string, run: () => Promise<void>, timeoutMs?: number): void {
  testUnless(redisMissing(), name, run, timeoutMs);
}

function testUnless(reason: string | null, name: string, run: () => Promise<void>, timeoutMs?: number): void {
  test(
    name,
    async (context) => {
      if (reason !== null) skipBecause(context, reason);
      await run();
    },
    timeoutMs,
  );
}

/** A beginning of keys that no other test uses. */
export function newPrefix(): string {
  return `${redisPrefix}:${randomUUID().slice(0, 8)}`;
}

/** A server of the test's own, that may be stopped and started. */
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

/** A client of the test's own, to look at the server from outside. */
export async function openClient(url?: string): Promise<Redis> {
  const client = quiet(new Redis(url ?? (await redisUrl())));
  onTestFinished(() => client.disconnect());
  return client;
}

/** Every key of a store. */
export async function keysOf(client: Redis, prefix: string): Promise<string[]> {
  return (await client.keys(`${prefix}:*`)).sort();
}

export async function entriesOf(store: SessionStore, id: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const entry of store.read(id)) entries.push(entry);
  return entries;
}

/** Resolves to what an operation was refused with. */
export async function refusalOf(work: Promise<unknown>): Promise<{ code: string; message: string }> {
  const refusal = await work.then(
    () => ({ code: "done", message: "" }),
    (error: unknown) => error,
  );
  return refusal as { code: string; message: string };
}

/** Resolves once a condition holds. */
export async function until(holds: () => Promise<boolean>, what: string): Promise<void> {
  const end = Date.now() + 20_000;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`${what} did not come about`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** A program that runs in a process of its own. */
export interface Running {
  readonly child: ChildProcess;
  /** The lines it has printed so far; one that was cut short is left out. */
  lines(): string[];
  readonly ended: Promise<void>;
}

/** Starts a program on the compiled package; it is ended with the test. */
export function start(name: string, args: readonly string[]): Running {
  const built = fileURLToPath(new URL("../../dist/stores/redis/index.js", import.meta.url));
  if (!existsSync(built)) throw new Error(`${built} is missing; run "npm run build" first, as "npm test" does.`);
  const program = fileURLToPath(new URL(`./programs/${name}`, import.meta.url));
  const child = spawn(process.execPath, ["--no-warnings", program, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let text = "";
  child.stdout.on("data", (data: Buffer) => {
    text += data.toString();
  });
  return { child, lines: () => text.split("\n").slice(0, -1), ended: once(child, "close").then(() => {}) };
}

/** Runs a program to its end and returns what it printed. */
export async function runProgram(name: string, args: readonly string[]): Promise<string[]> {
  const { lines, ended } = start(name, args);
  await ended;
  return lines();
}
