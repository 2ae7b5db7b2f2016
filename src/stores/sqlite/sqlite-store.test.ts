import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import Database from "libsql";
import { expect, onTestFinished, test } from "vitest";
import { skipBecause } from "../../../test/skip.ts";
import { createHeader } from "../../session/log/header.ts";
import { type SqliteDatabase, SqliteHandle } from "./sqlite-handle.ts";
import { openSqliteStore } from "./sqlite-store.ts";

async function makeDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "skein-sqlite-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

test("refuses a file in a missing directory, and creates the directory with `create`", async () => {
  const path = join(await makeDirectory(), "some", "where", "skein.db");
  await expect(openSqliteStore({ path })).rejects.toMatchObject({
    code: "INVALID_OPTION",
    message: expect.stringContaining("let --create make it (in code, create: true)"),
  });
  expect(existsSync(dirname(dirname(path)))).toBe(false);
  await using store = await openSqliteStore({ path, create: true });
  await store.create(createHeader({ id: "a" }));
  expect(existsSync(path)).toBe(true);
});

test("reports a file as durable and shared, and a database in memory as neither", async () => {
  await using memory = await openSqliteStore({ path: ":memory:", driver: "libsql" });
  expect(memory.capabilities).toMatchObject({ durable: false, shared: false, forkByReference: true, search: "index" });
  await memory.create(createHeader({ id: "a" }));
  expect(await memory.count()).toBe(1);
  const path = join(await makeDirectory(), "skein.db");
  await using file = await openSqliteStore({ path, driver: "libsql" });
  expect(file.capabilities).toEqual({
    durable: true,
    shared: true,
    forkByReference: true,
    search: "index",
    watch: "poll",
    lease: "shared",
    ledger: true,
    blobs: true,
    path,
  });
});

test.each([
  [{ path: "" }],
  [{ path: "a\0b" }],
  [{ path: ":memory:", driver: "sqlite3" }],
  [{ path: ":memory:", durability: "none" }],
  [{ path: ":memory:", clock: 1 }],
  [null],
])("refuses the options %j", async (options) => {
  await expect(openSqliteStore(options as never)).rejects.toMatchObject({ code: "INVALID_OPTION" });
});

test("says what to do if the chosen driver is missing", async (running) => {
  if (process.getBuiltinModule?.("node:sqlite") !== undefined)
    skipBecause(running, "this version of Node has the driver");
  const opening = openSqliteStore({ path: ":memory:", driver: "node:sqlite" });
  await expect(opening).rejects.toMatchObject({ code: "DRIVER_MISSING" });
  await expect(opening).rejects.toThrow(/Node 22\.13 or later, or install the package libsql/);
});

test("works on a connection of the caller, and leaves it open", async () => {
  const database = new Database(":memory:") as unknown as SqliteDatabase;
  const store = await openSqliteStore({ path: ":memory:", database });
  await store.create(createHeader({ id: "a" }));
  await store.close();
  expect(database.prepare("SELECT id FROM sessions").all()).toMatchObject([{ id: "a" }]);
  // Another store on the same connection finds the session, with its own statements.
  await using again = await openSqliteStore({ path: ":memory:", database });
  expect((await again.head("a"))?.version).toBe(0);
});

test("refuses to bind anything but strings, numbers, bytes and null, which could abort the process in a driver", () => {
  const handle = new SqliteHandle(new Database(":memory:") as unknown as SqliteDatabase, "test", true);
  const sql = "SELECT ? AS value, ? AS other";
  for (const value of [true, undefined, new Date(), new ArrayBuffer(1), {}, Symbol("s")]) {
    expect(() => handle.row(sql, [value as never, 1])).toThrow(TypeError);
  }
  expect(handle.row(sql, [null, "x"])).toMatchObject({ value: null, other: "x" });
  expect(handle.row("SELECT ? AS other, hex(?) AS value", [1, Buffer.from("xyz").subarray(1)])).toMatchObject({
    value: "797A",
  });
  expect(() => handle.row("SELECT ? AS value", [Buffer.from("x")])).toThrow(TypeError);
});

