import assert from "node:assert/strict";
import { createHeader } from "../../session/log/header.ts";
import type { ReadOptions } from "../../session/store.ts";
import { openAgain, type StoreCase } from "../store-case.ts";
import { makeThree } from "./append-cases.ts";
import { collect, entriesOf, headOf, make, refuses } from "./store-checks.ts";
import { label, leaf, name, user } from "./drafts.ts";

const LENGTH = 10;
const POSITIONS = [undefined, -1, 0, 1, 4, 8, 9, 10, 11, 1000] as const;
const LIMITS = [undefined, 0, 1, 3, 10, 1000] as const;

/** Cases: reading a log. */
export const readCases: readonly StoreCase[] = [
  {
    name: "reads any range of a log, forward and in reverse, also if the range exceeds the log",
    async run({ store }) {
      await make(store, "a");
      const { entries } = await store.append(
        "a",
        Array.from({ length: LENGTH }, (_, i) => user(`${i}`)),
      );
      for (const reverse of [false, true]) {
        for (const after of POSITIONS) {
          for (const before of POSITIONS) {
            for (const limit of LIMITS) {
              const options = given({ after, before, limit, reverse });
              const inRange = entries.filter(({ seq }) => seq > (after ?? -1) && seq < (before ?? LENGTH));
              const expected = (reverse ? inRange.reverse() : inRange).slice(0, limit);
              const actual = await entriesOf(store, "a", options);
              assert.deepEqual(actual, expected, `read(${JSON.stringify(options)})`);
            }
          }
        }
      }
    },
  },
  {
    name: "readJson returns the same entries as read, also of a fork, a hundred by default",
    async run({ store }) {
      await make(store, "a");
      const drafts = Array.from({ length: 120 }, (_, i) => user(`${i} "\\ \u2028 \0 \ud800 \u{1f600}`));
      await store.append("a", drafts);
      const { header } = await store.fork("a", createHeader());
      await store.append(header.id, [user("more")]);
      const parsed = async (id: string, options?: ReadOptions): Promise<unknown[]> =>
        (await store.readJson(id, options)).map((text): unknown => JSON.parse(text));
      for (const id of ["a", header.id]) {
        assert.deepEqual(await parsed(id), await entriesOf(store, id, { limit: 100 }));
        for (const options of [
          { after: 97 },
          { before: 3, reverse: true },
          { limit: 1001, reverse: true },
          { limit: 0 },
        ]) {
          assert.deepEqual(await parsed(id, options), await entriesOf(store, id, { limit: 100, ...options }));
        }
      }
      assert.deepEqual(await store.readJson("nobody"), []);
      await refuses(() => store.readJson("a", { limit: 1002 }), "INVALID_OPTION");
    },
  },
  {
    name: "reads a log in pages without missing or repeating an entry",
    async run({ store }) {
      await make(store, "a");
      await store.append(
        "a",
        Array.from({ length: 25 }, (_, i) => user(`${i}`)),
      );
      const forward: number[] = [];
      for (let pages = 0; pages < 10; pages++) {
        const page = await entriesOf(store, "a", { after: forward.at(-1) ?? -1, limit: 7 });
        forward.push(...page.map(({ seq }) => seq));
      }
      const backward: number[] = [];
      for (let pages = 0; pages < 10; pages++) {
        const page = await entriesOf(store, "a", { before: backward.at(-1) ?? 25, limit: 7, reverse: true });
        backward.push(...page.map(({ seq }) => seq));
      }
      assert.deepEqual(
        forward,
        Array.from({ length: 25 }, (_, i) => i),
      );
      assert.deepEqual(backward.reverse(), forward);
    },
  },
  {
    name: "yields nothing for a missing or deleted session",
    async run({ store }) {
      assert.deepEqual(await entriesOf(store, "nowhere"), []);
      await makeThree(store);
      await store.delete("a");
      assert.deepEqual(await entriesOf(store, "a"), []);
      assert.deepEqual(await entriesOf(store, "a", { reverse: true }), []);
    },
  },
  {
    name: "refuses an invalid range",
    async run({ store }) {
      await makeThree(store);
      const bad = [
        { after: -2 },
        { after: 1.5 },
        { after: "1" },
        { before: Number.NaN },
        { before: -2 },
        { limit: -1 },
        { limit: null },
        { reverse: 1 },
      ];
      for (const options of bad) await refuses(collect(store.read("a", options as ReadOptions)), "INVALID_OPTION");
    },
  },
  {
    name: "reads can be stopped early, and run concurrently",
    async run({ store }) {
      await make(store, "a");
      await store.append(
        "a",
        Array.from({ length: 100 }, (_, i) => user(`${i}`)),
      );
      for await (const entry of store.read("a")) if (entry.seq === 3) break;
      const counts = await Promise.all(
        Array.from({ length: 10 }, async (_, i) => (await entriesOf(store, "a", { limit: 10 * i + 5 })).length),
      );
      assert.deepEqual(
        counts,
        Array.from({ length: 10 }, (_, i) => 10 * i + 5),
      );
      const iterable = store.read("a", { after: 97 });
      assert.deepEqual(await collect(iterable), await collect(iterable));
    },
  },
  {
    name: "allows appends during a read",
    async run({ store }) {
      await makeThree(store);
      const seen: string[] = [];
      for await (const { id, seq } of store.read("a")) {
        seen.push(id);
        if (seq < 3) await store.append("a", [user(`after ${id}`)]);
      }
      assert.deepEqual(seen.slice(0, 3), ["1", "2", "3"]);
      assert.equal((await headOf(store, "a")).version, 6);
    },
  },
  {
    name: "getEntry returns an entry by its id, and null for an unknown id",
    async run({ store }) {
      await makeThree(store);
      await store.append("a", [label("1", "x", { id: "fact" })]);
      for (const entry of await entriesOf(store, "a")) assert.deepEqual(await store.getEntry("a", entry.id), entry);
      await make(store, "b");
      assert.equal(await store.getEntry("a", "nowhere"), null);
      assert.equal(await store.getEntry("b", "1"), null);
      assert.equal(await store.getEntry("nowhere", "1"), null);
      await store.delete("a");
      assert.equal(await store.getEntry("a", "1"), null);
    },
  },
  {
    name: "path returns the path summary of a node, and null for a fact or an unknown id",
    async run({ store }) {
      await makeThree(store);
      await store.append("a", [name("n", { id: "fact" }), leaf("1"), user("other", { id: "4" })]);
      const depths = await Promise.all(["1", "2", "3", "4"].map(async (id) => (await store.path("a", id))?.depth));
      assert.deepEqual(depths, [1, 2, 3, 2]);
      assert.equal(await store.path("a", "fact"), null);
      assert.equal(await store.path("a", "nowhere"), null);
      assert.equal(await store.path("nowhere", "1"), null);
      await store.delete("a");
      assert.equal(await store.path("a", "1"), null);
    },
  },
  {
    name: "the head of a missing or deleted session is null",
    async run({ store }) {
      assert.equal(await store.head("nowhere"), null);
      await makeThree(store);
      await store.delete("a");
      assert.equal(await store.head("a"), null);
    },
  },
  {
    name: "heads returns the same heads as single calls, in the requested order",
    async run({ store }) {
      await makeThree(store);
      await make(store, "b");
      const { header } = await store.fork("a", createHeader());
      await make(store, "gone");
      await store.delete("gone");
      const ids = [header.id, "b", "nowhere", "a", "gone", "b"];
      const alone = await Promise.all(ids.map((id) => store.head(id)));
      assert.deepEqual(await store.heads(ids), alone);
      assert.equal(alone[2], null);
      assert.equal(alone[4], null);
      await store.append("b", [user("more")]);
      assert.equal((await store.heads(["a", "b"]))[1]?.version, 1);
      assert.deepEqual(await store.heads([]), []);
      await refuses(() => store.heads(["a", "../a"]), "INVALID_ID");
    },
  },
  {
    name: "keeps all entries after the store was reopened",
    needs: "durable",
    async run(context) {
      await makeThree(context.store);
      await context.store.append("a", [leaf("1"), user("other", { id: "4" }), name("kept")]);
      const before = { head: await headOf(context.store, "a"), entries: await entriesOf(context.store, "a") };
      await context.store.close();
      const store = await openAgain(context);
      assert.deepEqual({ head: await headOf(store, "a"), entries: await entriesOf(store, "a") }, before);
      assert.equal((await store.append("a", [user("next")])).entries[0]?.parentId, "4");
    },
  },
];

function given(options: Record<string, unknown>): ReadOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
