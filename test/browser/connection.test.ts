import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { Connection } from "../../studio/src/request/connection.ts";

const LOOK_MS = 5;

let server: Server | null = null;
let answer: { status: number; type: string } = { status: 200, type: "application/json" };
let port = 0;
let looks = 0;

async function listen(): Promise<void> {
  server = createServer((_request, response) => {
    response.writeHead(answer.status, { "content-type": answer.type, connection: "close" }).end("{}");
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  port = (server.address() as AddressInfo).port;
}

async function goAway(): Promise<void> {
  const gone = server;
  server = null;
  if (gone === null) return;
  gone.closeAllConnections();
  gone.close();
  await once(gone, "close");
}

function connectionTo(): Connection {
  looks = 0;
  const isThere = async (): Promise<boolean> => {
    looks++;
    return fetch(`http://127.0.0.1:${port}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  };
  return new Connection((url, init) => fetch(url, init), isThere, LOOK_MS);
}

/** Waits for a condition that becomes true, however busy the machine is. */
const until = (isTrue: () => boolean): Promise<unknown> => vi.waitUntil(isTrue, { timeout: 60_000, interval: 5 });

const ask = (connection: Connection, init: RequestInit = {}): Promise<Response> =>
  connection.fetch(`http://127.0.0.1:${port}/`, init);

afterEach(async () => {
  answer = { status: 200, type: "application/json" };
  await goAway();
  port = 0;
});

test("an unreachable server is lost until it is reachable again, and each return is counted once", async () => {
  await listen();
  const connection = connectionTo();
  const heard: boolean[] = [];
  connection.subscribe(() => heard.push(connection.read().lost));
  await ask(connection);
  expect(connection.read()).toEqual({ lost: false, returns: 0 });
  await goAway();
  await Promise.allSettled([ask(connection), ask(connection)]);
  await until(() => connection.read().lost && looks > 2);
  await listen();
  await until(() => !connection.read().lost);
  expect(connection.read().returns).toBe(1);
  expect(heard).toEqual([true, false]);
});

test("a failed request to a reachable server is no lost connection", async () => {
  await listen();
  const connection = connectionTo();
  await expect(connection.fetch("http://127.0.0.1:1/", {})).rejects.toThrow();
  await until(() => looks === 1);
  expect((await ask(connection)).ok).toBe(true);
  expect(connection.read()).toEqual({ lost: false, returns: 0 });
});

test("an aborted request does not count", async () => {
  const connection = connectionTo();
  await expect(ask(connection, { signal: AbortSignal.abort() })).rejects.toThrow();
  expect(looks).toBe(0);
});

test("a gateway error of a proxy is a lost connection, an error of the server is not", async () => {
  await listen();
  const connection = connectionTo();
  answer = { status: 503, type: "application/problem+json" };
  expect((await ask(connection)).status).toBe(503);
  expect(looks).toBe(0);
  answer = { status: 502, type: "text/html" };
  await ask(connection);
  await until(() => connection.read().lost);
  answer = { status: 200, type: "application/json" };
  await until(() => connection.read().returns === 1);
});
