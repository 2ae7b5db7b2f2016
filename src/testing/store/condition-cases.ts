import assert from "node:assert/strict";
import type { EntryDraft, SessionStatus } from "../../session/log/entry.ts";
import type { SessionErrorCode } from "../../session/errors.ts";
import { createHeader } from "../../session/log/header.ts";
import { checkHeadIsFold } from "../check-head-is-fold.ts";
import type { StoreCase } from "../store-case.ts";
import { makeThree } from "./append-cases.ts";
import { entriesOf, headOf, idsOf, make, refuses, unchanged } from "./asking.ts";
import { assistant, label, leaf, name, status, user } from "./drafts.ts";

const STATUS_CODES: readonly [SessionStatus, SessionErrorCode][] = [
  ["suspended", "SESSION_SUSPENDED"],
  ["closed", "SESSION_CLOSED"],
  ["expired", "SESSION_EXPIRED"],
];

/** On what an append can be made to depend, and where it is put. */
export const conditionCases: readonly StoreCase[] = [
  {
    name: "appends at the expected version, and refuses at any other with both versions, writing nothing",
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
    name: "lets exactly one of many writers that expect the same version win",
    async run({ store }) {
      await makeThree(store);
      const tries = Array.from({ length: 10 }, (_, i) => store.append("a", [user(`${i}`)], { expectedVersion: 3 }));
      const results = await Promise.allSettled(tries);
      assert.equal(results.filter((result) => result.status === "fulfilled").length, 1);
      assert.equal((await headOf(store, "a")).version, 4);
    },
  },
  {
    name: "puts an entry onto the leaf that it names, and lets the leaf follow",
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
    name: "puts entries onto an entry that is not the leaf, chained on each other, and leaves the leaf where it is",
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
    name: "puts an entry before the root when it is appended onto null",
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
    name: "refuses to put an entry onto one that is not there, or is a fact",
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
    name: "moves the leaf to any node or before the root, and goes on from there",
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
      name: `refuses an append that asks for an active session with ${code} when it is ${to}`,
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
    name: "refuses an append that asks for a suspended session when it is active",
    async run({ store }) {
      await makeThree(store);
      await unchanged(store, "a", () =>
        refuses(store.append("a", [status("active")], { guard: { status: "suspended" } }), "TRANSITION"),
      );
    },
  },
  {
    name: "lets exactly one of many status changes win that ask for the status before",
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
    name: "refuses variables beyond variablesBytesMax, on any path and however many set them at once, and lets the rest be",
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
    name: "refuses messages beyond maxTurns of the active path, and lets facts and other branches be",
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
    name: "holds maxTurns when many append at once",
    async run({ store }) {
      await make(store, "a");
      const tries = Array.from({ length: 10 }, (_, i) => store.append("a", [user(`${i}`)], { guard: { maxTurns: 3 } }));
      assert.equal((await Promise.allSettled(tries)).filter((result) => result.status === "fulfilled").length, 3);
      assert.equal((await entriesOf(store, "a")).length, 3);
    },
  },
];

/** What happens when an append is tried again. */
export const retryCases: readonly StoreCase[] = [
  {
    name: "takes an exact retry for done: it writes nothing and returns what is stored",
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
    name: "takes an exact retry for done whatever version, status and turns it asks for by now",
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
    name: "writes only what is missing when an append repeats a part of another",
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
    name: "takes one id twice in an append for one entry when the content is the same",
    async run({ store }) {
      await make(store, "a");
      const { entries, version } = await store.append("a", [user("x", { id: "1" }), user("x", { id: "1" })]);
      assert.equal(version, 1);
      assert.deepEqual(entries[0], entries[1]);
    },
  },
  {
    name: "compares content, not time nor the order of keys",
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
    name: "stores an entry once when many try to append it at the same time",
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
