import assert from "node:assert/strict";
import { createHeader } from "../../session/log/header.ts";
import type { SessionQuery, SessionStore } from "../../session/store.ts";
import type { StoreCase } from "../store-case.ts";
import { headOf, listAll, make, refuses } from "./store-checks.ts";
import { name, status, user } from "./drafts.ts";

const FAR = "9999-12-31T23:59:59.999Z";
const OLD = "2001-01-01T00:00:00.000Z";
const CLOCK_TICK_MS = 20;

/** Cases: listings, their filters and their order. */
export const listCases: readonly StoreCase[] = [
  {
    name: "lists sessions by the time of their last message, the latest first",
    async run({ store }) {
      for (const [id, year] of [
        ["b", 2011],
        ["d", 2013],
        ["a", 2010],
        ["c", 2012],
      ] as const)
        await makeAt(store, id, year);
      assert.deepEqual(await listAll(store), ["d", "c", "b", "a"]);
      await store.append("a", [user("x", { timestamp: "2020-01-01T00:00:00.000Z" })]);
      await store.append("b", [name("not a message")]);
      assert.deepEqual(await listAll(store), ["a", "d", "c", "b"]);
      const { items, next, damaged } = await store.list();
      assert.deepEqual(items[0], await store.head("a"));
      assert.deepEqual([next, damaged], [null, []]);
    },
  },
  {
    name: "lists nothing in a store without sessions",
    async run({ store }) {
      assert.deepEqual(await store.list(), { items: [], next: null, damaged: [] });
      assert.equal(await store.count(), 0);
    },
  },
  {
    name: "pages of a listing are complete and do not overlap, also if many times are equal",
    async run({ store }) {
      const expected: string[] = [];
      for (let i = 0; i < 23; i++) {
        const id = `s${String(i).padStart(2, "0")}`;
        await makeAt(store, id, i < 15 ? 2011 : 2010);
        expected.push(id);
      }
      for (const limit of [1, 2, 7, 22, 23, 24, 1000]) {
        const ids = await listAll(store, { limit });
        assert.deepEqual([...ids].sort(), expected, `in pages of ${limit}`);
        assert.deepEqual(ids, await listAll(store), `the order in pages of ${limit}`);
      }
      const page = await store.list({ limit: 23 });
      assert.deepEqual([page.items.length, page.next], [23, null]);
    },
  },
  {
    name: "a cursor continues a listing at its position while sessions are created and deleted",
    async run({ store }) {
      for (let year = 2010; year < 2020; year++) await makeAt(store, `s${year}`, year);
      const first = await store.list({ limit: 4 });
      assert.ok(first.next !== null);
      await store.delete("s2016");
      await makeAt(store, "newest", 2030);
      const second = await store.list({ limit: 4, cursor: first.next });
      assert.deepEqual(
        second.items.map(({ header }) => header.id),
        ["s2015", "s2014", "s2013", "s2012"],
      );
    },
  },
  {
    name: "lists a hundred sessions by default",
    async run({ store }) {
      await Promise.all(Array.from({ length: 101 }, (_, i) => make(store, `s${i}`)));
      const page = await store.list();
      assert.equal(page.items.length, 100);
      assert.equal((await store.list({ cursor: page.next as string })).items.length, 1);
    },
  },
  {
    name: "lists and counts by user, directory, status and parent, and by all of them together",
    async run({ store }) {
      await make(store, "p", { userId: "u", cwd: "/one" });
      await make(store, "q", { userId: "u", cwd: "/two" });
      await make(store, "r", { userId: "v", cwd: "/one" });
      await make(store, "s");
      await make(store, "t", {
        userId: "u",
        lineage: { parents: ["r", "s"], operator: "merge", kind: "op_merge", extras: [] },
      });
      await store.fork("p", createHeader({ id: "f", userId: "u", cwd: "/one" }));
      await store.append("q", [status("suspended")]);
      await store.append("r", [status("closed")]);
      await store.append("s", [status("expired")]);
      const expected: readonly (readonly [SessionQuery, string])[] = [
        [{}, "f p q r s t"],
        [{ userId: "u" }, "f p q t"],
        [{ userId: "nobody" }, ""],
        [{ cwd: "/one" }, "f p r"],
        [{ cwd: "/o" }, ""],
        [{ status: "active" }, "f p t"],
        [{ status: "suspended" }, "q"],
        [{ status: ["closed", "expired"] }, "r s"],
        [{ parentId: "p" }, "f"],
        [{ parentId: "r" }, "t"],
        [{ parentId: "s" }, "t"],
        [{ parentId: "nowhere" }, ""],
        [{ userId: "u", cwd: "/one", status: "active", parentId: "p" }, "f"],
        [{ userId: "v", cwd: "/one", status: "active" }, ""],
      ];
      for (const [query, ids] of expected) {
        const list = ids === "" ? [] : ids.split(" ");
        assert.deepEqual((await listAll(store, query)).sort(), list, JSON.stringify(query));
        assert.deepEqual(
          (await listAll(store, { ...query, limit: 1 })).sort(),
          list,
          `${JSON.stringify(query)} one by one`,
        );
        assert.equal(await store.count(query), list.length, `count of ${JSON.stringify(query)}`);
      }
    },
  },
  {
    name: "count ignores the limit of a query",
    async run({ store }) {
      for (const id of ["a", "b", "c"]) await make(store, id);
      assert.equal(await store.count({ limit: 1 }), 3);
    },
  },
  {
    name: "refuses an invalid query",
    async run({ store }) {
      const queries: readonly unknown[] = [
        { status: "asleep" },
        { status: [] },
        { status: ["active", "asleep"] },
        { cwd: "" },
        { cwd: 7 },
        { deleted: "yes" },
        { user: "u" },
        { cursor: "" },
        { cursor: "garbage" },
        { cursor: Buffer.from('{"id":"a"}').toString("base64url") },
        { cursor: Buffer.from(`{"modifiedAt":"${OLD}","id":"a","more":1}`).toString("base64url") },
        { cursor: Buffer.from(`{"modifiedAt":"${OLD}","id":"../a"}`).toString("base64url") },
        { cursor: 7 },
        null,
        "all",
      ];
      for (const query of queries) {
        await refuses(store.list(query as never), "INVALID_QUERY");
        await refuses(store.count(query as never), "INVALID_QUERY");
        await refuses(store.search("x", query as never), "INVALID_QUERY");
      }
      for (const limit of [0, -1, 1.5, 1001, Number.NaN, "1"])
        await refuses(store.list({ limit } as never), "INVALID_OPTION");
    },
  },
];

