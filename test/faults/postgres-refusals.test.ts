import { execFileSync } from "node:child_process";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import postgres from "postgres";
import { expect, onTestFinished, test } from "vitest";
import { createHeader } from "../../src/session/log/header.ts";
import { openStore as openByUrl } from "../../src/stores/open-store.ts";
import { openPostgresStore } from "../../src/stores/postgres/index.ts";
import { postgresUrl } from "../postgres-server.ts";
import { newSchema, openPool, openStore, rowsOf, urlWith } from "./postgres-support.ts";
import { entriesOf, message, refusalOf } from "./store-support.ts";

const SECRET = "s3cret-p4ssword";

test.for([
  ["a wrong password", /refused the password; check the user and the password/, { password: SECRET }],
  ["an unknown user", /refused the (?:password|user); check the user/, { username: "stranger", password: SECRET }],
  [
    "a missing database",
    /\/nowhere does not exist; create it, or name another one in the URL/,
    { pathname: "/nowhere" },
  ],
] as const)("says what to do about %s, and shows no password", async ([, words, change]) => {
  const url = await urlWith((each) => Object.assign(each, change));
  const refusal = await refusalOf(openByUrl(url));
  expect(refusal.code).toBe("STORE_FAILED");
  expect(refusal.message).toMatch(words);
  expect(refusal.message).toMatch(/^The PostgreSQL database [\w.]+:\d+\/\w+ [^.]+\.$/);
  const { password } = new URL(await postgresUrl());
  for (const secret of [SECRET, decodeURIComponent(password)]) expect(refusal.message).not.toContain(secret);
});

test("reports immediately that a missing server cannot be reached", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`]) {
    const refusal = await refusalOf(openPostgresStore({ url: `postgres://me:${SECRET}@${host}/db` }));
    expect(refusal).toMatchObject({ code: "STORE_FAILED" });
    expect(refusal.message).toMatch(/cannot be reached; check the host and the port of the URL/);
    expect(refusal.message).not.toContain(SECRET);
  }
  const pool = openPool(`postgres://me:${SECRET}@127.0.0.1:${port}/db`);
  const refusal = await refusalOf(openPostgresStore({ sql: pool }));
  expect(refusal.message).toBe(
    `The PostgreSQL database 127.0.0.1:${port}/db cannot be reached; check the host and the port of the URL, and that the server runs.`,
  );
});

test.for([
  [{}],
  [null],
  [{ url: "postgres://h/d", sql: {} }],
  [{ url: "http://h/d" }],
  [{ url: `postgres://me:${SECRET}@ho st/d` }],
  [{ url: 5 }],
  [{ sql: {} }],
  [{ sql: postgres("postgres://127.0.0.1/x", { transform: postgres.camel }) }],
  [{ sql: new pg.Pool(), statementTimeoutMs: 5 }],
  [{ url: "postgres://h/d", schema: 'x"; DROP SCHEMA y' }],
  [{ url: "postgres://h/d", schema: "Skein" }],
  [{ url: "postgres://h/d", schema: "pg_skein" }],
  [{ url: "postgres://h/d", schema: "s".repeat(49) }],
  [{ url: "postgres://h/d", statementTimeoutMs: -1 }],
  [{ url: "postgres://h/d", connectionsMax: 0 }],
  [{ url: "postgres://h/d", prepare: "no" }],
  [{ url: "postgres://h/d", watch: "never" }],
  [{ url: "postgres://h/d", clock: 1 }],
])("refuses invalid options (%#), and shows no password", async ([options]) => {
  const refusal = await refusalOf(openPostgresStore(options as never));
  expect(refusal.code).toBe("INVALID_OPTION");
  expect(refusal.message).not.toContain(SECRET);
});

test("refuses a schema of a later version, and leaves it unchanged", async () => {
  const [url, schema] = [await postgresUrl(), newSchema()];
  await (await openPostgresStore({ url, schema })).close();
  await rowsOf(`UPDATE ${schema}.skein_schema SET version = 99`);
  const refusal = await refusalOf(openPostgresStore({ url, schema }));
  expect(refusal.code).toBe("UNSUPPORTED_VERSION");
  expect(refusal.message).toMatch(/has version 99; this version of skein knows \d+, so update skein to open it/);
  expect(await rowsOf(`SELECT version FROM ${schema}.skein_schema`)).toEqual([{ version: 99 }]);
});

