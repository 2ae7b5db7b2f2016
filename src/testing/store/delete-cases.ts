import assert from "node:assert/strict";
import { createHeader } from "../../session/log/header.ts";
import { checkHeadIsFold } from "../check-head-is-fold.ts";
import { openAgain, type StoreCase } from "../store-case.ts";
import { makeThree } from "./append-cases.ts";
import { entriesOf, headOf, idsOf, listAll, make, refuses, unchanged } from "./store-checks.ts";
import { leaf, status, user } from "./drafts.ts";

const FAR = "9999-12-31T23:59:59.999Z";
const OLD = "2001-01-01T00:00:00.000Z";

/** Cases: deleting, undeleting and purging sessions. */
export const deleteCases: readonly StoreCase[] = [
  {
    name: "deletes a session from all reads and listings, and returns whether it existed",
    async run({ store }) {
      await makeThree(store);
      await make(store, "b");
      assert.equal(await store.delete("a"), true);
      assert.equal(await store.delete("a"), false);
      assert.equal(await store.delete("nowhere"), false);
      assert.deepEqual(
        [await store.head("a"), await entriesOf(store, "a"), await store.getEntry("a", "1")],
        [null, [], null],
      );
      assert.deepEqual([await listAll(store), await store.count()], [["b"], 1]);
      await refuses(store.lease("a", "run", 1000), "SESSION_NOT_FOUND");
    },
  },
  {
    name: "with deleted: true, lists and counts only deleted sessions",
    async run({ store }) {
      for (const id of ["a", "b", "c"]) await make(store, id, { userId: id === "c" ? "v" : "u" });
      await store.delete("a");
      await store.delete("c");
      assert.deepEqual((await listAll(store, { deleted: true })).sort(), ["a", "c"]);
      assert.deepEqual(await listAll(store, { deleted: true, userId: "u" }), ["a"]);
      assert.equal(await store.count({ deleted: true }), 2);
      assert.deepEqual(await listAll(store, { deleted: false }), ["b"]);
    },
  },
  {
    name: "reads a deleted session with deleted: true, and does not undelete it",
    async run({ store }) {
      await makeThree(store);
      await make(store, "b");
      const [entries, texts] = [await entriesOf(store, "a"), await store.readJson("a")];
      assert.deepEqual(
        [await entriesOf(store, "a", { deleted: true }), await store.readJson("a", { deleted: true })],
        [[], []],
      );
      await store.delete("a");
      assert.deepEqual(await entriesOf(store, "a", { deleted: true }), entries);
      assert.deepEqual(await store.readJson("a", { deleted: true }), texts);
      assert.deepEqual(await entriesOf(store, "a", { deleted: true, after: 0, limit: 1 }), entries.slice(1, 2));
      assert.deepEqual([await entriesOf(store, "a"), await store.head("a"), await listAll(store)], [[], null, ["b"]]);
      await store.purge({ sessionId: "a" });
      assert.deepEqual(await entriesOf(store, "a", { deleted: true }), []);
      await refuses(entriesOf(store, "b", { deleted: "yes" as never }), "INVALID_OPTION");
    },
  },
  {
    name: "undelete restores a deleted session unchanged",
    async run({ store }) {
      await makeThree(store);
      await store.append("a", [leaf("1")]);
      const before = { head: await headOf(store, "a"), entries: await entriesOf(store, "a") };
      await store.delete("a");
      assert.equal(await store.undelete("a"), true);
      assert.deepEqual({ head: await headOf(store, "a"), entries: await entriesOf(store, "a") }, before);
      assert.deepEqual([await store.undelete("a"), await store.undelete("nowhere")], [false, false]);
      assert.deepEqual([await listAll(store), await store.count({ deleted: true })], [["a"], 0]);
      assert.equal((await store.append("a", [user("on")])).entries[0]?.parentId, "1");
    },
  },
  {
    name: "enforces maxOpenPerUser for undelete, also for concurrent calls",
    async run({ store }) {
      for (const id of ["a", "b", "c", "d", "other"]) await make(store, id, { userId: id === "other" ? "v" : "u" });
      await store.append("d", [status("closed")]);
      for (const id of ["a", "b", "c", "d"]) await store.delete(id);
      const limit = { maxOpenPerUser: 2 };
      const results = await Promise.allSettled(["a", "b", "c"].map((id) => store.undelete(id, limit)));
      assert.equal(results.filter((result) => result.status === "fulfilled" && result.value).length, 2);
      for (const result of results)
        if (result.status === "rejected") await refuses(Promise.reject(result.reason), "CAPACITY", { limit: 2 });
      const open = { userId: "u", status: "active" } as const;
      assert.deepEqual([await store.count(open), await store.count({ ...open, deleted: true })], [2, 1]);
      assert.equal(await store.undelete("d", limit), true, "a closed session does not count");
      const [left = ""] = (await store.list({ ...open, deleted: true })).items.map(({ header }) => header.id);
      await refuses(store.undelete(left, limit), "CAPACITY", { limit: 2 });
      assert.equal(await store.undelete("other", limit), false);
      const [back = ""] = (await store.list(open)).items.map(({ header }) => header.id);
      assert.equal(await store.undelete(back, limit), false, "a live session is not undeleted");
      assert.equal(await store.undelete(left), true);
      await refuses(store.undelete("a", { maxOpenPerUser: -1 }), "INVALID_OPTION");
    },
  },
  {
    name: "purges only sessions that were deleted before a time",
    async run({ store }) {
      for (const id of ["a", "b", "kept"]) await makeThree(store, id);
      await store.delete("a");
      await store.delete("b");
      assert.equal(await store.purge(OLD), 0);
      assert.equal(await store.count({ deleted: true }), 2);
      await store.undelete("b");
      assert.equal(await store.purge(FAR), 1);
      assert.equal(await store.purge(FAR), 0);
      assert.deepEqual(
        [await store.undelete("a"), await store.head("a"), await store.count({ deleted: true })],
        [false, null, 0],
      );
      assert.deepEqual((await listAll(store)).sort(), ["b", "kept"]);
      for (const id of ["b", "kept"]) await checkHeadIsFold(store, id);
    },
  },
  {
    name: "purges one session, or the sessions of one user, and keeps the other deleted ones",
    async run({ store }) {
      for (const [id, userId] of [
        ["a", "ann"],
        ["b", "ann"],
        ["c", "bob"],
      ] as const) {
        await store.create(createHeader({ id, userId }));
        await store.delete(id);
      }
      assert.equal(await store.purge({ sessionId: "a", before: OLD }), 0);
      assert.equal(await store.purge({ sessionId: "a" }), 1);
      assert.equal(await store.purge({ userId: "ann" }), 1);
      assert.deepEqual(
        [await store.undelete("a"), await store.undelete("b"), await store.undelete("c")],
        [false, false, true],
      );
      assert.equal(await store.purge({ sessionId: "c" }), 0);
      await refuses(store.purge({}), "INVALID_OPTION");
    },
  },
  {
    name: "forks keep their inherited entries when their source is deleted",
    async run({ store }) {
      await makeThree(store);
      await store.fork("a", createHeader({ id: "f" }), { at: "2" });
      await store.append("f", [user("own", { id: "own" })]);
      await unchanged(store, "f", () => store.delete("a"));
      assert.deepEqual(await store.getEntry("f", "1"), (await entriesOf(store, "f"))[0]);
      await store.append("f", [leaf("1"), user("side", { id: "side" })]);
      await store.fork("f", createHeader({ id: "g" }), { at: "2" });
      for (const id of ["f", "g"]) await checkHeadIsFold(store, id);
      assert.deepEqual(await listAll(store, { parentId: "a" }), ["f"]);
    },
  },
  {
    name: "forks keep their inherited entries when their source is purged",
    async run({ store }) {
      await makeThree(store);
      await store.fork("a", createHeader({ id: "f" }), { at: "2" });
      await store.append("f", [user("own", { id: "own" })]);
      await store.fork("f", createHeader({ id: "g" }), { at: "own" });
      await store.append("f", [user("more", { id: "more" })]);
      await store.delete("a");
      await store.delete("f");
      await unchanged(store, "g", () => store.purge(FAR));
      assert.deepEqual(await idsOf(store, "g"), ["1", "2", "own"]);
      assert.equal(await store.getEntry("g", "more"), null);
      assert.deepEqual([await store.undelete("a"), await store.undelete("f")], [false, false]);
      assert.equal(await store.count({ deleted: true }), 0);
      await store.append("g", [leaf("1"), user("side", { id: "side" })]);
      await store.fork("g", createHeader({ id: "h" }), { at: "1" });
      for (const id of ["g", "h"]) await checkHeadIsFold(store, id);
    },
  },
  {
    name: "each fork of a purged source keeps its inherited entries, wherever it was forked",
    async run({ store }) {
      await makeThree(store);
      for (const at of ["2", "3", "1"]) await store.fork("a", createHeader({ id: `at-${at}` }), { at });
      await store.delete("a");
      await store.purge(FAR);
      assert.deepEqual(await idsOf(store, "at-3"), ["1", "2", "3"]);
      await store.delete("at-3");
      await store.purge(FAR);
      assert.deepEqual([await idsOf(store, "at-2"), await idsOf(store, "at-1")], [["1", "2"], ["1"]]);
      for (const id of ["at-2", "at-1"]) await checkHeadIsFold(store, id);
    },
  },
  {
    name: "after a purged source and its last fork are purged, no session is left",
    async run({ store }) {
      await makeThree(store);
      await store.fork("a", createHeader({ id: "f" }));
      await store.delete("a");
      await store.purge(FAR);
      await store.delete("f");
      assert.equal(await store.purge(FAR), 1);
      assert.deepEqual(
        [await store.count(), await store.count({ deleted: true }), await store.head("f")],
        [0, 0, null],
      );
    },
  },
  {
    name: "deleting and undeleting a fork does not change its source",
    async run({ store }) {
      await makeThree(store);
      await store.fork("a", createHeader({ id: "f" }), { at: "2" });
      await unchanged(store, "a", async () => {
        await store.delete("f");
        assert.equal(await store.undelete("f"), true);
        assert.deepEqual(await idsOf(store, "f"), ["1", "2"]);
        await store.delete("f");
        await store.purge(FAR);
      });
    },
  },
  {
    name: "keeps the deleted state of sessions after the store was reopened",
    needs: "durable",
    async run(context) {
      await makeThree(context.store);
      await make(context.store, "b");
      await context.store.delete("a");
      await context.store.close();
      const store = await openAgain(context);
      assert.deepEqual([await store.head("a"), await listAll(store)], [null, ["b"]]);
      await refuses(make(store, "a"), "SESSION_EXISTS");
      assert.equal(await store.undelete("a"), true);
      assert.deepEqual(await idsOf(store, "a"), ["1", "2", "3"]);
    },
  },
];
