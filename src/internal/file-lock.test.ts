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

/** The number of a process that has ended. */
const ended = spawnSync(process.execPath, ["-e", ""]).pid;

function owner(init: object): string {
  return JSON.stringify({ pid: ended, host: hostname(), token: "token", startedAt: null, ...init });
}

const left = async (path: string): Promise<string[]> => readdir(join(path, ".."));

test("is held by one at a time, and tells who that is to one who waits too long", async () => {
  const path = await lockPath();
  const [one, other] = [new FileLock(path), new FileLock(path)];
  expect(await one.acquire(0)).toBeNull();
  expect(one.held).toBe(true);
  expect(await other.acquire(30)).toMatchObject({ pid: process.pid, host: hostname() });
  expect(other.held).toBe(false);
  await one.release();
  expect(await other.acquire(0)).toBeNull();
  await other.release();
  expect(await left(path)).toEqual([]);
});

test("lets nobody in while it is held, however many ask", async () => {
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
  expect(await left(path)).toEqual([]);
});

test("shows a holder that someone waits, until it gives way", async () => {
  const path = await lockPath();
  const [one, other] = [new FileLock(path), new FileLock(path)];
  await one.acquire(0);
  expect(one.isWanted()).toBe(false);
  const waiting = other.acquire(5000);
  await expect.poll(() => one.isWanted(), { interval: 5 }).toBe(true);
  await one.release();
  expect(await waiting).toBeNull();
  expect(one.isWanted()).toBe(false);
});

test.each([
  ["a process that has ended", owner({})],
  ["another process that had the same number", owner({ pid: process.pid, startedAt: "another boot/1" })],
])("takes over from %s without waiting", async (_, content) => {
  const path = await lockPath();
  await writeFile(path, content);
  expect(await new FileLock(path).acquire(0)).toBeNull();
  expect(await left(path)).toEqual(["file.lock"]);
});

test("exactly one of many takes over, and the others wait for it", async () => {
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

test("goes on when the one who was taking over has died too", async () => {
  const path = await lockPath();
  await writeFile(path, owner({ token: "first" }));
  await writeFile(`${path}.first.dead`, owner({ token: "second" }));
  await writeFile(`${path}.second.dead`, owner({ token: "third" }));
  expect(await new FileLock(path).acquire(5000)).toBeNull();
  expect(await left(path)).toEqual(["file.lock"]);
});

test("leaves the taking over to one who is at it", async () => {
  const path = await lockPath();
  await writeFile(path, owner({ token: "first" }));
  const startedAt = null;
  await writeFile(`${path}.first.dead`, owner({ pid: process.pid, token: "second", startedAt }));
  expect(await new FileLock(path).acquire(100)).toMatchObject({ token: "first" });
});

test("takes over from another machine after a minute of silence, and not before", async () => {
  const path = await lockPath();
  await writeFile(path, owner({ host: "elsewhere" }));
  expect(await new FileLock(path).acquire(60)).toMatchObject({ host: "elsewhere" });
  const ago = new Date(Date.now() - 61_000);
  await utimes(path, ago, ago);
  const lock = new FileLock(path);
  expect(await lock.acquire(1000)).toBeNull();
  expect(await lock.refresh()).toBe(true);
});

test("takes over a lock that names nobody once it is some seconds old", async () => {
  const path = await lockPath();
  await writeFile(path, "");
  expect(await new FileLock(path).acquire(60)).not.toBeNull();
  const ago = new Date(Date.now() - 5000);
  await utimes(path, ago, ago);
  expect(await new FileLock(path).acquire(1000)).toBeNull();
});

test("knows when it has been taken over, and then does not remove the other's lock", async () => {
  const path = await lockPath();
  const lock = new FileLock(path);
  await lock.acquire(0);
  await writeFile(path, owner({ token: "someone" }));
  expect(await lock.refresh()).toBe(false);
  await lock.release();
  expect(JSON.parse(await readFile(path, "utf8")).token).toBe("someone");
});

test("removes what killed processes left beside it", async () => {
  const path = await lockPath();
  const ago = new Date(Date.now() - 120_000);
  await writeFile(path, owner({}));
  for (const name of ["old.dead", "young.dead", "young.tmp", "empty.tmp"])
    await writeFile(`${path}.${name}`, name === "empty.tmp" ? "" : owner({}));
  await writeFile(`${path}.living.tmp`, owner({ pid: process.pid }));
  await utimes(`${path}.old.dead`, ago, ago);
  expect(await new FileLock(path).acquire(1000)).toBeNull();
  const kept = ["file.lock", "file.lock.empty.tmp", "file.lock.living.tmp", "file.lock.young.dead"];
  expect((await left(path)).toSorted()).toEqual(kept);
});
