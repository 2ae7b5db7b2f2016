import assert from "node:assert/strict";
import type { LedgerHour } from "../../session/ledger.ts";
import { openAgain, type StoreCase } from "../store-case.ts";
import { makeThree } from "./append-cases.ts";

const page = (stamp: string, text = `text of ${stamp}`) => ({ stamp, text });
const bucket = (hour: number): LedgerHour => ({ hour, totalTokens: hour * 1000, cost: hour / 8 });

/** Cases: the ledger of budgets. */
export const ledgerCases: readonly StoreCase[] = [
  {
    name: "keeps one page for each user, and replaces it only by its stamp",
    needs: "ledger",
    async run({ store: { ledger } }) {
      assert.equal(await ledger.read("ada"), null);
      assert.equal(await ledger.replace("ada", "x", page("1"), null), false);
      assert.equal(await ledger.replace("ada", null, page("1"), null), true);
      assert.equal(await ledger.replace("ada", null, page("2"), null), false);
      assert.equal(await ledger.replace("ada", "other", page("2"), null), false);
      assert.deepEqual(await ledger.read("ada"), page("1"));
      assert.equal(await ledger.replace("ada", "1", page("2", 'a "text"\n\u{1f600}'), null), true);
      assert.deepEqual(await ledger.read("ada"), page("2", 'a "text"\n\u{1f600}'));
    },
  },
  {
    name: "compares the ids of users in the ledger exactly",
    needs: "ledger",
    async run({ store: { ledger } }) {
      const users = ["ada", "Ada", "ada ", "__proto__", "a/../b", "{ada}", "ä", "a\u0308", "%61da", "x".repeat(200)];
      for (const user of users) assert.equal(await ledger.replace(user, null, page(user), bucket(1)), true, user);
      for (const user of users) assert.deepEqual(await ledger.read(user), page(user));
    },
  },
  {
    name: "lets one of many concurrent callers replace a page of the ledger",
    needs: "ledger",
    async run({ store: { ledger } }) {
      for (const expected of [null, "first"]) {
        if (expected !== null) await ledger.erase("ada");
        if (expected !== null) await ledger.replace("ada", null, page(expected), null);
        const tries = Array.from({ length: 10 }, (_, i) => ledger.replace("ada", expected, page(`try ${i}`), null));
        const won = (await Promise.all(tries)).flatMap((isWritten, i) => (isWritten ? [`try ${i}`] : []));
        assert.equal(won.length, 1);
        assert.equal((await ledger.read("ada"))?.stamp, won[0]);
      }
    },
  },
  {
    name: "lets one of two handles replace a page of the ledger",
    needs: "shared-ledger",
    async run(context) {
      const [one, two] = [context.store.ledger, (await openAgain(context)).ledger];
      await one.replace("ada", null, page("0"), null);
      for (let round = 0; round < 5; round++) {
        const tries = [one, two, one, two].map((ledger, i) =>
          ledger.replace("ada", String(round), page(`${round}, try ${i}`), null),
        );
        assert.equal((await Promise.all(tries)).filter(Boolean).length, 1);
        const { stamp } = (await two.read("ada")) as { stamp: string };
        assert.deepEqual(await one.read("ada"), page(stamp));
        assert.equal(await two.replace("ada", stamp, page(String(round + 1)), null), true);
      }
    },
  },
  {
    name: "finds the last bucket of the ledger before an hour, and keeps the first one of an hour",
    needs: "ledger",
    async run({ store: { ledger } }) {
      assert.equal(await ledger.hourBefore("ada", 500_000), null);
      let before: string | null = null;
      for (const hour of [9, 100, 480_000]) {
        assert.equal(await ledger.replace("ada", before, page(String(hour)), bucket(hour)), true);
        before = String(hour);
      }
      assert.equal(await ledger.replace("ada", before, page("again"), { ...bucket(100), cost: 7 }), true);
      assert.equal(await ledger.hourBefore("ada", 9), null);
      assert.deepEqual(await ledger.hourBefore("ada", 10), bucket(9));
      assert.deepEqual(await ledger.hourBefore("ada", 480_000), bucket(100));
      assert.deepEqual(await ledger.hourBefore("ada", 480_001), bucket(480_000));
      assert.equal(await ledger.hourBefore("eve", 480_001), null);
    },
  },
  {
    name: "stores a bucket of the ledger only together with its page",
    needs: "ledger",
    async run({ store: { ledger } }) {
      await ledger.replace("ada", null, page("1"), null);
      assert.equal(await ledger.replace("ada", "other", page("2"), bucket(5)), false);
      assert.equal(await ledger.hourBefore("ada", 10), null);
    },
  },
  {
    name: "keeps the ledger when a session is deleted and purged, and erases that of one user only",
    needs: "ledger",
    async run({ store }) {
      const { ledger } = store;
      await makeThree(store);
      for (const user of ["ada", "eve"]) await ledger.replace(user, null, page(user), bucket(1));
      await store.delete("a");
      await store.purge({ sessionId: "a" });
      assert.deepEqual(await ledger.read("ada"), page("ada"));
      await ledger.erase("ada");
      await ledger.erase("ada");
      assert.equal(await ledger.read("ada"), null);
      assert.equal(await ledger.hourBefore("ada", 10), null);
      assert.deepEqual([await ledger.read("eve"), await ledger.hourBefore("eve", 10)], [page("eve"), bucket(1)]);
    },
  },
  {
    name: "a ledger outlives the store's handle",
    needs: "durable-ledger",
    async run(context) {
      await context.store.ledger.replace("ada", null, page("1"), bucket(1));
      await context.store.close();
      const { ledger } = await openAgain(context);
      assert.deepEqual([await ledger.read("ada"), await ledger.hourBefore("ada", 2)], [page("1"), bucket(1)]);
    },
  },
];
