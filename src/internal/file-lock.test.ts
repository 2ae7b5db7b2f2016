import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { FileLock } from "./file-lock.ts";

async function lockPath(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "skein-lock-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return join(directory, "file.lock");
}

/** The pid of a process that has ended. */
const ended = spawnSync(process.execPath, ["-e", ""]).pid;

function owner(init: object): string {
  return JSON.stringify({ pid: ended, host: hostname(), token: "token", startedAt: null, ...init });
}

const filesBeside = async (path: string): Promise<string[]> => readdir(join(path, ".."));

test("has one holder at a time, and an acquire that times out resolves to the holder", async () => {
  const path = await lockPath();
  const [one, other] = [new FileLock(path), new FileLock(path)];
  expect(await one.acquire(0)).toBeNull();
  expect(one.held).toBe(true);
  expect(await other.acquire(30)).toMatchObject({ pid: process.pid, host: hostname() });
  expect(other.held).toBe(false);
  await one.release();
  expect(await other.acquire(0)).toBeNull();
  await other.release();
  expect(await filesBeside(path)).toEqual([]);
});

test("excludes all other waiters while it is held", async () => {
  const path = await lockPath();
  let inside = 0;
  let rounds = 0;
  const enter = async (): Promise<void> => {
    const lock = new FileLock(path);
    for (let i = 0; i < 10; i++) {
      expect(await lock.acquire(20_000)).toBeNull();
      inside += 1;
      expect(inside).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, Math.random()));
      inside -= 1;
      rounds += 1;
      await lock.release();
    }
  };
  await Promise.all(Array.from({ length: 6 }, enter));
  expect(rounds).toBe(60);
  expect(await filesBeside(path)).toEqual([]);
});

test("hasWaiters is true for the holder while another process waits", async () => {
  const path = await lockPath();
  const [one, other] = [new FileLock(path), new FileLock(path)];
  await one.acquire(0);
  expect(one.hasWaiters()).toBe(false);
  const waiting = other.acquire(5000);
  await expect.poll(() => one.hasWaiters(), { interval: 5 }).toBe(true);
  await one.release();
  expect(await waiting).toBeNull();
  expect(one.hasWaiters()).toBe(false);
});

test.each([
  ["a process that has ended", owner({})],
  ["an earlier process with the same pid", owner({ pid: process.pid, startedAt: "another boot/1" })],
])("takes over from %s without waiting", async (_, content) => {
  const path = await lockPath();
  await writeFile(path, content);
  expect(await new FileLock(path).acquire(0)).toBeNull();
  expect(await filesBeside(path)).toEqual(["file.lock"]);
});

test("exactly one of many waiters takes over a stale lock, and the others wait", async () => {
  for (let round = 0; round < 20; round++) {
    const path = await lockPath();
    await writeFile(path, owner({ token: `t${round}` }));
    const locks = Array.from({ length: 8 }, () => new FileLock(path));
    const results = await Promise.all(locks.map((lock) => lock.acquire(60)));
    expect(results.filter((holder) => holder === null).length).toBe(1);
    const { token } = JSON.parse(await readFile(path, "utf8"));
    expect(results.flatMap((holder) => holder?.token ?? [])).toEqual(Array.from({ length: 7 }, () => token));
  }
});

test("continues the takeover of a process that has died during it", async () => {
  const path = await lockPath();
  await writeFile(path, owner({ token: "first" }));
  await writeFile(`${path}.first.dead`, owner({ token: "second" }));
  await writeFile(`${path}.second.dead`, owner({ token: "third" }));
  expect(await new FileLock(path).acquire(5000)).toBeNull();
  expect(await filesBeside(path)).toEqual(["file.lock"]);
});

test("does not take over while a live process is doing so", async () => {
  const path = await lockPath();
  await writeFile(path, owner({ token: "first" }));
  const startedAt = null;
  await writeFile(`${path}.first.dead`, owner({ pid: process.pid, token: "second", startedAt }));
  expect(await new FileLock(path).acquire(100)).toMatchObject({ token: "first" });
});

test("takes over from another machine after a minute without a heartbeat, and not before", async () => {
  const path = await lockPath();
  await writeFile(path, owner({ host: "elsewhere" }));
  expect(await new FileLock(path).acquire(60)).toMatchObject({ host: "elsewhere" });
  const ago = new Date(Date.now() - 61_000);
  await utimes(path, ago, ago);
  const lock = new FileLock(path);
  expect(await lock.acquire(1000)).toBeNull();
  expect(await lock.heartbeat()).toBe(true);
});

test("takes over a lock without an owner after some seconds", async () => {
  const path = await lockPath();
  await writeFile(path, "");
  expect(await new FileLock(path).acquire(60)).not.toBeNull();
  const ago = new Date(Date.now() - 5000);
  await utimes(path, ago, ago);
  expect(await new FileLock(path).acquire(1000)).toBeNull();
});

test("notices a takeover, and then does not remove the new holder's lock", async () => {
  const path = await lockPath();
  const lock = new FileLock(path);
  await lock.acquire(0);
  await writeFile(path, owner({ token: "someone" }));
  expect(await lock.heartbeat()).toBe(false);
  await lock.release();
  expect(JSON.parse(await readFile(path, "utf8")).token).toBe("someone");
});

test("removes the files that killed processes have left beside it", async () => {
  const path = await lockPath();
  const ago = new Date(Date.now() - 120_000);
  await writeFile(path, owner({}));
  for (const name of ["old.dead", "young.dead", "young.tmp", "empty.tmp"])
    await writeFile(`${path}.${name}`, name === "empty.tmp" ? "" : owner({}));
  await writeFile(`${path}.living.tmp`, owner({ pid: process.pid }));
  await utimes(`${path}.old.dead`, ago, ago);
  expect(await new FileLock(path).acquire(1000)).toBeNull();
  const kept = ["file.lock", "file.lock.empty.tmp", "file.lock.living.tmp", "file.lock.young.dead"];
  expect((await filesBeside(path)).toSorted()).toEqual(kept);
});
