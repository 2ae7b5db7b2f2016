import { once } from "node:events";
import { expect, test } from "vitest";
import type { Entry } from "../../src/session/entry.ts";
import { createHeader } from "../../src/session/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { postgresUrl } from "../postgres-server.ts";
import { entriesOf, message, newSchema, openStore, refusalOf, rowsOf, runProgram, start } from "./postgres-support.ts";

const KILLS = 25;

test("keeps all entries of four processes that append 500 times each, in one order on one path", async () => {
  const url = await postgresUrl();
  const store = await openStore({ url });
  await store.create(createHeader({ id: "shared" }));
  const writers = ["a", "b", "c", "d"].map((tag) => start("postgres-append.mjs", [url, "shared", tag, "500"]));
  let running = true;
  const ended = Promise.all(writers.map((writer) => writer.ended)).then(() => {
    running = false;
  });
  // Meanwhile others look at the session in ways that keep books of their own.
  while (running) {
    await store.list();
    await store.search("a-40");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await ended;
  const acknowledged = writers.flatMap((writer) => writer.lines());
  expect(acknowledged).toHaveLength(4 * (400 + 3 * 100));
  await checkOnePath(store, "shared", acknowledged);
  expect((await store.search("d-498")).map((hit) => hit.matches.map(({ entryId }) => entryId))).toEqual([["d-498"]]);
}, 240_000);

test("refuses whoever is late with a conflict, and a loop that tries again comes to the right sum", async () => {
  const url = await postgresUrl();
  const store = await openStore({ url });
  await store.create(createHeader({ id: "counted" }));
  const said = await Promise.all(
    Array.from({ length: 4 }, () => runProgram("postgres-count.mjs", [url, "counted", "50"])),
  );
  const conflicts = said.map((lines) => Number(/^done (\d+)$/.exec(lines[0] ?? "")?.[1]));
  expect(conflicts.every((count) => count >= 0)).toBe(true);
  expect(conflicts.reduce((sum, count) => sum + count)).toBeGreaterThan(0);
  const head = await store.head("counted");
  expect([head?.version, head?.path.settings.variables]).toEqual([200, { count: 200 }]);
  await checkHeadIsFold(store, "counted");
}, 120_000);

test(`finds every acknowledged entry after ${KILLS} kills at random moments`, async () => {
  const url = await postgresUrl();
  const store = await openStore({ url });
  let stored = 0;
  for (let killed = 0; killed < KILLS; killed++) {
    const id = `kill-${killed}`;
    const { child, lines, ended } = start("postgres-append.mjs", [url, id, id, "1000000"]);
    await once(child.stdout as NonNullable<typeof child.stdout>, "data");
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 40));
    child.kill("SIGKILL");
    await ended;
    const entries = await entriesOf(store, id);
    const ids = new Set(entries.map((entry) => entry.id));
    expect(lines().filter((line) => !ids.has(line))).toEqual([]);
    // Of three entries that go together, there are three or none.
    const parts = entries.filter((entry) => entry.id.includes("/"));
    expect(parts.map((entry) => entry.id.split("/")[1]).join("")).toMatch(/^(?:123)*$/);
    // Whoever was killed holds nothing: the next one appends at once.
    await store.append(id, [message]);
    await checkHeadIsFold(store, id);
    const head = await store.head(id);
    expect((await store.list({ status: head?.status ?? "active" })).items).toContainEqual(head);
    stored += entries.length;
  }
  expect(stored).toBeGreaterThan(KILLS);
}, 240_000);

test("lets eight processes open a database that none of them finds there", async () => {
  const url = await postgresUrl();
  for (let round = 0; round < 3; round++) {
    const schema = newSchema();
    const time = String(Date.now() + 2500);
    const names = Array.from({ length: 8 }, (_, index) => `p${index}`);
    const said = await Promise.all(names.map((name) => runProgram("postgres-open.mjs", [url, schema, name, time])));
    expect(said).toEqual(names.map(() => ["done"]));
    const store = await openStore({ url, schema });
    expect((await store.list()).items.map(({ header, version }) => `${header.id} ${version}`).sort()).toEqual(
      names.map((name) => `${name} 1`),
    );
    expect(await rowsOf(`SELECT version FROM ${schema}.skein_schema`)).toEqual([{ version: 1 }]);
  }
}, 120_000);

test("lets one process run a session at a time, and the one that took over writes", async () => {
  const options = { url: await postgresUrl(), schema: newSchema() };
  const [first, second] = [await openStore(options), await openStore(options)];
  await first.create(createHeader({ id: "a" }));
  const lease = await first.lease("a", "run-1", 60_000);
  await expect(second.lease("a", "run-2", 60_000)).rejects.toMatchObject({ code: "SESSION_BUSY" });
  await first.append("a", [message], { guard: { leaseToken: lease.token } });
  await lease.release();
  const taken = await second.lease("a", "run-2", 60_000);
  expect(taken.token).toBeGreaterThan(lease.token);
  // The first still has the head in memory, and the statement that would write must find the lease gone.
  const late = first.append("a", [message], { guard: { leaseToken: lease.token } });
  await expect(late).rejects.toMatchObject({ code: "LEASE_LOST" });
  await second.append("a", [message], { guard: { leaseToken: taken.token } });
  expect((await first.head("a"))?.version).toBe(2);
});

test("writes nothing under a lease that is taken over while the append waits for its turn", async () => {
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
    // Whatever is there once the new holder has its lease is all that the old one will ever write.
    const version = (await second.head("a"))?.version;
    const { code } = await outcome;
    expect(["done", "LEASE_LOST"]).toContain(code);
    expect((await second.head("a"))?.version).toBe(version);
    expect((await second.getEntry("a", draft.id)) !== null).toBe(code === "done");
    await taken.release();
  }
});

test("makes no more sessions than a user may have open, over several stores at once", async () => {
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

test("keeps what a fork takes over, however the purge of its source falls", async () => {
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
  // Nothing else is left: what nobody builds on is gone.
  const [left] = await rowsOf(`SELECT count(*)::int AS entries FROM ${options.schema}.entries`);
  expect(left).toEqual({ entries: forked * 5 });
});

async function checkOnePath(store: SessionStore, id: string, acknowledged: readonly string[]): Promise<void> {
  const entries: Entry[] = await entriesOf(store, id);
  expect(entries.map((entry) => entry.id).sort()).toEqual([...acknowledged].sort());
  let leaf: string | null = null;
  for (const [seq, entry] of entries.entries()) {
    expect([entry.seq, entry.parentId]).toEqual([seq, leaf]);
    if (entry.type === "message") leaf = entry.id;
  }
  await checkHeadIsFold(store, id);
  const head = await store.head(id);
  expect((await store.list({ status: head?.status ?? "active" })).items).toContainEqual(head);
}
