import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { Client } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { createHeader } from "../../src/session/log/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { PgConnection } from "../../src/stores/postgres/pg-connection.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { appendUntilDone, clients, END_OTHERS, openPool, openStore, rowsOf, startServer } from "./postgres-support.ts";
import { entriesOf, message } from "./store-support.ts";

test.for(clients)("stores every append exactly once while its connections are closed, with %s", async ([, open]) => {
  const server = await startServer();
  const stores = [await open(server.url), await open(server.url)];
  const work = appendThrough(stores);
  // The session must be created before the first connection is closed: `create` is not retried.
  await work.progress(1);
  for (let kill = 0; kill < 30; kill++) {
    await rowsOf(END_OTHERS, server.url);
    await wait(20);
  }
  await checkWork(stores, await work.stop());
});

test.for(clients)("appends again after restarts of the server, with %s", async ([, open]) => {
  const server = await startServer();
  const stores = [await open(server.url), await open(server.url)];
  const work = appendThrough(stores);
  for (let restart = 0; restart < 3; restart++) {
    await work.progress(20);
    await server.halt();
    await server.resume();
  }
  await work.progress(20);
  await checkWork(stores, await work.stop());
});

test("keeps every acknowledged entry when the server is killed", async () => {
  const server = await startServer();
  const stores = [await openStore({ url: server.url })];
  const work = appendThrough(stores);
  for (let crash = 0; crash < 3; crash++) {
    await work.progress(20);
    server.crash();
    await server.halt();
    await server.resume();
  }
  await work.progress(5);
  await checkWork(stores, await work.stop());
});

test("appends as soon as the server accepts connections again, if others had all of them", async () => {
  const server = await startServer();
  const { url } = server;
  // Fewer than the default, so that the test is short.
  await rowsOf("ALTER SYSTEM SET max_connections = 15", url);
  await server.halt();
  await server.resume();
  const store = await openStore({ url });
  await store.create(createHeader({ id: "a" }));
  const others = await connectAll(url);
  await others[0]?.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'skein'");
  others.push(...(await connectAll(url)));
  const appended = store.append("a", [message]);
  // The first attempts have no connection.
  await wait(200);
  await Promise.all(others.map((other) => other.end()));
  await expect(appended).resolves.toMatchObject({ version: 1 });
});

test("rejects, without ending the process, if a connection of pg breaks in the moment it is ready", async () => {
  // ReadyForQuery and the fatal error arrive in one packet.
  const ready = Buffer.from([82, 0, 0, 0, 8, 0, 0, 0, 0, 90, 0, 0, 0, 5, 73]);
  const fields = "SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0";
  const fatal = Buffer.concat([Buffer.from([69, 0, 0, 0, fields.length + 4]), Buffer.from(fields)]);
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.end(Buffer.concat([ready, fatal])));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const pool = openPool(`postgres://user@127.0.0.1:${port}/database`);
  const connection = new PgConnection(pool, true);
  await expect(connection.transaction((sql) => sql.query("SELECT 1", []))).rejects.toThrow();
  const handlers = { notified: () => {}, listening: () => {} };
  await expect(connection.listen("channel", handlers)).rejects.toThrow();
});

/** Appends with four concurrent writers, each retrying with the same id until it is acknowledged. */
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

async function checkWork(stores: readonly SessionStore[], { acknowledged, wrong }: Outcome): Promise<void> {
  expect(wrong).toEqual([]);
  for (const store of stores) {
    const ids = (await entriesOf(store, "a")).map(({ id }) => id);
    expect([...ids].sort()).toEqual([...acknowledged].sort());
    await checkHeadIsFold(store, "a");
  }
}

/** Connects until the server accepts no more connections. */
async function connectAll(url: string): Promise<Client[]> {
  for (const clients: Client[] = []; ; ) {
    const next = new Client(url);
    next.on("error", () => {});
    try {
      await next.connect();
    } catch {
      return clients;
    }
    clients.push(next);
  }
}