/** Cases: idle sessions. */
export const expiryCases: readonly StoreCase[] = [
  {
    name: "lists active and suspended sessions whose last append was before a time, the longest idle first",
    async run({ store }) {
      const ids = ["b", "a", "suspended", "closed", "expired", "deleted"];
      for (const id of ids) {
        await make(store, id);
        await store.append(id, [user("x")]);
        await later((await headOf(store, id)).updatedAt);
      }
      for (const to of ["suspended", "closed", "expired"] as const) await store.append(to, [status(to)]);
      await store.delete("deleted");
      const found = await store.listExpired(FAR, 10);
      assert.deepEqual(
        found.map(({ header }) => header.id),
        ["b", "a", "suspended"],
      );
      assert.deepEqual(found[0], await store.head("b"));
      assert.deepEqual(
        (await store.listExpired(FAR, 2)).map(({ header }) => header.id),
        ["b", "a"],
      );
      assert.deepEqual(await store.listExpired(OLD, 10), []);
      const { updatedAt } = await headOf(store, "a");
      assert.deepEqual(
        (await store.listExpired(updatedAt, 10)).map(({ header }) => header.id),
        ["b"],
      );
      await later((await headOf(store, "suspended")).updatedAt);
      await store.append("b", [name("any append counts")]);
      assert.equal((await store.listExpired(FAR, 10)).at(-1)?.header.id, "b");
    },
  },
  {
    name: "decides whether a session is idle by the store's clock, not by the times in its header and entries",
    async run({ store }) {
      const before = new Date(Date.now() - 60_000).toISOString();
      await make(store, "old", { createdAt: OLD });
      await store.create(createHeader({ id: "copied", createdAt: OLD }), { entries: [user("x", { timestamp: OLD })] });
      await store.fork("copied", createHeader({ id: "forked", createdAt: OLD }));
      await make(store, "ahead", { createdAt: "2999-01-01T00:00:00.000Z" });
      const soon = new Date(Date.now() + 60_000).toISOString();
      assert.deepEqual(await store.listExpired(before, 10), []);
      assert.equal((await store.listExpired(soon, 10)).length, 4);
    },
  },
  {
    name: "a fork counts as idle since its creation, not since its source's last append",
    async run({ store }) {
      await make(store, "a");
      const { head } = await store.append("a", [user("x", { id: "1" }), user("y")]);
      await later(head.updatedAt);
      const forks = [
        await store.fork("a", createHeader({ id: "f" })),
        await store.fork("a", createHeader({ id: "g" }), { at: "1" }),
      ];
      for (const { updatedAt } of forks)
        assert.ok(updatedAt > head.updatedAt, `${updatedAt} is not after ${head.updatedAt}`);
    },
  },
  {
    name: "refuses an invalid time or limit",
    async run({ store }) {
      for (const time of ["", "2024", "2024-01-01", 7, null]) {
        await refuses(store.listExpired(time as string, 1), "INVALID_OPTION");
        await refuses(store.purge(time as string), "INVALID_OPTION");
      }
      for (const limit of [0, -1, 1.5, 1001, undefined])
        await refuses(store.listExpired(FAR, limit as number), "INVALID_OPTION");
    },
  },
];

async function makeAt(store: SessionStore, id: string, year: number): Promise<void> {
  await make(store, id, { createdAt: OLD });
  await store.append(id, [user("x", { timestamp: `${year}-01-01T00:00:00.000Z` })]);
}

/** Waits until a time has passed, also by the clock of a store with a coarse resolution. */
async function later(time: string): Promise<void> {
  const until = Date.parse(time) + CLOCK_TICK_MS;
  while (Date.now() <= until) await new Promise((resolve) => setTimeout(resolve, 1));
}
