import { expect, test } from "vitest";
import { createHeader } from "../../src/session/log/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { postgresUrl } from "../postgres-server.ts";
import { newSchema, openPool, openStore, rowsOf } from "./postgres-support.ts";
import { askAll, start } from "./program-support.ts";
import { entriesOf, message, refusalOf } from "./store-support.ts";
import { expectCounted, expectKept, writeTogether } from "./writers-support.ts";

const KILLS = 5;

test("stores all entries of four processes that append 250 times each, in one order on one path", async () => {
  const url = await postgresUrl();
  const store = await openStore({ url });
  // Meanwhile, listing and searching update `sessions` and the search index concurrently.
  const last = await writeTogether(url, { processes: 4, appends: 250 }, async () => {
    await store.list();
    await store.search("w0.0-40");
  });
  const found = (await store.search(last)).map((hit) => hit.matches.map(({ entryId }) => entryId));
  expect(found).toEqual([[last]]);
});

test("refuses an append to an outdated version with CONFLICT, and a retry loop in four processes counts correctly", async () => {
  const url = await postgresUrl();
  const store = await openStore({ url });
  await store.create(createHeader({ id: "counted" }));
  await expectCounted(url, store, 50);
});

test(`finds every acknowledged entry after ${KILLS} kills at random moments`, () =>
  expectKept("writers", "postgres", KILLS));

test("four processes can open a store at the same time in a database without its schema", async () => {
  const url = await postgresUrl();
  const names = ["p0", "p1", "p2", "p3"];
  const programs = names.map((name) => start("open.mjs", [name]));
  for (let round = 0; round < 4; round++) {
    const schema = newSchema();
    expect(await askAll(programs, `${url}#${schema}`)).toEqual(names.map(() => ["done"]));
    const store = await openStore({ url, schema });
    expect((await store.list()).items.map(({ header, version }) => `${header.id} ${version}`).sort()).toEqual(
      names.map((name) => `${name} 1`),
    );
    expect(await rowsOf(`SELECT version FROM ${schema}.skein_schema`)).toEqual([{ version: expect.any(Number) }]);
  }
});

test("returns null for a session that is purged while it is read, instead of failing", async () => {
  const [url, schema] = [await postgresUrl(), newSchema()];
  const store = await openStore({ url, schema });
  let beforeRows = async (): Promise<void> => {};
  const pool = openPool(url);
  const connect = pool.connect.bind(pool);
  // Delays the statement that reads the rows of the head, which follows the one that finds the session.
  pool.connect = ((callback: Parameters<typeof connect>[0]) =>
    connect((error, client, done) => {
      if (client === undefined) return callback(error, client, done);
      const slow = Object.create(client, {
        query: {
          value: async (query: { text: string }) => {
            if (query.text.includes("AS wanted (key bigint")) await beforeRows();
            return client.query(query);
          },
        },
      });
      callback(error, slow, done);
    })) as typeof pool.connect;
  for (const read of [
    async (slow: SessionStore) => slow.head("a"),
    async (slow: SessionStore) => (await slow.list()).items[0] ?? null,
  ]) {
    await store.create(createHeader({ id: "a" }), { entries: [message] });
    const slow = await openStore({ sql: pool, schema });
    beforeRows = async () => {
      await store.delete("a");
      await store.purge("9999-12-31T23:59:59.999Z");
    };
    expect(await read(slow)).toBeNull();
  }
});

test("gives the lease of a session to one process at a time, and only its holder can append with it", async () => {
  const options = { url: await postgresUrl(), schema: newSchema() };
  const [first, second] = [await openStore(options), await openStore(options)];
  await first.create(createHeader({ id: "a" }));
  const lease = await first.lease("a", "run-1", 60_000);
  await expect(second.lease("a", "run-2", 60_000)).rejects.toMatchObject({ code: "SESSION_BUSY" });
  await first.append("a", [message], { guard: { leaseToken: lease.token } });
  await lease.release();
  const taken = await second.lease("a", "run-2", 60_000);
  expect(taken.token).toBeGreaterThan(lease.token);
  // The first store has the head in its cache, so the statement that appends must check the lease.
  const late = first.append("a", [message], { guard: { leaseToken: lease.token } });
  await expect(late).rejects.toMatchObject({ code: "LEASE_LOST" });
  await second.append("a", [message], { guard: { leaseToken: taken.token } });
  expect((await first.head("a"))?.version).toBe(2);
});

test("writes nothing with a lease that another process acquires while the append waits for a lock", async () => {
  const options = { url: await postgresUrl(), schema: newSchema() };
  const [first, second] = [await openStore(options), await openStore(options)];
  await first.create(createHeader({ id: "a" }));
  await first.append("a", [message]);
  for (let round = 0; round < 20; round++) {
    const lease = await first.lease("a", `old-${round}`, 60_000);
    const takeOver = lease.release().then(() => second.lease("a", `new-${round}`, 60_000));
    const draft = { ...message, id: `late-${round}` };
    const outcome = refusalOf(first.append("a", [draft], { guard: { leaseToken: lease.token } }));
    const taken = await takeOver;
    // Once the new holder has the lease, the old holder must not write any more.
    const version = (await second.head("a"))?.version;
    const { code } = await outcome;
    expect(["done", "LEASE_LOST"]).toContain(code);
    expect((await second.head("a"))?.version).toBe(version);
    expect((await second.getEntry("a", draft.id)) !== null).toBe(code === "done");
    await taken.release();
  }
});

test("creates no more open sessions than the limit of a user, through several stores concurrently", async () => {
  const options = { url: await postgresUrl(), schema: newSchema() };
  const stores = await Promise.all([1, 2, 3].map(() => openStore(options)));
  const results = await Promise.all(
    Array.from({ length: 12 }, (_, i) =>
      refusalOf((stores[i % 3] as SessionStore).create(createHeader({ userId: "u" }), { maxOpenPerUser: 3 })),
    ),
  );
  expect(results.filter(({ code }) => code === undefined || code === "done")).toHaveLength(3);
  expect(results.filter(({ code }) => code === "CAPACITY")).toHaveLength(9);
  expect(await stores[0]?.count({ userId: "u" })).toBe(3);
});

test("keeps the entries that a fork inherits, whenever its source is purged concurrently", async () => {
  const options = { url: await postgresUrl(), schema: newSchema() };
  const [one, other] = [await openStore(options), await openStore(options)];
  let forked = 0;
  for (let round = 0; round < 40; round++) {
    const [source, fork] = [`source-${round}`, `fork-${round}`];
    await one.create(createHeader({ id: source }), { entries: Array.from({ length: 5 }, () => message) });
    const remove = async (): Promise<void> => {
      await other.delete(source);
      await other.purge("9999-01-01T00:00:00.000Z");
    };
    const [{ code }] = await Promise.all([refusalOf(one.fork(source, createHeader({ id: fork }))), remove()]);
    expect(["done", "SESSION_NOT_FOUND"]).toContain(code);
    if (code !== "done") continue;
    forked += 1;
    expect(await entriesOf(other, fork)).toHaveLength(5);
    await checkHeadIsFold(other, fork);
  }
  expect(forked).toBeGreaterThan(0);
  // All other entries are deleted, as no fork needs them.
  const [left] = await rowsOf(`SELECT count(*)::int AS entries FROM ${options.schema}.entries`);
  expect(left).toEqual({ entries: forked * 5 });
});
