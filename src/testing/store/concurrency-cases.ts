import assert from "node:assert/strict";
import type { AppendResult, SessionStore } from "../../session/store.ts";
import { checkHeadIsFold } from "../check-head-is-fold.ts";
import { openAgain, type StoreCase } from "../store-case.ts";
import { entriesOf, headOf, make } from "./store-checks.ts";
import { user } from "./drafts.ts";

const WRITERS = 50;

/** Cases: concurrent appends. */
export const concurrencyCases: readonly StoreCase[] = [
  {
    name: "stores all of fifty concurrent appends in one chain without a gap",
    async run({ store }) {
      await make(store, "a");
      const appends = Array.from({ length: WRITERS }, (_, i) => store.append("a", [user(`${i}`, { id: `e${i}` })]));
      await checkOneChain(store, await Promise.all(appends), WRITERS);
    },
  },
  {
    name: "keeps the entries of each of many concurrent appends together",
    async run({ store }) {
      await make(store, "a");
      const appends = Array.from({ length: 20 }, (_, i) =>
        store.append("a", [user(`${i}.0`), user(`${i}.1`), user(`${i}.2`)]),
      );
      const results = await Promise.all(appends);
      await checkOneChain(store, results, 60);
      for (const { entries } of results) {
        const [first = 0] = entries.map(({ seq }) => seq);
        assert.deepEqual(
          entries.map(({ seq }) => seq),
          [first, first + 1, first + 2],
        );
      }
    },
  },
  {
    name: "writes concurrent appends of one handle in the order of the calls",
    async run({ store }) {
      await make(store, "a");
      const ids = Array.from({ length: 20 }, (_, i) => `e${i}`);
      await Promise.all(ids.map((id) => store.append("a", [user(id, { id })])));
      assert.deepEqual(
        (await entriesOf(store, "a")).map(({ id }) => id),
        ids,
      );
    },
  },
  {
    name: "keeps concurrent appends to different sessions apart",
    async run({ store }) {
      const ids = Array.from({ length: 10 }, (_, i) => `s${i}`);
      await Promise.all(ids.map((id) => make(store, id)));
      await Promise.all(Array.from({ length: 100 }, (_, i) => store.append(`s${i % 10}`, [user(`${i}`)])));
      for (const [index, id] of ids.entries()) {
        const texts = (await entriesOf(store, id)).map((entry) => entry.type === "message" && entry.message.content);
        assert.deepEqual(
          texts,
          Array.from({ length: 10 }, (_, i) => `${i * 10 + index}`),
        );
        await checkHeadIsFold(store, id);
      }
    },
  },
  {
    name: "stores all concurrent appends of two handles in one chain without a gap",
    needs: "shared",
    async run(context) {
      const { store } = context;
      await make(store, "a");
      const other = await openAgain(context);
      const appends = Array.from({ length: WRITERS }, (_, i) =>
        (i % 2 === 0 ? store : other).append("a", [user(`${i}`, { id: `e${i}` })]),
      );
      await checkOneChain(store, await Promise.all(appends), WRITERS);
      assert.deepEqual(await entriesOf(other, "a"), await entriesOf(store, "a"));
      await checkHeadIsFold(other, "a");
    },
  },
  {
    name: "an append of one handle is immediately visible to another",
    needs: "shared",
    async run(context) {
      const { store } = context;
      const other = await openAgain(context);
      await make(store, "a");
      for (let i = 0; i < 10; i++) {
        const [writer, reader] = i % 2 === 0 ? [store, other] : [other, store];
        const { version, entries, head } = await writer.append("a", [user(`${i}`)]);
        assert.equal(version, i + 1);
        assert.deepEqual(await entriesOf(reader, "a", { after: i - 1 }), entries);
        assert.deepEqual(await reader.head("a"), head);
      }
      await checkHeadIsFold(other, "a");
    },
  },
  {
    name: "of two concurrent appends with the same expectedVersion through two handles, exactly one succeeds",
    needs: "shared",
    async run(context) {
      const { store } = context;
      const other = await openAgain(context);
      await make(store, "a");
      for (let version = 0; version < 10; version++) {
        const tries = [store, other].map((each, i) =>
          each.append("a", [user(`${version}.${i}`)], { expectedVersion: version }),
        );
        const results = await Promise.allSettled(tries);
        assert.equal(results.filter((result) => result.status === "fulfilled").length, 1);
      }
      assert.equal((await headOf(store, "a")).version, 10);
    },
  },
  {
    name: "checks an append against the writes and deletes of another handle, not against a stale cache",
    needs: "shared",
    async run(context) {
      const { store } = context;
      const other = await openAgain(context);
      await make(store, "a");
      await store.append("a", [user("1", { id: "e1" })]);
      await other.append("a", [user("2")], { expectedVersion: 1 });
      await store.append("a", [user("3")], { expectedVersion: 2 });
      assert.equal((await headOf(other, "a")).version, 3);
      await other.delete("a");
      await assert.rejects(store.append("a", [user("1", { id: "e1" })]), { code: "SESSION_NOT_FOUND" });
    },
  },
  {
    name: "two handles cannot create the same id, nor exceed maxOpenPerUser together",
    needs: "shared",
    async run(context) {
      const { store } = context;
      const other = await openAgain(context);
      const created = await Promise.allSettled([make(store, "a"), make(other, "a")]);
      assert.equal(created.filter((result) => result.status === "fulfilled").length, 1);
      const { header } = await headOf(store, "a");
      const tries = Array.from({ length: 10 }, (_, i) =>
        (i % 2 === 0 ? store : other).create({ ...header, id: `s${i}`, userId: "u" }, { maxOpenPerUser: 3 }),
      );
      assert.equal((await Promise.allSettled(tries)).filter((result) => result.status === "fulfilled").length, 3);
    },
  },
];

async function checkOneChain(store: SessionStore, results: readonly AppendResult[], count: number): Promise<void> {
  const entries = await entriesOf(store, "a");
  assert.deepEqual(
    entries.map(({ seq }) => seq),
    Array.from({ length: count }, (_, seq) => seq),
  );
  assert.deepEqual(
    entries.map(({ parentId }) => parentId),
    [null, ...entries.slice(0, -1).map(({ id }) => id)],
  );
  const returned = results.flatMap((result) => result.entries).sort((a, b) => a.seq - b.seq);
  assert.deepEqual(entries, returned);
  for (const { version, entries: own } of results) assert.equal(version, (own.at(-1)?.seq ?? 0) + 1);
  await checkHeadIsFold(store, "a");
}
