import { expect } from "vitest";
import { createHeader } from "../../src/session/log/header.ts";
import { redisUrl } from "../redis-server.ts";
import { newPrefix, openStore, ownServerTest, redisTest } from "./redis-support.ts";
import { askAll, start } from "./program-support.ts";
import { message, refusalOf } from "./store-support.ts";
import { expectCounted, expectKept, writeTogether } from "./writers-support.ts";

const KILLS = 5;

redisTest("stores all entries of four processes that append 250 times each, in one order on one path", async () => {
  const [url, prefix] = [await redisUrl(), newPrefix()];
  const store = await openStore({ url, prefix });
  await store.create(createHeader({ id: "shared" }));
  // Meanwhile, listing and counting update the index concurrently.
  await writeTogether(`${url}#${prefix}`, { processes: 4, appends: 250 }, async () => {
    const [items, count] = [(await store.list()).items, await store.count()];
    expect([items.length, count]).toEqual([1, 1]);
  });
});

redisTest(
  "refuses an append to an outdated version with CONFLICT, and a retry loop in four processes counts correctly",
  async () => {
    const [url, prefix] = [await redisUrl(), newPrefix()];
    const store = await openStore({ url, prefix });
    await store.create(createHeader({ id: "counted" }));
    await expectCounted(`${url}#${prefix}`, store, 50);
  },
);

ownServerTest(`finds every acknowledged entry after ${KILLS} kills at random moments`, () =>
  expectKept("writers", "redis", KILLS),
);

redisTest("four processes together create exactly as many sessions as the limit of a user allows", async () => {
  const [url, prefix] = [await redisUrl(), newPrefix()];
  const store = await openStore({ url, prefix });
  const programs = ["a", "b", "c", "d"].map((tag) => start("create.mjs", [`${url}#${prefix}`, tag, "10"]));
  for (const limit of [3, 7, 20]) {
    const made = (await askAll(programs, String(limit))).flat();
    const { items } = await store.list({ userId: "user:bob" });
    expect(items.map(({ header }) => header.id).sort()).toEqual(made.sort());
    expect([made.length, await store.count({ userId: "user:bob" })]).toEqual([limit, limit]);
    for (const id of made) await store.delete(id);
  }
});

redisTest("gives the lease of a session to one process at a time, and only its holder can append with it", async () => {
  const [url, prefix] = [await redisUrl(), newPrefix()];
  const [first, second] = [await openStore({ url, prefix }), await openStore({ url, prefix })];
  await first.create(createHeader({ id: "a" }));
  const lease = await first.lease("a", "run-1", 60_000);
  expect(await refusalOf(second.lease("a", "run-2", 60_000))).toMatchObject({ code: "SESSION_BUSY" });
  await first.append("a", [message], { guard: { leaseToken: lease.token } });
  await lease.release();
  const taken = await second.lease("a", "run-2", 60_000);
  expect(taken.token).toBeGreaterThan(lease.token);
  // The first store has the head in its cache, so the script that appends must check the lease.
  expect(await refusalOf(first.append("a", [message], { guard: { leaseToken: lease.token } }))).toMatchObject({
    code: "LEASE_LOST",
  });
  await second.append("a", [message], { guard: { leaseToken: taken.token } });
  expect((await first.head("a"))?.version).toBe(2);
});
