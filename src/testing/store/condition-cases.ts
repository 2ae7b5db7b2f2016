import assert from "node:assert/strict";
import type { EntryDraft, SessionStatus } from "../../session/log/entry.ts";
import type { SessionErrorCode } from "../../session/errors.ts";
import { createHeader } from "../../session/log/header.ts";
import { checkHeadIsFold } from "../check-head-is-fold.ts";
import type { StoreCase } from "../store-case.ts";
import { makeThree } from "./append-cases.ts";
import { entriesOf, headOf, idsOf, make, refuses, unchanged } from "./store-checks.ts";
import { assistant, label, leaf, name, status, user } from "./drafts.ts";

const STATUS_CODES: readonly [SessionStatus, SessionErrorCode][] = [
  ["suspended", "SESSION_SUSPENDED"],
  ["closed", "SESSION_CLOSED"],
  ["expired", "SESSION_EXPIRED"],
];

/** Cases: `expectedVersion`, guards and `onto`. */
export const conditionCases: readonly StoreCase[] = [
  {
    name: "appends at the expected version, and refuses any other with an error that has both versions",
    async run({ store }) {
      await makeThree(store);
      for (const expectedVersion of [0, 2, 4]) {
        const fields = { sessionId: "a", expected: expectedVersion, actual: 3 };
        await unchanged(store, "a", () =>
          refuses(store.append("a", [user("x")], { expectedVersion }), "CONFLICT", fields),
        );
      }
      assert.equal((await store.append("a", [user("x")], { expectedVersion: 3 })).version, 4);
    },
  },
  {
    name: "of many concurrent appends with the same expectedVersion, exactly one succeeds",
    async run({ store }) {
      await makeThree(store);
      const tries = Array.from({ length: 10 }, (_, i) => store.append("a", [user(`${i}`)], { expectedVersion: 3 }));
      const results = await Promise.allSettled(tries);
      assert.equal(results.filter((result) => result.status === "fulfilled").length, 1);
      assert.equal((await headOf(store, "a")).version, 4);
    },
  },
  {
    name: "appends an entry onto the leaf, and moves the leaf to it",
    async run({ store }) {
      await makeThree(store);
      const { entries } = await store.append("a", [user("four", { id: "4" }), user("five", { id: "5" })], {
        onto: "3",
      });
      assert.deepEqual(
        entries.map(({ parentId }) => parentId),
        ["3", "4"],
      );
      assert.equal((await headOf(store, "a")).leafId, "5");
      await checkHeadIsFold(store, "a");
    },
  },
  {
    name: "appends a chain of entries onto an entry that is not the leaf, and does not move the leaf",
    async run({ store }) {
      await makeThree(store);
      const { entries } = await store.append("a", [user("x", { id: "x" }), user("y", { id: "y" })], { onto: "1" });
      assert.deepEqual(
        entries.map(({ parentId }) => parentId),
        ["1", "x"],
      );
      const { leafId, path, messageCount } = await headOf(store, "a");
      assert.deepEqual([leafId, path.turnCount, messageCount], ["3", 3, 5]);
      assert.equal((await store.path("a", "y"))?.depth, 3);
      await store.append("a", [user("z", { id: "z" })], { onto: "y" });
      assert.equal((await headOf(store, "a")).leafId, "3");
      await checkHeadIsFold(store, "a");
    },
  },
  {
    name: "an entry that is appended onto null is a new root",
    async run({ store }) {
      await makeThree(store);
      await store.append("a", [user("other root", { id: "r" })], { onto: null });
      assert.deepEqual([(await store.getEntry("a", "r"))?.parentId, (await headOf(store, "a")).leafId], [null, "3"]);
      await make(store, "empty");
      await store.append("empty", [user("root", { id: "r" })], { onto: null });
      assert.equal((await headOf(store, "empty")).leafId, "r");
      await checkHeadIsFold(store, "a");
    },
  },
  {
    name: "refuses to append onto a missing entry or a fact",
    async run({ store }) {
      await makeThree(store);
      await store.append("a", [name("n", { id: "fact" })]);
      await unchanged(store, "a", async () => {
        await refuses(store.append("a", [user("x")], { onto: "nowhere" }), "UNKNOWN_ENTRY", { entryId: "nowhere" });
        await refuses(store.append("a", [name("a fact")], { onto: "nowhere" }), "UNKNOWN_ENTRY");
        await refuses(store.append("a", [name("a fact")], { onto: "fact" }), "INVALID_ENTRY");
        await refuses(store.append("a", [user("x")], { onto: "fact" }), "INVALID_ENTRY");
        await refuses(store.append("a", [leaf("fact")]), "INVALID_ENTRY");
        await refuses(store.append("a", [user("x")], { onto: "" }), "INVALID_ID");
      });
    },
  },
  {
    name: "moves the leaf to any node or before the root, and appends there",
    async run({ store }) {
      await makeThree(store);
      await store.append("a", [leaf("1")]);
      assert.deepEqual([(await headOf(store, "a")).leafId, (await headOf(store, "a")).path.turnCount], ["1", 1]);
      await store.append("a", [user("other", { id: "o" })]);
      assert.equal((await store.getEntry("a", "o"))?.parentId, "1");
      await store.append("a", [leaf(null), user("new root", { id: "r" })]);
      assert.equal((await store.getEntry("a", "r"))?.parentId, null);
      assert.deepEqual([(await headOf(store, "a")).path.turnCount, (await headOf(store, "a")).messageCount], [1, 5]);
      await checkHeadIsFold(store, "a");
    },
  },
  ...STATUS_CODES.map(
    ([to, code]): StoreCase => ({
      name: `refuses an append with the guard status "active" with ${code} if the session is ${to}`,
      async run({ store }) {
        await makeThree(store);
        await store.append("a", [status(to)]);
        await unchanged(store, "a", () =>
          refuses(store.append("a", [user("x")], { guard: { status: "active" } }), code, { sessionId: "a" }),
        );
        await store.append("a", [user("x")], { guard: { status: ["active", to] } });
        await store.append("a", [user("y")]);
      },
    }),
  ),
  {
    name: 'refuses an append with the guard status "suspended" if the session is active',
    async run({ store }) {
      await makeThree(store);
      await unchanged(store, "a", () =>
        refuses(store.append("a", [status("active")], { guard: { status: "suspended" } }), "TRANSITION"),
      );
    },
  },
  {
    name: "of many concurrent status changes guarded by the old status, exactly one succeeds",
    async run({ store }) {
      await makeThree(store);
      const tries = Array.from({ length: 10 }, () =>
        store.append("a", [status("suspended")], { guard: { status: "active" } }),
      );
      assert.equal((await Promise.allSettled(tries)).filter((result) => result.status === "fulfilled").length, 1);
      assert.equal((await headOf(store, "a")).version, 4);
    },
  },
  {
    name: "enforces variablesBytesMax on every path and for concurrent appends, and accepts other entries",
    async run({ store }) {
      await makeThree(store);
      const guard = { variablesBytesMax: 1000 };
      const set = (key: string, length: number): EntryDraft => ({
        type: "variables",
        set: { [key]: "x".repeat(length) },
        unset: [],
      });
      const tries = Array.from({ length: 6 }, (_, i) => store.append("a", [set(`k${i}`, 400)], { guard }));
      const results = await Promise.allSettled(tries);
      assert.equal(results.filter((result) => result.status === "fulfilled").length, 2);
      await unchanged(store, "a", () =>
        refuses(store.append("a", [set("more", 600)], { guard }), "CAPACITY", { limit: 1000 }),
      );
      await unchanged(store, "a", () => refuses(store.append("a", [set("k", 1000)], { guard, onto: "1" }), "CAPACITY"));
      await store.append("a", [set("k", 800)], { guard, onto: "1" });
      await store.append("a", [user("still welcome")], { guard });
      await store.append("a", [set("beyond", 5000)]);
      await checkHeadIsFold(store, "a");
      const entries = [set("k", 2000)];
      await refuses(store.create(createHeader({ id: "b" }), { entries, variablesBytesMax: 1000 }), "CAPACITY");
      assert.equal(await store.head("b"), null);
      await store.create(createHeader({ id: "b" }), { entries, variablesBytesMax: 3000 });
    },
  },
  {
    name: "enforces maxTurns on the active path, and accepts facts and other branches",
    async run({ store }) {
      await makeThree(store);
      const guard = { maxTurns: 4 };
      await unchanged(store, "a", () =>
        refuses(store.append("a", [user("4"), user("5")], { guard }), "CAPACITY", { limit: 4 }),
      );
      await store.append("a", [user("4", { id: "4" })], { guard });
      await unchanged(store, "a", () => refuses(store.append("a", [user("5")], { guard }), "CAPACITY"));
      await store.append("a", [name("still welcome")], { guard });
      await store.append("a", [leaf("1"), user("short again")], { guard });
      await checkHeadIsFold(store, "a");
    },
  },
  {
    name: "enforces maxTurns for concurrent appends",
    async run({ store }) {
      await make(store, "a");
      const tries = Array.from({ length: 10 }, (_, i) => store.append("a", [user(`${i}`)], { guard: { maxTurns: 3 } }));
      assert.equal((await Promise.allSettled(tries)).filter((result) => result.status === "fulfilled").length, 3);
      assert.equal((await entriesOf(store, "a")).length, 3);
    },
  },
];

