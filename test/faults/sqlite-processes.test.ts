import { expect, test } from "vitest";
import { createHeader } from "../../src/session/log/header.ts";
import { makePath, openStore, problemsOf, rowsOf } from "./sqlite-support.ts";
import { askAll, start } from "./program-support.ts";
import { expectKept, writeTogether } from "./writers-support.ts";

/** `npm run torture` runs for the given time. */
const KILLS = 5;

test("keeps all entries of two processes that append 400 times each, in one order on one path", async () => {
  const path = await makePath();
  const store = await openStore(path);
  // In the meantime, other processes read the session in ways that update their own records.
  const last = await writeTogether(`sqlite:${path}`, { processes: 2, appends: 400 }, async () => {
    await store.list();
    await store.search("w0.0-40");
  });
  const found = (await store.search(last)).map((hit) => hit.matches.map(({ entryId }) => entryId));
  expect(found).toEqual([[last]]);
  expect(problemsOf(path)).toEqual([]);
});

test.for(["sqlite", "sqlite (fsync)"])(
  `finds every acknowledged entry after ${KILLS} kills at random moments, on %s`,
  (store) => expectKept("writers", store, KILLS),
);

test("lets four processes concurrently create a missing database", async () => {
  const names = ["p0", "p1", "p2", "p3"];
  const programs = names.map((name) => start("open.mjs", [name]));
  for (let round = 0; round < 4; round++) {
    const path = await makePath();
    expect(await askAll(programs, `sqlite:${path}`)).toEqual(names.map(() => ["done"]));
    const store = await openStore(path);
    expect((await store.list()).items.map(({ header, version }) => `${header.id} ${version}`).sort()).toEqual(
      names.map((name) => `${name} 1`),
    );
    expect(rowsOf(path, "PRAGMA user_version")).toEqual([{ user_version: expect.any(Number) }]);
    expect(problemsOf(path)).toEqual([]);
  }
});

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
  // The first process still has the head in memory, and the statement that would write must detect that the lease is
  // gone.
  await expect(first.append("a", [draft], { guard: { leaseToken: lease.token } })).rejects.toMatchObject({
    code: "LEASE_LOST",
  });
  await second.append("a", [draft], { guard: { leaseToken: taken.token } });
  expect((await first.head("a"))?.version).toBe(2);
});
