import { expect, test } from "vitest";
import { createServer } from "../../src/http/index.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";

/** Sends a request to a server without the network. */
async function call(
  server: { fetch(request: Request): Promise<Response> },
  method: string,
  path: string,
  body?: object,
) {
  const headers = { "content-type": "application/json" };
  const init = body === undefined ? { method } : { method, headers, body: JSON.stringify(body) };
  const response = await server.fetch(new Request(`http://127.0.0.1${path}`, init));
  // biome-ignore lint/suspicious/noExplicitAny: what a test looks into is for the test to know.
  return { status: response.status, body: (await response.json()) as any };
}

test("a server with its own manager never expires a session", async () => {
  let now = new Date("2001-01-01T00:00:00.000Z");
  await using store = openMemoryStore({ clock: () => now });
  await store.create(createHeader({ id: "old" }));
  now = new Date();
  await using server = await createServer({ store });
  expect((await call(server, "GET", "/api/sessions/old")).body.status).toBe("active");
  const turn = { role: "user", content: "Still there?" };
  expect((await call(server, "POST", "/api/sessions/old/turns", turn)).status).toBe(201);
});

test("a server with its own manager does not limit the open sessions of a user", async () => {
  await using store = openMemoryStore();
  await using server = await createServer({ store });
  for (let made = 0; made < 101; made++) {
    const { status } = await call(server, "POST", "/api/sessions", { userId: "ann" });
    expect([made, status]).toEqual([made, 201]);
  }
});

test("a server with its own manager accepts a turn in a session of any length", async () => {
  await using store = openMemoryStore();
  await store.create(createHeader({ id: "long" }));
  const message = { role: "user", content: "Again." } as const;
  await store.append(
    "long",
    Array.from({ length: 1_000 }, () => ({ type: "message", message }) as const),
  );
  await using server = await createServer({ store });
  expect((await call(server, "POST", "/api/sessions/long/turns", message)).status).toBe(201);
});