test("refuses the schema of another program, and leaves it unchanged; uses an empty schema", async () => {
  const [url, schema] = [await postgresUrl(), newSchema()];
  await rowsOf(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.theirs (id int)`);
  const refusal = await refusalOf(openPostgresStore({ url, schema }));
  expect(refusal).toMatchObject({ code: "STORE_FAILED" });
  expect(refusal.message).toMatch(/belongs to another program; choose a separate schema/);
  expect(await rowsOf(`SELECT tablename FROM pg_tables WHERE schemaname = '${schema}'`)).toEqual([
    { tablename: "theirs" },
  ]);
  await rowsOf(`DROP TABLE ${schema}.theirs`);
  const store = await openStore({ url, schema });
  expect(await store.count()).toBe(0);
});

test("reads a read-only database, refuses writes, and does not open one without a store", async () => {
  const schema = newSchema();
  const store = await openStore({ url: await postgresUrl(), schema });
  await store.create(createHeader({ id: "a" }));
  await store.append("a", [message]);
  const url = await urlWith((each) => each.searchParams.set("default_transaction_read_only", "on"));
  const reader = await openStore({ url, schema });
  expect((await reader.head("a"))?.version).toBe(1);
  expect(await entriesOf(reader, "a")).toHaveLength(1);
  expect((await reader.list()).items).toHaveLength(1);
  expect(await reader.search("hello")).toHaveLength(1);
  for (const call of [
    () => reader.append("a", [message]),
    () => reader.create(createHeader({ id: "b" })),
    () => reader.fork("a", createHeader({ id: "c" })),
    () => reader.delete("a"),
    () => reader.lease("a", "run", 1000),
  ]) {
    const refusal = await refusalOf(call());
    expect(refusal.code).toBe("READ_ONLY");
    expect(refusal.message).toMatch(/is read-only; connect to one that accepts writes\.$/);
  }
  expect((await store.head("a"))?.version).toBe(1);
  const watching = reader.watch("a", { after: -1 })[Symbol.asyncIterator]();
  expect((await watching.next()).done).toBe(false);
  await watching.return?.();
  await expect(openPostgresStore({ url, schema: newSchema() })).rejects.toMatchObject({ code: "READ_ONLY" });
});

test("cancels a statement after the timeout, with a hint in the message, and works afterwards", async () => {
  const [url, schema] = [await postgresUrl(), newSchema()];
  const store = await openStore({ url, schema, statementTimeoutMs: 200 });
  await store.create(createHeader({ id: "a" }));
  await store.append("a", [message]);
  const blocker = postgres(url, { max: 1 });
  onTestFinished(() => blocker.end());
  await blocker.begin(async (sql) => {
    await sql.unsafe(`SELECT * FROM ${schema}.heads FOR UPDATE`);
    const refusal = await refusalOf(store.append("a", [message]));
    expect(refusal).toMatchObject({ code: "STORE_FAILED" });
    expect(refusal.message).toMatch(/took longer than the statement timeout allows/);
  });
  await store.append("a", [message]);
  expect((await store.head("a"))?.version).toBe(2);
});

test("reports missing rights, and works in a schema that was created for its user", async () => {
  const [schema, user] = [newSchema(), newSchema()];
  const { pathname } = new URL(await postgresUrl());
  await rowsOf(`CREATE ROLE ${user} LOGIN PASSWORD '${SECRET}'`);
  onTestFinished(async () => {
    await rowsOf(`DROP SCHEMA IF EXISTS ${schema} CASCADE; DROP ROLE ${user}`);
  });
  const url = await urlWith((each) => Object.assign(each, { username: user, password: SECRET, pathname }));
  const refusal = await refusalOf(openPostgresStore({ url, schema }));
  expect(refusal).toMatchObject({ code: "STORE_FAILED" });
  expect(refusal.message).toMatch(/does not allow this user to do that/);
  expect(refusal.message).not.toContain(SECRET);
  await rowsOf(`CREATE SCHEMA ${schema} AUTHORIZATION ${user}`);
  const store = await openPostgresStore({ url, schema });
  await store.create(createHeader({ id: "a" }));
  await store.append("a", [message]);
  await store.close();
});

test("refuses a database whose encoding cannot hold every text", async () => {
  const name = newSchema();
  await rowsOf(`CREATE DATABASE ${name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`);
  onTestFinished(async () => {
    await rowsOf(`DROP DATABASE ${name} WITH (FORCE)`);
  });
  const refusal = await refusalOf(openPostgresStore({ url: await urlWith((each) => (each.pathname = `/${name}`)) }));
  expect(refusal).toMatchObject({ code: "STORE_FAILED" });
  expect(refusal.message).toMatch(/has the encoding LATIN1; skein needs one with the encoding UTF8/);
});

test("shares a client with the caller and never closes it", async () => {
  const [url, schema] = [await postgresUrl(), newSchema()];
  const sql = postgres(url, { max: 2, onnotice: () => {} });
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const pool = openPool(url);
  for (const handle of [sql, client, pool]) {
    const store = await openPostgresStore({ sql: handle, schema });
    const id = `s${Math.random().toString(36).slice(2)}`;
    await store.create(createHeader({ id }));
    const watching = store.watch(id)[Symbol.asyncIterator]();
    const next = watching.next();
    await Promise.all(Array.from({ length: 20 }, () => store.append(id, [message])));
    expect((await next).value).toMatchObject({ seq: 0 });
    await watching.return?.();
    expect(await entriesOf(store, id)).toHaveLength(20);
    await store.close();
  }
  expect(await sql.unsafe("SELECT 1 AS one")).toHaveLength(1);
  expect((await client.query("SELECT 1 AS one")).rows).toHaveLength(1);
  expect((await pool.query("SELECT 1 AS one")).rows).toHaveLength(1);
  await sql.end();
  await client.end();
});

test("leaves no prepared statements, listeners or locks on connections with prepare: false, as a pooling proxy requires", async () => {
  const [url, schema] = [await postgresUrl(), newSchema()];
  const pool = openPool(url);
  const store = await openStore({ sql: pool, schema, prepare: false, watch: "poll" });
  expect(store.capabilities.watch).toBe("poll");
  await store.create(createHeader({ id: "a" }));
  const other = await openStore({ sql: pool, schema, prepare: false, watch: "poll" });
  const watching = store.watch("a")[Symbol.asyncIterator]();
  const next = watching.next();
  await store.head("a");
  for (let i = 0; i < 5; i++) await other.append("a", [message]);
  expect((await next).done).toBe(false);
  await watching.return?.();
  await store.search("hello");
  await store.fork("a", createHeader({ id: "b" }));
  const clients = await Promise.all([1, 2, 3, 4, 5].map(() => pool.connect()));
  for (const client of clients) {
    expect((await client.query("SELECT name FROM pg_prepared_statements")).rows).toEqual([]);
    expect((await client.query("SELECT pg_listening_channels()")).rows).toEqual([]);
    expect(
      (await client.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()")).rows,
    ).toEqual([]);
    client.release();
  }
});

test("names the package to install if no client is installed", async () => {
  const directory = await mkdtemp(join(tmpdir(), "skein-postgres-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  // A copy of the package in a directory without other packages.
  await cp(fileURLToPath(new URL("../../dist", import.meta.url)), join(directory, "dist"), { recursive: true });
  await writeFile(join(directory, "package.json"), '{ "type": "module" }');
  const script = `const { openPostgresStore } = await import("./dist/stores/postgres/index.js");
    await openPostgresStore({ url: "postgres://h/d" }).catch(({ code, message }) => console.log(code, message))`;
  const said = execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: directory }).toString();
  expect(said).toMatch(
    /^DRIVER_MISSING .*install the package postgres, version 3\.4 or later, or pass a pool of the package pg/,
  );
});
