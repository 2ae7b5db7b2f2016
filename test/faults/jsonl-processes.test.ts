import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Entry } from "../../src/session/entry.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { entriesOf, makeDirectory, makeSession, openStore, program, snapshot, user } from "./jsonl-support.ts";

const KILLS = 200;

/** Starts a program and collects the lines that it prints. */
function start(
  name: string,
  args: readonly string[],
): { child: ChildProcess; lines: () => string[]; ended: Promise<void> } {
  const child = spawn(process.execPath, [program(name), ...args], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout?.on("data", (data: Buffer) => (text += data.toString()));
  const ended = once(child, "close").then(() => {});
  // A line that the kill cut short was not acknowledged.
  return { child, ended, lines: () => text.split("\n").slice(0, -1) };
}

/** The ids are those of one path, each entry on the one before it, in whole lines. */
async function checkOnePath(path: string, entries: readonly Entry[]): Promise<void> {
  for (const [index, { parentId }] of entries.entries()) expect(parentId).toBe(entries[index - 1]?.id ?? null);
  for (const line of (await readFile(path, "utf8")).trimEnd().split("\n")) JSON.parse(line);
}

describe.each(["flush", "fsync"] as const)("with durability %s", (durability) => {
  test(`finds every acknowledged entry after ${KILLS} kills at random moments`, async () => {
    const directory = await makeDirectory();
    const { store, path } = await makeSession(directory);
    const acknowledged: string[] = [];
    let seed = durability.length;
    const random = (): number => (seed = (seed * 16807) % 2147483647) / 2147483647;
    for (let kill = 0; kill < KILLS; kill++) {
      const { child, lines, ended } = start("jsonl-append.mjs", [directory, durability, `k${kill}`, "100000", "500"]);
      await Promise.race([once(child.stdout as NonNullable<typeof child.stdout>, "data"), ended]);
      expect(child.exitCode, "the program has ended by itself").toBeNull();
      await new Promise((resolve) => setTimeout(resolve, random() * 12));
      child.kill("SIGKILL");
      await ended;
      acknowledged.push(...lines());
    }
    // A lock that a killed process left is taken over; waiting for it would end in SESSION_BUSY.
    await store.append("a", [user("after all", "last")]);
    const entries = await entriesOf(store);
    const ids = new Set(entries.map(({ id }) => id));
    expect(acknowledged.length).toBeGreaterThan(KILLS);
    expect(acknowledged.filter((id) => !ids.has(id))).toEqual([]);
    await checkOnePath(path, entries);
    await checkHeadIsFold(store, "a");
    await store.close();
    // Killed in passing, they leave little behind, and nothing grows with their number.
    expect((await readdir(join(directory, ".index"))).length).toBeLessThan(20);
  }, 300_000);

  test("says that the disk is full, and is as it was", async () => {
    const directory = await makeDirectory();
    const { store, path } = await makeSession(directory, [user("before", "before")]);
    await store.close();
    const words = [process.execPath, program("jsonl-fill-disk.mjs"), directory, durability];
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
    // There is room again.
    await later.append("a", [user("x".repeat(50_000), "after")]);
    expect((await later.head("a"))?.version).toBe(ids.length + 1);
    await checkHeadIsFold(later, "a");
  }, 30_000);
});

test("two processes that append to one file lose nothing and follow each other on one path", async () => {
  const directory = await makeDirectory();
  const { store, path } = await makeSession(directory);
  const both = ["x", "y"].map((prefix) => start("jsonl-append.mjs", [directory, "flush", prefix, "1000", "600"]));
  await Promise.all(both.map(({ ended }) => ended));
  const acknowledged = both.flatMap(({ lines }) => lines());
  const entries = await entriesOf(store);
  expect(entries.map(({ id }) => id).toSorted()).toEqual(acknowledged.toSorted());
  expect(new Set(acknowledged).size).toBe(2 * (1000 + 334));
  await checkOnePath(path, entries);
  await checkHeadIsFold(store, "a");
}, 60_000);

test("two processes that append without a pause take turns", async () => {
  const directory = await makeDirectory();
  const { store } = await makeSession(directory);
  const both = ["x", "y"].map((prefix) => start("jsonl-append.mjs", [directory, "flush", prefix, "100000"]));
  await expect.poll(() => both.every(({ lines }) => lines().length > 0), { timeout: 10_000, interval: 10 }).toBe(true);
  const before = both.map(({ lines }) => lines().length);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const gained = both.map(({ lines }, index) => lines().length - (before[index] as number));
  for (const { child, ended } of both) {
    child.kill("SIGKILL");
    await ended;
  }
  expect(Math.min(...gained)).toBeGreaterThan(50);
  await store.append("a", [user("last")]);
  await checkHeadIsFold(store, "a");
}, 60_000);

test("two stores of one process take turns on one file", async () => {
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
    execFileSync(process.execPath, [program("jsonl-as-nobody.mjs"), directory], { encoding: "utf8" }),
  );
  expect(report.version).toBe(1);
  for (const code of report.codes) expect(["STORE_FAILED", "READ_ONLY"]).toContain(code);
  expect(await snapshot(directory)).toEqual(before);
  await chmod(directory, 0o755);
  expect((await stat(path)).mode & 0o777).toBe(0o444);
});
