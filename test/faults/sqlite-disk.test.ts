import { execFileSync } from "node:child_process";
import { chmod, cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "libsql";
import { expect, type TestContext, test } from "vitest";
import { skipBecause } from "../skip.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { makePath, openStore, problemsOf, rowsOf } from "./sqlite-support.ts";
import { runProgram } from "./program-support.ts";
import { entriesOf } from "./store-support.ts";

const message = { type: "message", message: { role: "user", content: "hello" } } as const;

test("refuses appends when no file may grow any more, and keeps all that it acknowledged", async () => {
  const path = await makePath();
  const store = await openStore(path);
  await store.create(createHeader({ id: "a" }));
  await store.append("a", [message]);
  await store.close();
  // The limit is in blocks of 1,024 bytes; the write-ahead log reaches it first.
  const [line = "{}"] = await runProgram("sqlite-fill-disk.mjs", [path, "a"], "ulimit -f 2000");
  const result = JSON.parse(line);
  expect(result).toMatchObject({ code: "STORE_FAILED", hasCause: true, again: "STORE_FAILED", found: 1 });
  expect(result.message).toContain(path);
  expect(result.acknowledged.length).toBeGreaterThan(100);
  expect([result.version, result.read, ...result.listed]).toEqual(Array(3).fill(1 + result.acknowledged.length));
  await checkAcknowledged(path, result.acknowledged);
});

test("refuses appends when the database has its full size, and continues when there is room again", async () => {
  const path = await makePath();
  const database = new Database(path);
  const store = await openSqliteStore({ path, database: database as never });
  await store.create(createHeader({ id: "a" }));
  database.exec("PRAGMA max_page_count = 60");
  const acknowledged: string[] = [];
  const failure = await (async () => {
    for (let i = 0; i < 10_000; i++) {
      const drafts = [message, { ...message, id: `b-${i}` }];
      acknowledged.push(...(await store.append("a", drafts)).entries.map(({ id }) => id));
    }
  })().catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: "STORE_FAILED" });
  expect(String(failure)).toContain("full");
  expect((await store.head("a"))?.version).toBe(acknowledged.length);
  // No transaction was left open by the failure.
  expect(await store.head("a")).toEqual((await store.list()).items[0]);
  database.exec("PRAGMA max_page_count = 100000");
  await store.append("a", [message]);
  await checkHeadIsFold(store, "a");
  await store.close();
  expect(database.prepare("SELECT count(*) AS count FROM entries").get()).toMatchObject({
    count: acknowledged.length + 1,
  });
  database.close();
  await checkAcknowledged(path, acknowledged);
});

test.for<readonly [string, number, object]>([
  // Without a place for its log, SQLite cannot even read.
  ["a file and a directory", 0o755, { opened: "STORE_FAILED", codes: [], listed: 0 }],
  ["a file", 0o777, { opened: "done", codes: Array(5).fill("STORE_FAILED"), version: 1, listed: 1 }],
])("says so when %s may not be written to", async ([, directoryMode, result], context) => {
  needsRoot(context);
  const path = await makePath();
  // The end of a process, other than closing, surely leaves no file beside the database.
  await runProgram("write.mjs", [`sqlite:${path}`, "a", "made", "1", "1"]);
  expect(await readdir(dirname(path))).toEqual([basename(path)]);
  await chmod(dirname(path), directoryMode);
  await chmod(path, 0o644);
  const before = await readFile(path);
  const [line = "{}"] = await runProgram("sqlite-as-nobody.mjs", [path]);
  expect(JSON.parse(line)).toEqual(result);
  expect(await readFile(path)).toEqual(before);
});

test("reports that the directory cannot be created", async (context) => {
  needsRoot(context);
  const path = await makePath();
  const [line = "{}"] = await runProgram("sqlite-as-nobody.mjs", [join(dirname(path), "below", "skein.db")]);
  expect(JSON.parse(line)).toMatchObject({ opened: "STORE_FAILED" });
});

test("refuses a file that is not a database, and does not change it", async () => {
  const path = await makePath();
  const text = "This is a letter and not a database.\n".repeat(200);
  await writeFile(path, text);
  await expect(openSqliteStore({ path })).rejects.toMatchObject({ code: "STORE_FAILED" });
  await expect(openSqliteStore({ path })).rejects.toThrow(/not an SQLite database/);
  expect(await readFile(path, "utf8")).toBe(text);
});

test("refuses a directory in the place of the file", async () => {
  const path = await makePath();
  await mkdir(path);
  await expect(openSqliteStore({ path })).rejects.toMatchObject({ code: "STORE_FAILED" });
});

