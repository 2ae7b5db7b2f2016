import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { type Entry, openStore, type SessionStore } from "skein";
import { foreignFormat, type ImportFilesOptions, type ImportStep, type ImportTarget, importFiles } from "skein/formats";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { redisMissing, startRedis } from "../../scripts/redis.mjs";
import { postgresUrl } from "../postgres-server.ts";
import { skipBecause } from "../skip.ts";

// Threads run built code, so this file uses the package and not its sources.
const FILES = 12;
const format = foreignFormat("pi");
let directory: string;
let files: string;
/** The threads that a test started, and those of them that have ended. */
let started = 0;
let ended = 0;

function count(thread: Worker): void {
  started++;
  thread.once("exit", () => ended++);
}

beforeAll(async () => {
  process.on("worker", count);
  directory = await mkdtemp(join(tmpdir(), "threads-"));
  files = join(directory, "files");
  await mkdir(files);
  for (let number = 1; number <= FILES; number++) {
    const path = join(files, `${number}.jsonl`);
    await writeFile(path, sessionText(number));
    // Files are imported in the order of their modification times.
    await utimes(path, number, number);
  }
});
afterAll(async () => {
  process.off("worker", count);
  await rm(directory, { recursive: true, force: true });
});

/**
 * Files of more than one megabyte, the size of one read, the first of more than three. Every third has a line
 * that cannot be read.
 */
function sessionText(number: number): string {
  const timestamp = "2025-11-16T07:10:00.000Z";
  const lines = [JSON.stringify({ type: "session", version: 3, id: `s${number}`, timestamp, cwd: "/srv/shop" })];
  for (let turn = 0; turn < 20; turn++) {
    const stamp = { type: "message", id: `e${turn}`, parentId: turn === 0 ? null : `e${turn - 1}`, timestamp };
    const content = `${number}.${turn} `.repeat(number === 1 ? 45_000 : 15_000);
    lines.push(JSON.stringify({ ...stamp, message: { role: "user", content, timestamp: 1 } }));
  }
  if (number % 3 === 0) lines.splice(5, 0, "{broken");
  return `${lines.join("\n")}\n`;
}

async function importInto(
  store: SessionStore,
  options: Partial<ImportFilesOptions> & { limits?: ImportTarget["limits"] } = {},
) {
  const { limits, ...more } = options;
  const target = { store, userId: "ana", ...(limits === undefined ? {} : { limits }) };
  const steps: ImportStep[] = [];
  for await (const step of importFiles(target, { format, path: files, ...more })) steps.push(step);
  return steps;
}

async function entriesOf(store: SessionStore, steps: readonly ImportStep[]): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (const { sessionId } of steps.flatMap(({ sessions }) => sessions))
    for await (const entry of store.read(sessionId)) entries.push(entry);
  return entries;
}

beforeEach((context) => {
  [started, ended] = [0, 0];
  if (availableParallelism() < 2) skipBecause(context, "there is one core, on which threads would not pay");
});

const places = {
  jsonl: () => `jsonl:${join(directory, "jsonl")}`,
  sqlite: () => `sqlite:${join(directory, "sqlite")}`,
  postgres: () => postgresUrl(),
  // A separate database, because the URL of a store cannot set a key prefix.
  redis: async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    return server.url;
  },
};

test.for(Object.entries(places))(
  "threads import many files into %s like one thread, and in the same order",
  async ([kind, urlOf], context) => {
    const missing = kind === "redis" ? redisMissing() : null;
    if (missing !== null) skipBecause(context, missing);
    const storeUrl = await urlOf();
    await using store = await openStore(storeUrl);
    await using other = await openStore("memory:");
    const one = await importInto(other, { storeUrl: "memory:" });
    expect(started).toBe(0);
    const many = await importInto(store, { storeUrl });
    expect(started).toBeGreaterThan(1);
    expect(ended).toBe(started);
    expect(many).toEqual(one);
    expect(many.map(({ number, report }) => [number, report.mapped, report.lost])).toEqual(
      Array.from({ length: FILES }, (_, index) => [index + 1, 21, index % 3 === 2 ? 1 : 0]),
    );
    expect(await entriesOf(store, many)).toEqual(await entriesOf(other, one));
  },
);

test("an error of the store in a thread is thrown unchanged, and the threads end", async () => {
  const storeUrl = `sqlite:${join(directory, "refused")}`;
  await using store = await openStore(storeUrl);
  await expect(importInto(store, { storeUrl, limits: { entriesMax: 1000, maxOpenPerUser: 1 } })).rejects.toMatchObject({
    ...{ name: "SessionError", code: "CAPACITY" },
    message: expect.stringContaining("1"),
  });
  expect([started > 1, ended]).toEqual([true, started]);
});

test("a file that a thread cannot import is one loss, and the others are imported", async () => {
  const storeUrl = `sqlite:${join(directory, "lost")}`;
  await using store = await openStore(storeUrl);
  const steps = await importInto(store, { storeUrl, limits: { entriesMax: 5 } });
  expect([started > 1, steps.length]).toEqual([true, FILES]);
  for (const { report } of steps)
    expect(report.lostLines).toEqual([{ line: 0, reason: expect.stringContaining("more than 5 entries") }]);
  expect(await store.count()).toBe(0);
});

test("threads finish their current files and end when the import is stopped", async () => {
  const storeUrl = `jsonl:${join(directory, "stopped")}`;
  await using store = await openStore(storeUrl);
  const stop = new AbortController();
  const steps = importFiles({ store, userId: "ana" }, { format, path: files, storeUrl, signal: stop.signal });
  await steps.next();
  stop.abort();
  await expect(steps.next()).rejects.toMatchObject({ name: "AbortError" });
  expect([started > 1, ended]).toEqual([true, started]);
  const { items, damaged } = await store.list();
  expect([new Set(items.map(({ version }) => version)), damaged]).toEqual([new Set([20]), []]);
});
