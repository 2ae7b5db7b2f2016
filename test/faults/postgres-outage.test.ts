import { setTimeout as wait } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import type { PostgresServer } from "../../scripts/postgres.mjs";
import type { Entry } from "../../src/session/entry.ts";
import { SessionError } from "../../src/session/errors.ts";
import { createHeader } from "../../src/session/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { openPool, openStore, rowsOf, startServer } from "./postgres-support.ts";
import { entriesOf, message } from "./store-support.ts";

const OTHERS =
  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename IS NOT NULL";
const LISTENERS = `${OTHERS} AND query ILIKE 'listen%'`;

/** Ways to open a store on a server. */
const clients: readonly (readonly [name: string, open: (url: string) => Promise<SessionStore>])[] = [
  ["a url", (url) => openStore({ url })],
  ["a pool of pg", (url) => openStore({ sql: openPool(url) })],
];

test.for(clients)(
  "loses and repeats nothing while its connections are ended, with %s",
  { timeout: 120_000 },
  async ([, open]) => {
    const server = await startServer();
    const stores = [await open(server.url), await open(server.url)];
    const work = appendThrough(stores);
    for (let kill = 0; kill < 30; kill++) {
      await rowsOf(OTHERS, server.url);
      await wait(20);
    }
    await checkWork(stores, await work.stop());
  },
);

test.for(clients)("goes on after the server was restarted, with %s", { timeout: 120_000 }, async ([, open]) => {
  const server = await startServer();
  const stores = [await open(server.url), await open(server.url)];
  const work = appendThrough(stores);
  for (let restart = 0; restart < 3; restart++) {
    await work.progress(20);
    await server.halt();
    await server.resume();
  }
  await work.progress(20);
  const outcome = await work.stop();
  expect(outcome.failures).toBeGreaterThan(0);
  await checkWork(stores, outcome);
});

test("finds every acknowledged entry after the server was killed", async () => {
  const server = await startServer();
  const stores = [await openStore({ url: server.url })];
  const work = appendThrough(stores);
  for (let crash = 0; crash < 3; crash++) {
    await work.progress(20);
    server.crash();
    await server.halt();
    await resume(server);
  }
  await work.progress(5);
  await checkWork(stores, await work.stop());
}, 120_000);

test.for(clients)(
  "yields to a watcher what came while nobody listened, with %s",
  { timeout: 120_000 },
  async ([, open]) => {
    const server = await startServer();
    const [here, there] = [await open(server.url), await openStore({ url: server.url })];
    await here.create(createHeader({ id: "a" }));
    const watcher = watch(here);
    await here.append("a", [message]);
    await watcher.until(1);
    for (let round = 0; round < 5; round++) {
      await rowsOf(LISTENERS, server.url);
      await there.append("a", [{ ...message, id: `lost-${round}` }]);
      await watcher.until(round + 2);
    }
    const stored = await entriesOf(there, "a");
    expect(watcher.seen).toEqual(stored);
  },
);

test.for(clients)(
  "yields to a watcher all that came before, during and after a restart, with %s",
  { timeout: 120_000 },
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

test("tells a watcher at once what another process appends, and sends nothing for what nobody watches", async () => {
  const server = await startServer();
  const [here, there] = [await openStore({ url: server.url }), await openStore({ url: server.url })];
  for (const id of ["watched", "quiet"]) await here.create(createHeader({ id }));
  const heard: string[] = [];
  const pool = openPool(server.url);
  const client = await pool.connect();
  onTestFinished(() => client.release(true));
  client.on("notification", ({ payload }) => heard.push(payload ?? ""));
  await client.query("LISTEN skein_entries");
  const watcher = watch(here, "watched");
  await here.append("watched", [message]);
  for (let i = 0; i < 5; i++) {
    await there.append("quiet", [message]);
    await there.append("watched", [message]);
  }
  await watcher.until(6);
  await client.query("SELECT 1");
  expect(heard.filter((payload) => !payload.startsWith(":"))).toEqual(Array(6).fill("watched"));
}, 60_000);

/** Appends of many writers, each again with the same id until it is acknowledged. */
function appendThrough(stores: readonly SessionStore[]): {
  progress(count: number): Promise<void>;
  stop(): Promise<Outcome>;
} {
  const acknowledged: string[] = [];
  const wrong: unknown[] = [];
  let failures = 0;
  let running = true;
  const write = async (store: SessionStore, writer: number): Promise<void> => {
    for (let i = 0; running; i++) {
      const draft = { ...message, id: `w${writer}-${i}` };
      failures += await appendUntilDone(store, draft, (error) => wrong.push(error));
      acknowledged.push(draft.id);
    }
  };
  const made = (stores[0] as SessionStore).create(createHeader({ id: "a" }));
  const writers = made.then(() =>
    Promise.all([0, 1, 2, 3].map((i) => write(stores[i % stores.length] as SessionStore, i))),
  );
  return {
    async progress(count) {
      const goal = acknowledged.length + count;
      while (acknowledged.length < goal) await wait(5);
    },
    async stop() {
      running = false;
      await writers;
      return { acknowledged, wrong, failures };
    },
  };
}

interface Outcome {
  readonly acknowledged: readonly string[];
  readonly wrong: readonly unknown[];
  readonly failures: number;
}

/** Resolves to how many tries failed; `untyped` gets those that failed in a way that no caller could expect. */
async function appendUntilDone(
  store: SessionStore,
  draft: typeof message & { id: string },
  untyped: (error: unknown) => void = () => {},
): Promise<number> {
  for (let failures = 0; ; failures++) {
    try {
      await store.append("a", [draft]);
      return failures;
    } catch (error) {
      if (!(error instanceof SessionError) || error.code !== "STORE_FAILED") untyped(error);
      await wait(10);
    }
  }
}

async function checkWork(stores: readonly SessionStore[], { acknowledged, wrong }: Outcome): Promise<void> {
  expect(wrong).toEqual([]);
  for (const store of stores) {
    const ids = (await entriesOf(store, "a")).map(({ id }) => id);
    expect([...ids].sort()).toEqual([...acknowledged].sort());
    await checkHeadIsFold(store, "a");
  }
}

async function resume(server: PostgresServer): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await server.resume();
    } catch (error) {
      // What is left of the killed server may hold its memory for a moment.
      if (attempt === 20) throw error;
      await wait(200);
    }
  }
}

interface Watcher {
  readonly seen: readonly Entry[];
  until(count: number): Promise<void>;
}

/** Watches a session from its first entry on until the test ends. An append of the same store waits until it has begun. */
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