test("returns the row for the values given, also after the same statement was read with other values", () => {
  const handle = new SqliteHandle(new Database(":memory:") as unknown as SqliteDatabase, "test", true);
  const sql = "SELECT ? AS value";
  expect(handle.rows(sql, [1])).toMatchObject([{ value: 1 }]);
  expect(handle.row(sql, [2])).toMatchObject({ value: 2 });
  expect(handle.rows(sql, [3])).toMatchObject([{ value: 3 }]);
});

test("leaves a complete file after closing, without the write-ahead log", async () => {
  const path = join(await makeDirectory(), "skein.db");
  const store = await openSqliteStore({ path });
  await store.create(createHeader({ id: "a" }));
  await store.append("a", [{ type: "custom", customType: "t" }]);
  await store.close();
  await rm(`${path}-wal`, { force: true });
  await rm(`${path}-shm`, { force: true });
  await using again = await openSqliteStore({ path });
  expect((await again.head("a"))?.version).toBe(1);
});

/** The open files of this process in a directory. */
function openFiles(directory: string): string[] {
  const linkOf = (descriptor: string): string[] => {
    try {
      return [readlinkSync(`/proc/self/fd/${descriptor}`)];
    } catch {
      return []; // The descriptor with which the directory was listed is closed by now.
    }
  };
  return readdirSync("/proc/self/fd")
    .flatMap(linkOf)
    .filter((path) => path.startsWith(directory));
}

test("leaves no file open after closing and garbage collection, even if the store is still referenced", async (running) => {
  if (!existsSync("/proc/self/fd")) skipBecause(running, "this system does not list open files");
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  const directory = await makeDirectory();
  const closed = [];
  for (let index = 0; index < 20; index++) {
    const store = await openSqliteStore({ path: join(directory, `${index}.db`), driver: "libsql" });
    await store.create(createHeader({ id: "a" }));
    await store.append("a", [{ type: "custom", customType: "t" }]);
    await store.list();
    await store.close();
    closed.push(store);
  }
  await expect
    .poll(() => {
      collectGarbage();
      return openFiles(directory);
    })
    .toEqual([]);
  await expect(closed[0]?.head("a")).rejects.toMatchObject({ code: "STORE_CLOSED" });
});

test("retries if other processes switch to the write-ahead log at the same moment", async () => {
  const database = new Database(join(await makeDirectory(), "skein.db"));
  let refused = 0;
  const exec = (sql: string): unknown => {
    if (sql.includes("journal_mode") && refused++ < 3)
      throw Object.assign(new Error("locked"), { code: "SQLITE_BUSY" });
    return database.exec(sql);
  };
  const prepare = database.prepare.bind(database) as unknown as SqliteDatabase["prepare"];
  const close = (): unknown => database.close();
  const store = await openSqliteStore({ path: "skein.db", database: { prepare, exec, close } });
  await store.create(createHeader({ id: "a" }));
  expect(refused).toBe(4);
  await store.close();
  database.close();
});

test("opens a database of the first schema, and keeps a lease without a process until it expires", async () => {
  const path = join(await makeDirectory(), "skein.db");
  await cp(new URL("../../../test/golden/v1/store.db", import.meta.url), path);
  const database = new Database(path);
  database.exec("ALTER TABLE leases DROP COLUMN holder; PRAGMA user_version = 1");
  database
    .prepare(
      "INSERT INTO leases (session_key, run_id, expires_ms) SELECT key, 'run-1', ? FROM sessions WHERE id = 'plain'",
    )
    .run(Date.now() + 60_000);
  database.close();
  await using store = await openSqliteStore({ path });
  expect(await store.leaseOf("plain")).toMatchObject({ runId: "run-1" });
  for (const runId of ["run-1", "run-2"])
    await expect(store.lease("plain", runId, 60_000)).rejects.toMatchObject({ code: "SESSION_BUSY" });
});