/** Cases: retries of an append. */
export const retryCases: readonly StoreCase[] = [
  {
    name: "an exact retry writes nothing and returns the stored entries",
    async run({ store }) {
      await make(store, "a");
      const drafts = [user("one", { id: "1" }), label("1", "l", { id: "2" }), assistant("three", {}, { id: "3" })];
      const first = await store.append("a", drafts);
      await store.append("a", [user("later", { id: "4" })]);
      await unchanged(store, "a", async () => {
        const again = await store.append("a", drafts);
        assert.deepEqual(again.entries, first.entries);
        assert.deepEqual([again.version, again.head], [4, await store.head("a")]);
      });
    },
  },
  {
    name: "an exact retry succeeds even if its guard and expected version do not hold any more",
    async run({ store }) {
      await make(store, "a");
      const options = { expectedVersion: 0, guard: { status: "active", maxTurns: 1 } } as const;
      await store.append("a", [user("one", { id: "1" })], options);
      await store.append("a", [status("closed")]);
      await unchanged(store, "a", async () => {
        assert.equal((await store.append("a", [user("one", { id: "1" })], options)).version, 2);
      });
    },
  },
  {
    name: "if an append repeats some entries of another, only the missing ones are written",
    async run({ store }) {
      await makeThree(store);
      const { entries, version } = await store.append("a", [user("three", { id: "3" }), user("four", { id: "4" })]);
      assert.deepEqual(
        entries.map(({ id, seq, parentId }) => [id, seq, parentId]),
        [
          ["3", 2, "2"],
          ["4", 3, "3"],
        ],
      );
      assert.equal(version, 4);
      assert.deepEqual(await idsOf(store, "a"), ["1", "2", "3", "4"]);
      await checkHeadIsFold(store, "a");
    },
  },
  {
    name: "refuses the id of a stored entry with other content, and keeps the first",
    async run({ store }) {
      await makeThree(store);
      const others = [user("other", { id: "1" }), assistant("one", {}, { id: "1" }), name("one", { id: "1" })];
      for (const other of others)
        await unchanged(store, "a", () => refuses(store.append("a", [other]), "ENTRY_EXISTS"));
      await unchanged(store, "a", () =>
        refuses(store.append("a", [user("new", { id: "9" }), user("changed", { id: "9" })]), "ENTRY_EXISTS"),
      );
    },
  },
  {
    name: "treats two drafts of one append with the same id and content as one entry",
    async run({ store }) {
      await make(store, "a");
      const { entries, version } = await store.append("a", [user("x", { id: "1" }), user("x", { id: "1" })]);
      assert.equal(version, 1);
      assert.deepEqual(entries[0], entries[1]);
    },
  },
  {
    name: "compares the content of a retry, not its time or key order",
    async run({ store }) {
      await make(store, "a");
      const timestamp = "2020-01-01T00:00:00.000Z";
      await store.append("a", [
        { type: "custom", customType: "t", data: { x: 1, y: { p: [1], q: null } }, id: "1", timestamp },
      ]);
      await unchanged(store, "a", async () => {
        await store.append("a", [{ id: "1", data: { y: { q: null, p: [1] }, x: 1 }, customType: "t", type: "custom" }]);
        await refuses(
          store.append("a", [{ id: "1", type: "custom", customType: "t", data: { x: 1, y: { p: [1, 1], q: null } } }]),
          "ENTRY_EXISTS",
        );
        await refuses(
          store.append("a", [{ id: "1", type: "custom", customType: "t", data: { x: 1 } }]),
          "ENTRY_EXISTS",
        );
      });
    },
  },
  {
    name: "stores an entry once when it is appended concurrently",
    async run({ store }) {
      await make(store, "a");
      const results = await Promise.all(
        Array.from({ length: 20 }, () => store.append("a", [user("once", { id: "1" })])),
      );
      assert.deepEqual(await idsOf(store, "a"), ["1"]);
      for (const { version, entries } of results) assert.deepEqual([version, entries.length], [1, 1]);
    },
  },
];
