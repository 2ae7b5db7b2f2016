import assert from "node:assert/strict";
import type { EntryDraft } from "../../session/log/entry.ts";
import { createHeader, rootIdOf } from "../../session/log/header.ts";
import { checkHeadIsFold } from "../check-head-is-fold.ts";
import { openAgain, type StoreCase } from "../store-case.ts";
import { makeThree } from "./append-cases.ts";
import { entriesOf, headOf, idsOf, make, openIn, refuses, unchanged } from "./store-checks.ts";
import { label, leaf, name, spending, status, user, variables } from "./drafts.ts";
import { appendAtRandom, randomOf } from "./random-appends.ts";

const started = (runId: string): EntryDraft => ({ type: "run", runId, phase: "started" });

/** Cases: forks. */
export const forkCases: readonly StoreCase[] = [
  {
    name: "forks a whole log with its head and entries, and records the fork point",
    async run({ store }) {
      await makeThree(store);
      await store.append("a", [name("title", { id: "n" }), leaf("2", { id: "l" })]);
      const head = await store.fork("a", createHeader({ id: "f", userId: "u", metadata: { k: 1 } }));
      assert.deepEqual(head.header.forkedFrom, { sessionId: "a", entryId: "l", version: 5 });
      assert.deepEqual([head.header.id, head.header.userId, head.header.metadata], ["f", "u", { k: 1 }]);
      assert.deepEqual([head.version, head.leafId, head.name, head.messageCount], [5, "2", "title", 3]);
      assert.deepEqual(await store.head("f"), head);
      assert.deepEqual(await entriesOf(store, "f"), await entriesOf(store, "a"));
      await checkHeadIsFold(store, "f");
    },
  },
  {
    name: "records the first session of a chain of forks in the header, whatever a caller says",
    async run({ store }) {
      await makeThree(store);
      const first = await store.fork("a", createHeader({ id: "f", rootId: "elsewhere" }));
      const second = await store.fork("f", createHeader({ id: "g" }));
      assert.deepEqual([first.header.rootId, second.header.rootId], ["a", "a"]);
      assert.deepEqual(
        [rootIdOf((await headOf(store, "a")).header), rootIdOf((await headOf(store, "g")).header)],
        ["a", "a"],
      );
    },
  },
  {
    name: "forks at a node, with the leaf at that time",
    async run({ store }) {
      await makeThree(store);
      await store.append("a", [
        variables({ k: 1 }, [], { id: "v" }),
        leaf("1"),
        spending(5, { id: "s" }),
        name("later"),
      ]);
      const head = await store.fork("a", createHeader({ id: "f" }), { at: "s" });
      assert.deepEqual([head.version, head.leafId, head.name, head.path.turnCount], [6, "s", null, 2]);
      assert.deepEqual(head.header.forkedFrom, { sessionId: "a", entryId: "s", version: 6 });
      const early = await store.fork("a", createHeader({ id: "g" }), { at: "2" });
      assert.deepEqual([early.version, early.leafId, early.cost], [2, "2", 0]);
      assert.deepEqual(await idsOf(store, "g"), ["1", "2"]);
      for (const id of ["f", "g"]) await checkHeadIsFold(store, id);
    },
  },
  {
    name: "forks at a fact, and before the first entry",
    async run({ store }) {
      await makeThree(store);
      await store.append("a", [leaf("1", { id: "move" }), user("after", { id: "4" })]);
      const moved = await store.fork("a", createHeader({ id: "f" }), { at: "move" });
      assert.deepEqual([moved.version, moved.leafId, moved.path.turnCount], [4, "1", 1]);
      const empty = await store.fork("a", createHeader({ id: "g" }), { at: null });
      assert.deepEqual([empty.version, empty.leafId, empty.messageCount], [0, null, 0]);
      assert.deepEqual(empty.header.forkedFrom, { sessionId: "a", entryId: null, version: 0 });
      assert.deepEqual(await entriesOf(store, "g"), []);
      await store.append("g", [user("own", { id: "1" })]);
      for (const id of ["f", "g"]) await checkHeadIsFold(store, id);
    },
  },
  {
    name: "forks a session without entries, or without messages",
    async run({ store }) {
      await make(store, "a", { createdAt: "2001-01-01T00:00:00.000Z" });
      const empty = await store.fork("a", createHeader({ id: "f" }));
      assert.deepEqual(empty.header.forkedFrom, { sessionId: "a", entryId: null, version: 0 });
      await store.append("a", [name("title", { id: "n" })]);
      await store.fork("a", createHeader({ id: "g" }));
      await store.fork("a", createHeader({ id: "h" }), { at: "n" });
      for (const id of ["f", "g", "h"]) await checkHeadIsFold(store, id);
    },
  },
  {
    name: "keeps the branch name of a fork",
    async run({ store }) {
      await makeThree(store);
      const forkedFrom = { sessionId: "x", entryId: null, version: 0, branchName: "try" };
      const { header } = await store.fork("a", createHeader({ id: "f", forkedFrom }), { at: "2" });
      assert.deepEqual(header.forkedFrom, { sessionId: "a", entryId: "2", version: 2, branchName: "try" });
      assert.deepEqual((await headOf(store, "f")).header, header);
    },
  },
  {
    name: "a fork inherits the imported part of its source, whatever the given header says, and none of its open runs",
    async run({ store }) {
      const inherited = { entries: 3, counts: false };
      const entries = [user("hi", { id: "1" }), spending(5, { id: "2" }), started("r1")];
      await store.create(createHeader({ id: "a", inherited }), { entries });
      await store.append("a", [spending(7, { id: "own" })]);
      const given = { entries: 99, counts: true };
      const whole = await store.fork("a", createHeader({ id: "f", inherited: given }));
      const early = await store.fork("a", createHeader({ id: "g" }), { at: "2" });
      assert.deepEqual([whole.header.inherited, early.header.inherited], [inherited, { ...inherited, entries: 2 }]);
      assert.deepEqual([await openIn(store, "a"), whole.openRuns, early.usage.totalTokens], [[], [], 0]);
      await store.append("g", [spending(9, { id: "later" })]);
      for (const id of ["a", "f", "g"]) await checkHeadIsFold(store, id);
      const plain = await store.create(createHeader({ id: "p" }));
      const fork = await store.fork("p", createHeader({ id: "q", inherited: given }));
      assert.deepEqual([plain.header.inherited, fork.header.inherited], [undefined, undefined]);
    },
  },
  {
    name: "later changes of the source do not affect the fork, nor changes of the fork the source",
    async run({ store }) {
      await makeThree(store);
      await store.fork("a", createHeader({ id: "f" }), { at: "2" });
      await unchanged(store, "f", () =>
        store.append("a", [user("more", { id: "4" }), name("a's"), label("1", "a's"), status("closed"), leaf("1")]),
      );
      assert.equal(await store.getEntry("f", "3"), null);
      assert.equal(await store.getEntry("f", "4"), null);
      assert.equal(await store.path("f", "4"), null);
      await unchanged(store, "a", () => store.append("f", [user("own", { id: "own" }), name("f's"), leaf(null)]));
      assert.equal(await store.getEntry("a", "own"), null);
      await refuses(store.append("f", [user("x")], { onto: "3" }), "UNKNOWN_ENTRY");
      await refuses(store.append("f", [label("4", "x")]), "UNKNOWN_ENTRY");
      for (const id of ["a", "f"]) await checkHeadIsFold(store, id);
    },
  },
  {
    name: "a fork can use an id that its source has used after the fork point",
    async run({ store }) {
      await makeThree(store);
      await store.fork("a", createHeader({ id: "f" }), { at: "2" });
      await store.append("f", [user("another three", { id: "3" })]);
      assert.deepEqual(
        (await entriesOf(store, "f")).map(({ id, seq, parentId }) => [id, seq, parentId]),
        [
          ["1", 0, null],
          ["2", 1, "1"],
          ["3", 2, "2"],
        ],
      );
      const [mine, theirs] = [await store.getEntry("f", "3"), await store.getEntry("a", "3")];
      assert.notDeepEqual(mine, theirs);
      await refuses(store.append("f", [user("another one", { id: "1" })]), "ENTRY_EXISTS");
      await unchanged(store, "f", () => store.append("f", [user("one", { id: "1" })]));
    },
  },
  {
    name: "a fork can append onto inherited entries, refer to them, and move its leaf to them",
    async run({ store }) {
      await makeThree(store);
      await store.fork("a", createHeader({ id: "f" }));
      await store.append("f", [label("1", "here"), user("side", { id: "side" })], { onto: "1" });
      await store.append("f", [leaf("2"), user("again", { id: "again" })]);
      assert.equal((await store.getEntry("f", "again"))?.parentId, "2");
      assert.equal((await store.path("f", "side"))?.depth, 2);
      await checkHeadIsFold(store, "f");
    },
  },
  {
    name: "forks a fork at its own entries and at inherited ones",
    async run({ store }) {
      await makeThree(store);
      await store.fork("a", createHeader({ id: "f" }), { at: "2" });
      await store.append("f", [user("f1", { id: "f1" }), user("f2", { id: "f2" })]);
      const own = await store.fork("f", createHeader({ id: "own" }), { at: "f1" });
      const taken = await store.fork("f", createHeader({ id: "taken" }), { at: "1" });
      assert.deepEqual(own.header.forkedFrom, { sessionId: "f", entryId: "f1", version: 3 });
      assert.deepEqual(taken.header.forkedFrom, { sessionId: "f", entryId: "1", version: 1 });
      assert.deepEqual(await idsOf(store, "own"), ["1", "2", "f1"]);
      assert.deepEqual(await idsOf(store, "taken"), ["1"]);
      await refuses(store.fork("f", createHeader({ id: "x" }), { at: "3" }), "UNKNOWN_ENTRY");
      await store.append("taken", [user("t", { id: "2" })]);
      await store.append("own", [user("o", { id: "o" })]);
      assert.deepEqual(await idsOf(store, "own", { reverse: true }), ["o", "f1", "2", "1"]);
      for (const id of ["f", "own", "taken"]) await checkHeadIsFold(store, id);
    },
  },
  {
    name: "reads any part of a fork of forks, and finds each of its entries",
    async run({ store }) {
      await makeThree(store, "s0");
      for (let depth = 1; depth <= 12; depth++) {
        await store.fork(`s${depth - 1}`, createHeader({ id: `s${depth}` }));
        if (depth % 3 !== 0) await store.append(`s${depth}`, [user(`${depth}`, { id: `d${depth}` }), user("x")]);
        await store.append(`s${depth - 1}`, [user("later")]);
      }
      const entries = await entriesOf(store, "s12");
      assert.deepEqual(
        entries.map(({ seq }) => seq),
        Array.from({ length: 3 + 8 * 2 }, (_, seq) => seq),
      );
      for (let first = 0; first < entries.length; first++) {
        assert.deepEqual(
          await entriesOf(store, "s12", { after: first - 1, limit: 4 }),
          entries.slice(first, first + 4),
        );
        assert.deepEqual(
          await entriesOf(store, "s12", { before: first, reverse: true, limit: 4 }),
          entries.slice(Math.max(0, first - 4), first).reverse(),
        );
      }
      for (const entry of entries) assert.deepEqual(await store.getEntry("s12", entry.id), entry);
      await checkHeadIsFold(store, "s12");
    },
  },
  {
    name: "forks at any position of a long log with the head at that position (seed 7)",
    async run({ store }) {
      await make(store, "a");
      await appendAtRandom(store, "a", { seed: 7, appends: 100 });
      const entries = await entriesOf(store, "a");
      const random = randomOf(7);
      for (let i = 0; i < 12; i++) {
        const at = entries[Math.floor(random() * entries.length)];
        assert.ok(at !== undefined);
        await store.fork("a", createHeader({ id: `f${i}` }), { at: at.id });
        assert.deepEqual(await entriesOf(store, `f${i}`), entries.slice(0, at.seq + 1));
        await appendAtRandom(store, `f${i}`, { seed: 100 + i, appends: 3 });
        await checkHeadIsFold(store, `f${i}`);
      }
    },
  },
  {
    name: "the fork of a closed session is closed too, as its entries say",
    async run({ store }) {
      await makeThree(store);
      await store.append("a", [status("closed", { id: "closed" })]);
      assert.equal((await store.fork("a", createHeader({ id: "f" }))).status, "closed");
      assert.equal((await store.fork("a", createHeader({ id: "g" }), { at: "3" })).status, "active");
    },
  },
  {
    name: "an open run of the source is not open in its forks, nor in their forks, and their own runs are",
    async run({ store }) {
      await makeThree(store);
      await store.append("a", [started("r1"), user("in the run", { id: "4" })]);
      const head = await store.fork("a", createHeader({ id: "f" }));
      assert.deepEqual([head.openRuns, await openIn(store, "a")], [[], ["r1"]]);
      await store.fork("a", createHeader({ id: "g" }), { at: "4" });
      await store.append("g", [user("own")]);
      await store.append("g", [name("own")]);
      assert.deepEqual((await headOf(store, "g")).openRuns, []);
      await store.append("f", [user("own")]);
      await store.append("f", [started("r2"), user("in the other run")]);
      await store.fork("f", createHeader({ id: "h" }));
      assert.deepEqual([await openIn(store, "f"), await openIn(store, "h")], [["r2"], []]);
      await store.append("a", [{ type: "run", runId: "r1", phase: "finished" }]);
      for (const id of ["a", "f", "g", "h"]) await checkHeadIsFold(store, id);
    },
  },
  {
    name: "refuses to fork at an unknown entry, from an unknown session, or to an existing id",
    async run({ store }) {
      await makeThree(store);
      await make(store, "b");
      await refuses(store.fork("a", createHeader({ id: "f" }), { at: "nowhere" }), "UNKNOWN_ENTRY", {
        entryId: "nowhere",
      });
      await refuses(store.fork("nowhere", createHeader({ id: "f" })), "SESSION_NOT_FOUND", { sessionId: "nowhere" });
      await refuses(store.fork("a", createHeader({ id: "b" })), "SESSION_EXISTS");
      await refuses(store.fork("a", createHeader({ id: "a" })), "SESSION_EXISTS");
      await store.delete("b");
      await refuses(store.fork("a", createHeader({ id: "b" })), "SESSION_EXISTS");
      await refuses(store.fork("b", createHeader({ id: "f" })), "SESSION_NOT_FOUND");
      await refuses(store.fork("a", createHeader({ id: "f" }), { maxForks: 1.5 }), "INVALID_OPTION");
      assert.equal(await store.head("f"), null);
      assert.equal(await store.count(), 1);
    },
  },
  {
    name: "enforces maxForks, also for concurrent forks",
    async run({ store }) {
      await makeThree(store);
      const tries = Array.from({ length: 6 }, (_, i) =>
        store.fork("a", createHeader({ id: `f${i}` }), { maxForks: 2 }),
      );
      const results = await Promise.allSettled(tries);
      assert.equal(results.filter((result) => result.status === "fulfilled").length, 2);
      for (const result of results)
        if (result.status === "rejected") await refuses(Promise.reject(result.reason), "CAPACITY", { limit: 2 });
      const [fork = ""] = (await store.list({ parentId: "a" })).items.map(({ header }) => header.id);
      await store.fork(fork, createHeader({ id: "of-a-fork" }), { maxForks: 2 });
      await refuses(store.fork("a", createHeader({ id: "x" }), { maxForks: 2 }), "CAPACITY");
      await store.delete(fork);
      await store.fork("a", createHeader({ id: "x" }), { maxForks: 2 });
    },
  },
  {
    name: "enforces maxOpenPerUser for forks, counting all open sessions of the user, also for concurrent forks",
    async run({ store }) {
      await store.create(createHeader({ id: "a", userId: "u" }), { entries: [user("one", { id: "1" })] });
      await store.create(createHeader({ id: "other", userId: "v" }));
      const fork = (id: string): Promise<unknown> =>
        store.fork("a", createHeader({ id, userId: "u" }), { maxOpenPerUser: 3, maxForks: 10 });
      const results = await Promise.allSettled(Array.from({ length: 6 }, (_, i) => fork(`f${i}`)));
      assert.equal(results.filter((result) => result.status === "fulfilled").length, 2);
      for (const result of results)
        if (result.status === "rejected") await refuses(Promise.reject(result.reason), "CAPACITY", { limit: 3 });
      assert.equal(await store.count({ userId: "u" }), 3);
      // A refused fork does not count against the limit.
      await store.delete("a");
      const [source = ""] = (await store.list({ userId: "u" })).items.map(({ header }) => header.id);
      await store.fork(source, createHeader({ id: "again", userId: "u" }), { maxOpenPerUser: 3, maxForks: 1 });
      await refuses(
        store.fork(source, createHeader({ id: "more", userId: "v" }), { maxOpenPerUser: 3, maxForks: 1 }),
        "CAPACITY",
        { limit: 1 },
      );
      await store.create(createHeader({ id: "v2", userId: "v" }), { maxOpenPerUser: 2 });
    },
  },
  {
    name: "forks keep their inherited entries after the store was reopened",
    needs: "durable",
    async run(context) {
      await makeThree(context.store);
      await context.store.fork("a", createHeader({ id: "f" }), { at: "2" });
      await context.store.append("f", [user("own", { id: "own" })]);
      await context.store.close();
      const store = await openAgain(context);
      assert.deepEqual(await idsOf(store, "f"), ["1", "2", "own"]);
      await store.append("f", [leaf("1"), user("side", { id: "side" })]);
      await checkHeadIsFold(store, "f");
    },
  },
  {
    name: "keeps the open runs of a fork after it was reopened, if the source had an open run at the fork point",
    needs: "durable",
    async run(context) {
      await makeThree(context.store);
      await context.store.append("a", [started("r1"), user("in the run")]);
      for (const id of ["f", "g", "h"]) await context.store.fork("a", createHeader({ id }));
      await context.store.append("f", [user("own")]);
      await context.store.append("g", [started("r2"), user("own")]);
      await context.store.close();
      const store = await openAgain(context);
      const open = await Promise.all(["a", "f", "g", "h"].map((id) => openIn(store, id)));
      assert.deepEqual(open, [["r1"], [], ["r2"], []]);
      for (const id of ["f", "g", "h"]) await checkHeadIsFold(store, id);
    },
  },
];
