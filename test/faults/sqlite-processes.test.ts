import { once } from "node:events";
import { expect, test } from "vitest";
import { createHeader } from "../../src/session/header.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { entriesOf, makePath, openStore, problemsOf, rowsOf, runProgram, start } from "./sqlite-support.ts";

const KILLS = 200;

test("keeps all entries of two processes that append 5,000 times each, in one order on one path", async () => {
  const path = await makePath();
  const store = await openStore(path);
  await store.create(createHeader({ id: "shared" }));
  const writers = ["left", "right"].map((tag) => start("sqlite-append.mjs", [path, "shared", tag, "5000"]));
  let running = true;
  const ended = Promise.all(writers.map((writer) => writer.ended)).then(() => {
    running = false;
  });
  // Meanwhile others look at the session in ways that keep books of their own.
  while (running) {
    await store.list();
    await store.search("left-40");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await ended;
  const entries = await entriesOf(store, "shared");
  const acknowledged = writers.flatMap((writer) => writer.lines());
  expect(acknowledged).toHaveLength(2 * (4000 + 3 * 1000));
  expect(entries.map(({ id }) => id).sort()).toEqual(acknowledged.sort());
  let leaf: string | null = null;
  for (const [seq, entry] of entries.entries()) {
    expect([entry.seq, entry.parentId]).toEqual([seq, leaf]);
    if (entry.type === "message") leaf = entry.id;
  }
  await checkHeadIsFold(store, "shared");
  const head = await store.head("shared");
  expect((await store.list({ status: head?.status ?? "active" })).items).toEqual([head]);
  expect((await store.search("right-4998")).map((hit) => hit.matches.map(({ entryId }) => entryId))).toEqual([
    ["right-4998"],
  ]);
  expect(problemsOf(path)).toEqual([]);
}, 120_000);

test.each(["flush", "fsync"])(
  `finds every acknowledged entry after ${KILLS / 2} kills at random moments, with durability %s`,
  async (durability) => {
    const path = await makePath();
    const store = await openStore(path);
    let [killed, stored] = [0, 0];
    for (; killed < KILLS / 2; killed++) {
      const id = `kill-${killed}`;
      const { child, lines, ended } = start("sqlite-append.mjs", [path, id, id, "1000000", durability]);
      await once(child.stdout as NonNullable<typeof child.stdout>, "data");
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 25));
      child.kill("SIGKILL");
      await ended;
      const entries = await entriesOf(store, id);
      const ids = new Set(entries.map((entry) => entry.id));
      expect(lines().filter((line) => !ids.has(line))).toEqual([]);
      // Of three entries that go together, there are three or none.
      const parts = entries.filter((entry) => entry.id.includes("/"));
      expect(parts.map((entry) => entry.id.split("/")[1]).join("")).toMatch(/^(?:123)*$/);
      await checkHeadIsFold(store, id);
      const head = await store.head(id);
      expect((await store.list({ status: head?.status ?? "active" })).items).toContainEqual(head);
      stored += entries.length;
    }
    expect(stored).toBeGreaterThan(KILLS);
    expect(problemsOf(path)).toEqual([]);
  },
  300_000,
);

test("lets eight processes open a database that none of them finds there", async () => {
  for (let round = 0; round < 3; round++) {
    const path = await makePath();
    const time = String(Date.now() + 1500);
    const names = Array.from({ length: 8 }, (_, index) => `p${index}`);
    const said = await Promise.all(names.map((name) => runProgram("sqlite-open.mjs", [path, name, time])));
    expect(said).toEqual(names.map(() => ["done"]));
    const store = await openStore(path);
    expect((await store.list()).items.map(({ header, version }) => `${header.id} ${version}`).sort()).toEqual(
      names.map((name) => `${name} 1`),
    );
    expect(rowsOf(path, "PRAGMA user_version")).toEqual([{ user_version: 1 }]);
    expect(problemsOf(path)).toEqual([]);
  }
}, 60_000);

test("lets one process run a session at a time, and the one that took over writes", async () => {
  const path = await makePath();
  const [first, second] = [await openStore(path), await openStore(path)];
  await first.create(createHeader({ id: "a" }));
  const lease = await first.lease("a", "run-1", 60_000);
  await expect(second.lease("a", "run-2", 60_000)).rejects.toMatchObject({ code: "SESSION_BUSY" });
  const draft = { type: "custom", customType: "t" } as const;
  await first.append("a", [draft], { guard: { leaseToken: lease.token } });
  await lease.release();
  const taken = await second.lease("a", "run-2", 60_000);
  expect(taken.token).toBeGreaterThan(lease.token);
  // The first still has the head in memory, and the statement that would write must find the lease gone.
  await expect(first.append("a", [draft], { guard: { leaseToken: lease.token } })).rejects.toMatchObject({
    code: "LEASE_LOST",
  });
  await second.append("a", [draft], { guard: { leaseToken: taken.token } });
  expect((await first.head("a"))?.version).toBe(2);
});
