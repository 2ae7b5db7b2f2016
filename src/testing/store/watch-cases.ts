import assert from "node:assert/strict";
import type { Entry } from "../../session/log/entry.ts";
import type { SessionStore, WatchOptions } from "../../session/store.ts";
import { openAgain, type StoreCase } from "../store-case.ts";
import { makeThree } from "./append-cases.ts";
import { collect, entriesOf, make, refuses, within } from "./store-checks.ts";
import { name, user } from "./drafts.ts";

/** Cases: watching a session. */
export const watchCases: readonly StoreCase[] = [
  {
    name: "a watch yields the entries that are appended after its call",
    async run({ store }) {
      await makeThree(store);
      const watcher = watch(store);
      const first = watcher.next();
      await store.append("a", [user("four", { id: "4" }), name("five", { id: "5" })]);
      assert.deepEqual(await first, await store.getEntry("a", "4"));
      assert.equal((await watcher.next()).id, "5");
      const later = watcher.next();
      await store.append("a", [user("six", { id: "6" })]);
      assert.equal((await later).id, "6");
      await watcher.end();
    },
  },
  {
    name: "a watch with after yields the stored entries after that position, and then new ones",
    async run({ store }) {
      await makeThree(store);
      for (const [after, ids] of [
        [-1, ["1", "2", "3", "4"]],
        [0, ["2", "3", "4"]],
        [2, ["4"]],
      ] as const) {
        const watcher = watch(store, { after });
        const seen = [];
        for (let i = 0; i < ids.length - 1; i++) seen.push((await watcher.next()).id);
        const last = watcher.next();
        await store.append("a", [user("four", { id: "4" })]);
        seen.push((await last).id);
        assert.deepEqual(seen, ids);
        await watcher.end();
      }
    },
  },
  {
    name: "a watch after a position beyond the log waits for it",
    async run({ store }) {
      await makeThree(store);
      const watcher = watch(store, { after: 4 });
      const next = watcher.next();
      for (const id of ["4", "5", "6"]) await store.append("a", [user(id, { id })]);
      assert.equal((await next).id, "6");
      await watcher.end();
    },
  },
  {
    name: "a watch misses and repeats nothing with fast writers and slow readers",
    async run({ store }) {
      await make(store, "a");
      const watchers = [watch(store), watch(store), watch(store)];
      const begun = watchers.map((watcher) => watcher.next());
      await Promise.all(Array.from({ length: 200 }, (_, i) => store.append("a", [user(`${i}`)])));
      const entries = await entriesOf(store, "a");
      for (const [index, watcher] of watchers.entries()) {
        const seen = [await begun[index]];
        while (seen.length < entries.length) seen.push(await watcher.next());
        assert.deepEqual(seen, entries);
        await watcher.end();
      }
    },
  },
  {
    name: "a watch yields no entries of other sessions, and none for a retry",
    async run({ store }) {
      await makeThree(store);
      await makeThree(store, "b");
      const watcher = watch(store);
      const next = watcher.next();
      await store.append("b", [user("not this")]);
      await store.append("a", [user("three", { id: "3" })]);
      await store.append("a", [user("this", { id: "4" })]);
      assert.equal((await next).id, "4");
      await watcher.end();
    },
  },
  {
    name: "a watch ends without an error when its signal aborts, at any time",
    async run({ store }) {
      await makeThree(store);
      assert.deepEqual(
        await within(collect(store.watch("a", { signal: AbortSignal.abort(), after: -1 })), "the end"),
        [],
      );
      const between = new AbortController();
      const seen: string[] = [];
      for await (const { id } of store.watch("a", { signal: between.signal, after: -1 })) {
        seen.push(id);
        if (id === "2") between.abort();
      }
      assert.deepEqual(seen, ["1", "2"]);
      const waiting = new AbortController();
      const watched = collect(store.watch("a", { signal: waiting.signal }));
      setTimeout(() => waiting.abort(), 10);
      assert.deepEqual(await within(watched, "the end"), []);
    },
  },
  {
    name: "a watch ends when its iterator is returned, also while it waits",
    async run({ store }) {
      await makeThree(store);
      for await (const { id } of store.watch("a", { after: -1 })) if (id === "1") break;
      const iterator = store.watch("a")[Symbol.asyncIterator]();
      const next = iterator.next();
      await within(Promise.resolve(iterator.return?.()), "the return");
      assert.equal((await within(next, "the end")).done, true);
    },
  },
  {
    name: "a watch ends when the session is deleted",
    async run({ store }) {
      await makeThree(store);
      const watcher = watch(store, { after: 1 });
      await watcher.next();
      await store.append("a", [user("four", { id: "4" })]);
      assert.equal((await watcher.next()).id, "4");
      const ended = watcher.ended();
      await store.delete("a");
      await ended;
    },
  },
  {
    name: "a watch ends when the store is closed",
    async run({ store }) {
      await makeThree(store);
      const watchers = [watch(store, { after: 1 }), watch(store, { after: 1 })];
      for (const watcher of watchers) assert.equal((await watcher.next()).id, "3");
      const ended = watchers.map((watcher) => watcher.ended());
      await store.close();
      await Promise.all(ended);
    },
  },
  {
    name: "refuses to watch a missing session, or with invalid options",
    async run({ store }) {
      await refuses(within(collect(store.watch("nowhere")), "the refusal"), "SESSION_NOT_FOUND", {
        sessionId: "nowhere",
      });
      await refuses(within(collect(store.watch("nowhere", { after: 3 })), "the refusal"), "SESSION_NOT_FOUND");
      await makeThree(store);
      for (const options of [{ after: -2 }, { after: 1.5 }, { after: "1" }, { signal: {} }, null]) {
        await refuses(within(collect(store.watch("a", options as WatchOptions)), "the refusal"), "INVALID_OPTION");
      }
    },
  },
  {
    name: "a watch yields the entries of two handles in order",
    needs: "shared",
    async run(context) {
      const { store } = context;
      const other = await openAgain(context);
      await makeThree(store);
      const watcher = watch(store, { after: 2 });
      const begun = watcher.next();
      for (let i = 0; i < 20; i++) await (i % 3 === 0 ? store : other).append("a", [user(`${i}`)]);
      const entries = await entriesOf(store, "a", { after: 2 });
      const seen = [await begun];
      while (seen.length < entries.length) seen.push(await watcher.next());
      assert.deepEqual(seen, entries);
      const quiet = watcher.next();
      await new Promise((resolve) => setTimeout(resolve, 300));
      await other.append("a", [user("late", { id: "late" })]);
      assert.equal((await quiet).id, "late");
      await watcher.end();
    },
  },
  {
    name: "a watch ends when another handle deletes the session",
    needs: "shared",
    async run(context) {
      const other = await openAgain(context);
      await makeThree(context.store);
      const watcher = watch(context.store, { after: 1 });
      assert.equal((await watcher.next()).id, "3");
      const ended = watcher.ended();
      await other.delete("a");
      await ended;
    },
  },
];

/** A watcher of session `a` with a timeout. */
function watch(store: SessionStore, options: WatchOptions = {}): Watcher {
  const iterator = store.watch("a", options)[Symbol.asyncIterator]();
  return {
    async next() {
      const result = await within(iterator.next(), "the next entry");
      assert.ok(result.done !== true, "the watch has ended");
      return result.value;
    },
    async ended() {
      assert.equal((await within(iterator.next(), "the end of the watch")).done, true);
    },
    async end() {
      await within(Promise.resolve(iterator.return?.()), "the end of the watch");
    },
  };
}

interface Watcher {
  next(): Promise<Entry>;
  ended(): Promise<void>;
  end(): Promise<void>;
}
