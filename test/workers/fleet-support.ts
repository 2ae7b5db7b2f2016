import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import type { Entry } from "../../src/session/log/entry.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openStore } from "../../src/stores/open-store.ts";
import { bullmqQueue, type RunQueue } from "../../src/workers/index.ts";
import { type Running, start } from "../faults/program-support.ts";
import { postgresUrl } from "../postgres-server.ts";
import { redisUrl } from "../redis-server.ts";

/** The state that a fleet of one test shares. */
export interface Fleet {
  readonly store: SessionStore;
  readonly manager: SessionManager;
  readonly queue: RunQueue;
  readonly queueUrl: string;
  /** Starts a worker in a separate process; resolves when it listens. */
  startWorker(options?: { readonly leaseMs?: number; readonly sweepMs?: number }): Promise<Running>;
  /** A new session of a user, with a requested run and its notification. */
  ask(input: string, userId?: string): Promise<{ readonly sessionId: string; readonly runId: string }>;
  /** The executed calls of runs: run and round. */
  effects(): Promise<string[]>;
}

const SAYS_MS_MAX = 180_000;

/** The location of a fleet's queue and sessions: on Redis and in a file, or both on PostgreSQL. */
export const places = ["redis", "postgres"] as const;

/** A fleet with separate sessions, queue and files. */
export async function openFleet(place: (typeof places)[number]): Promise<Fleet> {
  const directory = await mkdtemp(join(tmpdir(), "skein-fleet-"));
  const effects = join(directory, "effects");
  await writeFile(effects, "");
  const storeUrl = place === "redis" ? `sqlite:${join(directory, "skein.db")}` : await postgresUrl();
  const queueUrl = place === "redis" ? await redisUrl() : await postgresUrl();
  const store = await openStore(storeUrl);
  const manager = new SessionManager({ store });
  const queue = bullmqQueue({ url: queueUrl });
  onTestFinished(async () => {
    await queue.close();
    await store.close();
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  });
  return {
    store,
    manager,
    queue,
    queueUrl,
    async startWorker({ leaseMs = 2000, sweepMs = 60_000 } = {}) {
      const worker = start("../../workers/programs/fleet-worker.mjs", [
        storeUrl,
        queueUrl,
        effects,
        String(leaseMs),
        String(sweepMs),
      ]);
      await says(worker, /^ready$/);
      return worker;
    },
    async ask(input, userId = "ann") {
      const { sessionId } = await manager.create({ userId });
      const { runId } = await manager.request(sessionId, { agent: "helper", input });
      await queue.notify(sessionId, { runner: "helper" });
      return { sessionId, runId };
    },
    effects: async () => (await readFile(effects, "utf8")).split("\n").slice(0, -1),
  };
}

/** Resolves with the first line of a program that says something; fails when it ends, or three minutes pass, without. */
export async function says(program: Running, pattern: RegExp, after = 0): Promise<string> {
  const find = () =>
    program
      .lines()
      .slice(after)
      .find((text) => pattern.test(text));
  let over = false;
  const late = new Promise((resolve) => void setTimeout(resolve, SAYS_MS_MAX).unref());
  // Its last output may arrive after its end.
  const end = Promise.race([program.ended, late]).then(() => {
    over = true;
  });
  while (!over && find() === undefined) await Promise.race([program.more(), end]);
  const line = find();
  if (line === undefined) throw new Error(`The program did not say ${pattern}; it said only ${program.lines()}.`);
  return line;
}

/** Sorts two workers: the one that prints a line first, and the other. */
export async function holderOf(workers: readonly Running[], pattern: RegExp): Promise<[Running, Running]> {
  const index = await Promise.race(workers.map((worker, at) => says(worker, pattern).then(() => at)));
  return [workers[index], workers[1 - index]] as [Running, Running];
}

/** How a session's runs began and ended, in the order of its log. */
export async function phasesOf(store: SessionStore, sessionId: string): Promise<string[]> {
  return (await entriesOf(store, sessionId)).flatMap((entry) => (entry.type === "run" ? [entry.phase] : []));
}

export async function entriesOf(store: SessionStore, sessionId: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const entry of store.read(sessionId)) entries.push(entry);
  return entries;
}

/** Resolves when a session has no open run. */
export async function idle(store: SessionStore, sessionId: string, timeout = 60_000): Promise<void> {
  await expect.poll(async () => (await store.head(sessionId))?.openRuns, { timeout, interval: 50 }).toEqual([]);
}