test("refuses a database of a later version, and does not change it", async () => {
  const path = await makePath();
  await (await openStore(path)).close();
  const database = new Database(path);
  database.exec("PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)");
  database.close();
  const before = await readFile(path);
  await expect(openSqliteStore({ path })).rejects.toMatchObject({ code: "UNSUPPORTED_VERSION" });
  await expect(openSqliteStore({ path })).rejects.toThrow(/version 99/);
  expect(await readFile(path)).toEqual(before);
});

test("refuses another program's database, and does not change it", async () => {
  const path = await makePath();
  const database = new Database(path);
  database.exec("CREATE TABLE sessions (id TEXT); INSERT INTO sessions VALUES ('theirs')");
  database.close();
  const before = await readFile(path);
  await expect(openSqliteStore({ path })).rejects.toMatchObject({ code: "STORE_FAILED" });
  expect(await readFile(path)).toEqual(before);
});

test("reports a database that stays locked as busy, and works once it is free", async () => {
  const path = await makePath();
  const database = new Database(path);
  const store = await openSqliteStore({ path, database: database as never });
  await store.create(createHeader({ id: "a" }));
  database.exec("PRAGMA busy_timeout = 50");
  const other = new Database(path);
  other.exec("BEGIN IMMEDIATE");
  await expect(store.append("a", [message])).rejects.toMatchObject({ code: "SESSION_BUSY" });
  await expect(store.create(createHeader({ id: "b" }))).rejects.toMatchObject({ code: "SESSION_BUSY" });
  expect((await store.head("a"))?.version).toBe(0);
  other.exec("ROLLBACK");
  other.close();
  await store.append("a", [message]);
  expect((await store.head("a"))?.version).toBe(1);
  await store.close();
  database.close();
});

test("an append after a write that found the database locked is visible to other processes", async () => {
  const path = await makePath();
  const database = new Database(path);
  const store = await openSqliteStore({ path, database: database as never });
  await store.create(createHeader({ id: "a" }));
  await store.append("a", [message]);
  const lease = await store.lease("a", "run", 60_000);
  database.exec("PRAGMA busy_timeout = 50");
  const other = new Database(path);
  other.exec("BEGIN IMMEDIATE");
  await expect(lease.renew()).rejects.toMatchObject({ code: "SESSION_BUSY" });
  await expect(store.append("a", [message])).rejects.toMatchObject({ code: "SESSION_BUSY" });
  other.exec("ROLLBACK");
  other.close();
  await store.append("a", [message]);
  const second = await openStore(path);
  expect((await second.head("a"))?.version).toBe(2);
  await second.append("a", [message]);
  expect((await store.head("a"))?.version).toBe(3);
  await store.close();
  database.close();
});

test("reports a damaged page, and what lies on others can still be read", async () => {
  const path = await makePath();
  const store = await openStore(path);
  await store.create(createHeader({ id: "a" }));
  for (let i = 0; i < 200; i++) await store.append("a", [{ ...message, id: `e-${i}` }]);
  await store.close();
  const [root] = rowsOf(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'checkpoints_by_session'");
  const bytes = await readFile(path);
  const start = (Number(root?.rootpage) - 1) * 4096;
  bytes.fill(0xff, start, start + 4096);
  await writeFile(path, bytes);
  const damaged = await openStore(path);
  await expect(damaged.listCheckpoints("a")).rejects.toMatchObject({ code: "STORE_FAILED" });
  expect(await entriesOf(damaged, "a")).toHaveLength(200);
});

test("names the package to install if there is no driver", async () => {
  const directory = dirname(await makePath());
  // A copy of the package where no other package can be found.
  await cp(fileURLToPath(new URL("../../dist", import.meta.url)), join(directory, "dist"), { recursive: true });
  await writeFile(join(directory, "package.json"), '{ "type": "module" }');
  const script = `const { openSqliteStore } = await import("./dist/stores/sqlite/index.js");
    await openSqliteStore({ path: ":memory:", driver: "libsql" }).catch(({ code, message }) => console.log(code, message))`;
  const said = execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: directory }).toString();
  expect(said).toMatch(/^DRIVER_MISSING .*install the package libsql, or run on Node 22\.13 or later/);
});

async function checkAcknowledged(path: string, acknowledged: readonly string[]): Promise<void> {
  const store = await openStore(path);
  const ids = new Set((await entriesOf(store, "a")).map(({ id }) => id));
  expect(acknowledged.filter((id) => !ids.has(id))).toEqual([]);
  await checkHeadIsFold(store, "a");
  await store.append("a", [message]);
  expect(problemsOf(path)).toEqual([]);
}

function needsRoot(context: TestContext): void {
  if (process.getuid?.() !== 0) skipBecause(context, "only root can start a program as another account");
}
