import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openManager } from "../../src/cli/open-manager.ts";
import { importSession } from "../../src/export/index.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { tracesOf } from "../erase/traces.ts";
import { ADA, makeWorld } from "../erase/world.ts";
import { jsonOf, runHere } from "./run-skein.ts";

const WORD = "quetzalcoatlus";
let directory: string;
let url: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-erase-cli-"));
  vi.stubEnv("SKEIN_HOME", join(directory, "home"));
  const path = join(directory, "skein.db");
  url = `sqlite:${path}`;
  await using store = await openSqliteStore({ path });
  await makeWorld(store, WORD);
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true, force: true });
});

async function traces(): Promise<readonly string[]> {
  await using store = await openSqliteStore({ path: join(directory, "skein.db") });
  return await tracesOf(store, WORD);
}

test("erase prints its plan and asks, and does nothing without a yes", async () => {
  const args = ["erase", "--user", ADA, "--store", url];
  expect(await runHere([...args, "--dry-run"])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^would be erased: 3 sessions, .*\n(?:kept: .*\n)*kept: entries of own in fork, a fork of bob/,
    ),
  });
  expect(await runHere(args)).toMatchObject({ code: 2, stderr: expect.stringContaining("give --yes") });
  expect(await runHere(args, { answer: "no" })).toMatchObject({ code: 1, stderr: "Nothing was erased.\n" });
  expect(await traces()).not.toEqual([]);
  expect(await runHere([...args, "--forks", "erase"], { answer: "y" })).toMatchObject({ code: 0 });
  expect(await traces()).toEqual([]);
});

test("erase prints its report as JSON, and rewrites the file on request", async () => {
  const args = ["erase", "--user", ADA, "--forks", "erase", "--rewrite", "--yes", "--store", url];
  expect(await jsonOf(...args)).toMatchObject({ dryRun: false, sessions: 3, keptByForks: [] });
  expect((await readFile(join(directory, "skein.db"))).includes(WORD)).toBe(false);
  // libsql closes a file when its statements are garbage collected, and the last connection to close deletes the log.
  const log = await readFile(join(directory, "skein.db-wal")).catch(() => Buffer.alloc(0));
  expect(log.includes(WORD)).toBe(false);
  expect(await runHere(["erase", "--store", url])).toMatchObject({ code: 2 });
  expect(await runHere(["doctor", "--snapshots", "--store", url])).toMatchObject({ code: 0, stderr: "" });
});

test("erase prints its progress", async () => {
  const args = ["erase", "--user", ADA, "--yes", "--store", url];
  const { stderr } = await runHere(args, { watched: true });
  expect(stderr).toMatch(/sessions examined|\[#*-*\] \d+ of \d+ sessions erased/);
});

test("export-user writes an archive that tar opens and whose sessions can be imported", async () => {
  const output = join(directory, "ada.tar");
  expect(await jsonOf("export-user", ADA, "--output", output, "--store", url)).toMatchObject({ user: ADA, output });
  expect(await runHere(["export-user", ADA, "--output", output, "--store", url])).toMatchObject({ code: 2 });
  await promisify(execFile)("tar", ["-xf", output, "-C", directory]);
  const about = JSON.parse(await readFile(join(directory, "about.json"), "utf8"));
  expect(about.sessions.map(({ sessionId }: { sessionId: string }) => sessionId).sort()).toEqual([
    "own",
    "own-branch",
    "thrown-away",
  ]);
  expect(about.elsewhere.length).toBeGreaterThan(0);
  for (const { file } of about.elsewhere) expect(await readFile(join(directory, file), "utf8")).toContain(WORD);
  const store = openMemoryStore();
  for (const { file } of about.sessions) {
    const lines = (await readFile(join(directory, file), "utf8")).trim().split("\n");
    await importSession(store, lines, { trust: true });
  }
  expect(await store.count({ userId: ADA })).toBe(3);
});

test("doctor finds snapshots that no checkpoint refers to", async () => {
  const snapshots = join(directory, "home", "snapshots");
  expect(await readdir(snapshots)).toHaveLength(1);
  expect(await runHere(["doctor", "--snapshots", "--store", url])).toMatchObject({ code: 0, stderr: "" });
  {
    await using store = await openSqliteStore({ path: join(directory, "skein.db") });
    const [checkpoint] = await store.listCheckpoints("own");
    await store.deleteCheckpoint(checkpoint?.id ?? "");
  }
  const { code, stdout } = await runHere(["doctor", "--snapshots", "--store", url]);
  expect([code, stdout]).toEqual([1, expect.stringContaining("is not referred to by any checkpoint")]);
});

test("delete removes the file snapshots of the session's checkpoints", async () => {
  await runHere(["delete", "own", "--store", url]);
  expect(await readdir(join(directory, "home", "snapshots"))).toEqual([]);
});

test("prune --erase erases old sessions without keeping them as deleted", async () => {
  await using store = await openSqliteStore({ path: join(directory, "skein.db") });
  await (await openManager(store)).close("calm-fork");
  const args = ["prune", "--erase", "0s", "--status", "closed", "--store", url];
  expect(await jsonOf(...args)).toMatchObject({ erased: ["calm-fork"], deleted: [] });
  expect([await store.head("calm-fork"), await store.undelete("calm-fork")]).toEqual([null, false]);
});
