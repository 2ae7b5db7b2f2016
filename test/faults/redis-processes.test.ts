import { once } from "node:events";
import { expect } from "vitest";
import { createHeader } from "../../src/session/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { redisUrl } from "../redis-server.ts";
import { entriesOf, message, newPrefix, openStore, redisTest, refusalOf, runProgram, start } from "./redis-support.ts";

const KILLS = 25;

redisTest(
  "keeps all entries of four processes that append 500 times each, in one order on one path",
  async () => {
    const [url, prefix] = [await redisUrl(), newPrefix()];
    const store = await openStore({ url, prefix });
    await store.create(createHeader({ id: "shared" }));
    const writers = ["a", "b", "c", "d"].map((tag) => start("redis-append.mjs", [url, prefix, "shared", tag, "500"]));
    let running = true;
    const ended = Promise.all(writers.map((writer) => writer.ended)).then(() => {
      running = false;
    });
    // Meanwhile others look at the session in ways that keep books of their own.
    while (running) {
      const [items, count] = [(await store.list()).items, await store.count()];
      expect([items.length, count]).toEqual([1, 1]);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await ended;
    const acknowledged = writers.flatMap((writer) => writer.lines());
    expect(acknowledged).toHaveLength(4 * (400 + 3 * 100));
    await checkOnePath(store, "shared", acknowledged);
  },
  240_000,
);

redisTest(
  "refuses whoever is late with a conflict, and a loop that tries again comes to the right sum",
  async () => {
    const [url, prefix] = [await redisUrl(), newPrefix()];
    const store = await openStore({ url, prefix });
    await store.create(createHeader({ id: "counted" }));
    const said = await Promise.all(
      Array.from({ length: 4 }, () => runProgram("redis-count.mjs", [url, prefix, "counted", "100"])),
    );
    const conflicts = said.map((lines) => Number(/^done (\d+)$/.exec(lines[0] ?? "")?.[1]));
    expect(conflicts.every((count) => count >= 0)).toBe(true);
    expect(conflicts.reduce((sum, count) => sum + count)).toBeGreaterThan(0);
    const head = await store.head("counted");
    expect([head?.version, head?.path.settings.variables]).toEqual([400, { count: 400 }]);
    await checkHeadIsFold(store, "counted");
  },
  120_000,
);

redisTest(
  `finds every acknowledged entry after ${KILLS} kills at random moments`,
  async () => {
    const [url, prefix] = [await redisUrl(), newPrefix()];
    const store = await openStore({ url, prefix });
    let stored = 0;
    for (let killed = 0; killed < KILLS; killed++) {
      const id = `kill-${killed}`;
      const { child, lines, ended } = start("redis-append.mjs", [url, prefix, id, id, "1000000"]);
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
      const head = await store.head(id);
      expect((await store.list({ status: head?.status ?? "active" })).items).toContainEqual(head);
      await store.append(id, [message]);
      await checkHeadIsFold(store, id);
      stored += entries.length;
    }
    expect(stored).toBeGreaterThan(KILLS);
    expect(await store.count()).toBe(KILLS);
  },
  240_000,
);

redisTest(
  "lets four processes together make exactly as many sessions as a user may have",
  async () => {
    const [url, prefix] = [await redisUrl(), newPrefix()];
    const store = await openStore({ url, prefix });
    for (const limit of [3, 7, 20]) {
      const time = String(Date.now() + 1500);
      const said = await Promise.all(
        ["a", "b", "c", "d"].map((tag) =>
          runProgram("redis-create.mjs", [url, prefix, `${tag}${limit}`, "10", String(limit), time]),
        ),
      );
      const made = said.flat();
      const { items } = await store.list({ userId: "user:bob" });
      expect(items.map(({ header }) => header.id).sort()).toEqual(made.sort());
      expect([made.length, await store.count({ userId: "user:bob" })]).toEqual([limit, limit]);
      for (const id of made) await store.delete(id);
    }
  },
  120_000,
);

redisTest("lets one process run a session at a time, and the one that took over writes", async () => {
  const [url, prefix] = [await redisUrl(), newPrefix()];
  const [first, second] = [await openStore({ url, prefix }), await openStore({ url, prefix })];
  await first.create(createHeader({ id: "a" }));
  const lease = await first.lease("a", "run-1", 60_000);
  expect(await refusalOf(second.lease("a", "run-2", 60_000))).toMatchObject({ code: "SESSION_BUSY" });
  await first.append("a", [message], { guard: { leaseToken: lease.token } });
  await lease.release();
  const taken = await second.lease("a", "run-2", 60_000);
  expect(taken.token).toBeGreaterThan(lease.token);
  // The first still has the head in memory, and the script that would write must find the lease gone.
  expect(await refusalOf(first.append("a", [message], { guard: { leaseToken: lease.token } }))).toMatchObject({
    code: "LEASE_LOST",
  });
  await second.append("a", [message], { guard: { leaseToken: taken.token } });
  expect((await first.head("a"))?.version).toBe(2);
});

async function checkOnePath(store: SessionStore, id: string, acknowledged: readonly string[]): Promise<void> {
  const entries = await entriesOf(store, id);
  expect(entries.map((entry) => entry.id).sort()).toEqual([...acknowledged].sort());
  let leaf: string | null = null;
  for (const [seq, entry] of entries.entries()) {
    expect([entry.seq, entry.parentId]).toEqual([seq, leaf]);
    if (entry.type === "message") leaf = entry.id;
  }
  await checkHeadIsFold(store, id);
  const head = await store.head(id);
  expect((await store.list({ status: head?.status ?? "active" })).items).toEqual([head]);
}
