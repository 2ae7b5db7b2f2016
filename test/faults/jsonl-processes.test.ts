import { execFileSync, spawnSync } from "node:child_process";
import { chmod, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Entry } from "../../src/session/log/entry.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { skipBecause } from "../skip.ts";
import { makeDirectory, makeSession, openStore, snapshot, user } from "./jsonl-support.ts";
import { programPath, start } from "./program-support.ts";
import { entriesOf } from "./store-support.ts";
import { expectKept, writeTogether } from "./writers-support.ts";

/** `npm run torture` runs for the given time. */
const KILLS = 5;

/** The ids are those of one path, each entry on the one before it, in whole lines. */
async function checkOnePath(path: string, entries: readonly Entry[]): Promise<void> {
  for (const [index, { parentId }] of entries.entries()) expect(parentId).toBe(entries[index - 1]?.id ?? null);
  for (const line of (await readFile(path, "utf8")).trimEnd().split("\n")) JSON.parse(line);
}

test.for(["jsonl", "jsonl (fsync)"])(
  `finds every acknowledged entry after ${KILLS} kills at random moments, on %s`,
  (store) => expectKept("writers", store, KILLS),
);

describe.each(["flush", "fsync"] as const)("with durability %s", (durability) => {
  test("reports that the disk is full, and is unchanged", async () => {
    const directory = await makeDirectory();
    const { store, path } = await makeSession(directory, [user("before", "before")]);
    await store.close();
    const words = [process.execPath, programPath("jsonl-fill-disk.mjs"), directory, durability];
    const command = `ulimit -f 40; exec ${words.map((word) => `'${word}'`).join(" ")}`;
    const report = JSON.parse(execFileSync("bash", ["-c", command], { encoding: "utf8" }));
    expect(report).toMatchObject({ code: "STORE_FAILED", whole: true, small: true });
    expect(report.message).toContain(path);
    expect(report.acknowledged.length).toBeGreaterThan(20);
    expect(report.version).toBe(report.acknowledged.length + 1);
    expect((await readFile(path)).at(-1)).toBe(10);
    const later = await openStore(directory);
    const ids = (await entriesOf(later)).map(({ id }) => id);
    expect(ids).toEqual(["before", ...report.acknowledged, "small"]);
    // The disk has room again.
    await later.append("a", [user("x".repeat(50_000), "after")]);
    expect((await later.head("a"))?.version).toBe(ids.length + 1);
    await checkHeadIsFold(later, "a");
  });
});

test("reverts an append that could not be synced to disk, and continues", async (context) => {
  // Replaces the result of the seventh system call, counted per thread.
  const inject = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO:when=7"];
  const env = { ...process.env, UV_THREADPOOL_SIZE: "1" };
  const { error, status } = spawnSync("strace", [...inject, "true"]);
  if (error !== undefined || status !== 0)
    skipBecause(context, "strace is not installed, or does not work, on this machine");
  const directory = await makeDirectory();
  const { store, path } = await makeSession(directory, [user("before", "before")]);
  await store.close();
  const command = [process.execPath, programPath("jsonl-fill-disk.mjs"), directory, "fsync"];
  const report = JSON.parse(execFileSync("strace", [...inject, ...command], { encoding: "utf8", env }));
  expect(report).toMatchObject({ code: "STORE_FAILED", cause: "EIO", whole: true, small: true });
  expect(report.acknowledged).toHaveLength(12);
  expect(report.version).toBe(13);
  const later = await openStore(directory);
  expect((await entriesOf(later)).map(({ id }) => id)).toEqual(["before", ...report.acknowledged, "small"]);
  expect(await readFile(path, "utf8")).not.toContain('"f-6"');
  await checkHeadIsFold(later, "a");
});

test("two processes that append to one file lose nothing and follow each other on one path", async () => {
  const directory = await makeDirectory();
  const store = await openStore(directory);
  await writeTogether(`jsonl:${directory}`, { processes: 2, appends: 500 }, async () => void (await store.list()));
  for (const line of (await readFile((await store.pathOf("shared")) as string, "utf8")).trimEnd().split("\n"))
    JSON.parse(line);
});

test("two processes that append without a pause both make progress", async () => {
  const directory = await makeDirectory();
  const { store } = await makeSession(directory);
  const both = ["x", "y"].map((tag) => start("write.mjs", [`jsonl:${directory}`, "a", tag, "100000", "1"]));
  const done = (): number[] => both.map(({ lines }) => lines().filter((line) => line.startsWith("done ")).length);
  const more = (): Promise<void> => Promise.race(both.map((each) => each.more()));
  while (Math.min(...done()) === 0) await more();
  const before = done();
  const gained = (): number[] => done().map((count, index) => count - (before[index] as number));
  while (Math.max(...gained()) < 500) await more();
  expect(Math.min(...gained())).toBeGreaterThan(50);
  for (const { child, ended } of both) {
    child.kill("SIGKILL");
    await ended;
  }
  await store.append("a", [user("last")]);
  await checkHeadIsFold(store, "a");
});

test("two stores of one process both make progress on one file", async () => {
  const directory = await makeDirectory();
  const { store, path } = await makeSession(directory);
  const other = await openStore(directory);
  const append = async (handle: typeof store, name: string): Promise<void> => {
    for (let i = 0; i < 300; i++) await handle.append("a", [user("text", `${name}${i}`)]);
  };
  await Promise.all([append(store, "x"), append(other, "y"), append(other, "z")]);
  const entries = await entriesOf(store);
  expect(entries.length).toBe(900);
  expect(await entriesOf(other)).toEqual(entries);
  await checkOnePath(path, entries);
});

test("changes nothing where it has no right to write", async () => {
  const directory = await makeDirectory();
  const { store, path } = await makeSession(directory, [user("one", "1")]);
  await store.close();
  await chmod(path, 0o444);
  await chmod(join(directory, ".index"), 0o555);
  await chmod(directory, 0o555);
  const before = await snapshot(directory);
  const report = JSON.parse(
    execFileSync(process.execPath, [programPath("jsonl-as-nobody.mjs"), directory], { encoding: "utf8" }),
  );
  expect(report.version).toBe(1);
  for (const code of report.codes) expect(["STORE_FAILED", "READ_ONLY"]).toContain(code);
  expect(await snapshot(directory)).toEqual(before);
  await chmod(directory, 0o755);
  expect((await stat(path)).mode & 0o777).toBe(0o444);
});
