import { setTimeout as pause } from "node:timers/promises";
import { Client } from "pg";
import { test } from "vitest";
import { expectFinished } from "./faulted-runs.ts";
import { END_OTHERS, openStore, startServer } from "./postgres-support.ts";

/** A short limit, so that the test is short. */
const STATEMENT_TIMEOUT_MS = 400;

type Server = Awaited<ReturnType<typeof startServer>>;

async function connect(url: string): Promise<Client> {
  const client = new Client(url);
  client.on("error", () => {});
  await client.connect();
  return client;
}

const faults = {
  "is restarted": async (server: Server) => {
    await server.halt();
    await server.resume();
  },
  "is killed and started again": async (server: Server) => {
    server.crash();
    await server.halt();
    await server.resume();
  },
  "closes all connections repeatedly": async ({ url }: Server) => {
    const client = await connect(url);
    for (let times = 0; times < 60; times++) {
      await client.query(END_OTHERS);
      await pause(10);
    }
    await client.end();
  },
  "accepts no writes for moments, as during a failover": async ({ url }: Server) => {
    const client = await connect(url);
    for (let times = 0; times < 40; times++) {
      await client.query(`ALTER SYSTEM SET default_transaction_read_only = ${times % 2 === 0 ? "on" : "off"}`);
      await client.query("SELECT pg_reload_conf()");
      await pause(20);
    }
    await client.end();
  },
  // Longer than the store retries.
  "is stopped for five seconds": async (server: Server) => {
    await server.halt();
    await pause(5000);
    await server.resume();
  },
};

test.for(Object.entries(faults))(
  "all runs finish and no effect happens twice when the PostgreSQL server %s",
  async ([, causeFault]) => {
    const server = await startServer();
    await expectFinished(await openStore({ url: server.url }), () => causeFault(server));
  },
);

test("all runs finish and no effect happens twice when the PostgreSQL server cancels statements that wait for a lock", async () => {
  const { url } = await startServer();
  // Creates the tables without the short limit.
  await openStore({ url });
  const store = await openStore({ url, statementTimeoutMs: STATEMENT_TIMEOUT_MS });
  await expectFinished(store, async () => {
    const client = await connect(url);
    for (let times = 0; times < 2; times++) {
      await client.query("BEGIN");
      await client.query("SELECT FROM skein.heads FOR UPDATE");
      // Until the middle of the statement that follows the cancelled one.
      await pause(STATEMENT_TIMEOUT_MS * 1.5);
      await client.query("COMMIT");
    }
    await client.end();
  });
});
