import { setTimeout as wait } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import type { Entry } from "../../src/session/log/entry.ts";
import { createHeader } from "../../src/session/log/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { appendUntilDone, clients, END_OTHERS, openPool, openStore, rowsOf, startServer } from "./postgres-support.ts";
import { entriesOf, message } from "./store-support.ts";

const END_LISTENERS = `${END_OTHERS} AND query ILIKE 'listen%'`;

test.for(clients)(
  "a watcher yields entries that were appended while its LISTEN connection was lost, with %s",
  async ([, open]) => {
    const server = await startServer();
    const [here, there] = [await open(server.url), await openStore({ url: server.url })];
    await here.create(createHeader({ id: "a" }));
    const watcher = watch(here);
    await here.append("a", [message]);
    await watcher.until(1);
    for (let round = 0; round < 2; round++) {
      await rowsOf(END_LISTENERS, server.url);
      await there.append("a", [{ ...message, id: `lost-${round}` }]);
      await watcher.until(round + 2);
    }
    const stored = await entriesOf(there, "a");
    expect(watcher.seen).toEqual(stored);
  },
);

test.for(clients)(
  "a watcher yields all entries appended before and after a restart of the server, with %s",
  async ([, open]) => {
    const server = await startServer();
    const [here, there] = [await open(server.url), await openStore({ url: server.url })];
    await here.create(createHeader({ id: "a" }));
    const watcher = watch(here);
    await here.append("a", [message]);
    await watcher.until(1);
    await server.halt();
    await server.resume();
    for (let i = 0; i < 10; i++) await appendUntilDone(there, { ...message, id: `after-${i}` });
    await watcher.until(11);
    expect(watcher.seen).toEqual(await entriesOf(there, "a"));
  },
);

test("notifies a watcher of appends by another store, and sends no notification for a session without watchers", async () => {
  const server = await startServer();
  const [here, there] = [await openStore({ url: server.url }), await openStore({ url: server.url })];
  for (const id of ["watched", "unwatched"]) await here.create(createHeader({ id }));
  const notified: string[] = [];
  const pool = openPool(server.url);
  const client = await pool.connect();
  onTestFinished(() => client.release(true));
  client.on("notification", ({ payload }) => notified.push(payload ?? ""));
  await client.query("LISTEN skein_entries");
  const watcher = watch(here, "watched");
  await here.append("watched", [message]);
  for (let i = 0; i < 5; i++) {
    await there.append("unwatched", [message]);
    await there.append("watched", [message]);
  }
  await watcher.until(6);
  await client.query("SELECT 1");
  expect(notified.filter((payload) => !payload.startsWith(":"))).toEqual(Array(6).fill("watched"));
});

interface Watcher {
  readonly seen: readonly Entry[];
  until(count: number): Promise<void>;
}

/** Watches a session from its first entry until the test ends. Later appends through the same store wait until the watch has started. */
function watch(store: SessionStore, id = "a"): Watcher {
  const seen: Entry[] = [];
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort());
  const iterator = store.watch(id, { after: -1, signal: stopping.signal })[Symbol.asyncIterator]();
  let failed: unknown = null;
  const first = iterator.next();
  const collect = async (): Promise<void> => {
    for (let step = await first; step.done !== true; step = await iterator.next()) seen.push(step.value);
  };
  collect().catch((error: unknown) => {
    failed = error;
  });
  return {
    seen,
    async until(count) {
      while (seen.length < count) {
        if (failed !== null) throw failed;
        await wait(5);
      }
    },
  };
}
