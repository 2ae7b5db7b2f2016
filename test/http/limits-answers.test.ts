import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createHeader } from "../../src/session/log/header.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { startTestServer, TOKENS, type TestServer, tokenOf } from "./server-support.ts";

const MIB = 1024 * 1024;
const ANN = { token: tokenOf("ann") };
const TURNS = 6;
let server: TestServer;
beforeAll(async () => {
  const store = openMemoryStore();
  await store.create(createHeader({ id: "large", userId: "ann" }));
  for (let i = 0; i < TURNS; i++) {
    // Not only texts are large: the third entry has large arguments of a tool call.
    const text = `${i}`.repeat(3 * MIB);
    const said = { type: "message", id: `m${i}`, message: { role: "user", content: text } } as const;
    const toolCalls = [{ id: "c", name: "t", arguments: text }];
    const called = { type: "message", id: `m${i}`, message: { role: "assistant", content: null, toolCalls } } as const;
    await store.append("large", [i === 2 ? called : said]);
  }
  await store.create(createHeader({ id: "small", userId: "bob" }));
  // More than the system's socket buffers hold, and no more than an answer may have.
  await store.create(createHeader({ id: "wide", userId: "ann" }));
  for (let i = 0; i < 5; i++) {
    await store.append("wide", [{ type: "message", message: { role: "user", content: "w".repeat(3 * MIB) } }]);
  }
  const limits = { rate: null, answerBytesPerUser: 8 * MIB, answerTimeoutMs: 1500 };
  server = await startTestServer({ store, tokens: TOKENS, limits });
});
afterAll(() => server[Symbol.asyncDispose]());

/** Reads all pages; the ids of each. */
async function pagesOf(path: string, parameter: string): Promise<string[][]> {
  const pages: string[][] = [];
  let next: string | null = null;
  do {
    const at: string = next === null ? "" : `&${parameter}=${next}`;
    const { body } = await server.call("GET", `/api/sessions/large/${path}${at}`, undefined, ANN);
    pages.push((body.items as { id: string }[]).map(({ id }) => id));
    next = body.next;
  } while (next !== null);
  return pages;
}

test.for([
  ["entries?limit=1000", "after", ["m0", "m1", "m2", "m3", "m4", "m5"]],
  ["entries?limit=1000&reverse=true", "before", ["m5", "m4", "m3", "m2", "m1", "m0"]],
  ["path?limit=1000", "before", ["m5", "m4", "m3", "m2", "m1", "m0"]],
] as const)(
  "a page of %s ends before it gets too large, and a larger item is a page by itself",
  async ([path, parameter, ids]) => {
    const pages = await pagesOf(path, parameter);
    expect(pages.flat()).toEqual(ids);
    // A page holds 4 MiB, and each of them has 3.
    expect(pages).toHaveLength(TURNS);
  },
);

test("pages after an entry, and comparisons, have the first entries and report that there are more", async () => {
  const seen: string[] = [];
  for (let after: string | null = "m0"; after !== null; ) {
    const { body } = await server.call("GET", `/api/sessions/large/path?limit=1000&after=${after}`, undefined, ANN);
    expect(body.items).toHaveLength(1);
    seen.push(body.items[0].id);
    after = body.next;
  }
  expect(seen).toEqual(["m1", "m2", "m3", "m4", "m5"]);
  const { body } = await server.call("GET", "/api/sessions/large/comparison?withLeafId=m0&limit=1000", undefined, ANN);
  expect(body).toMatchObject({ ancestorId: "m0", left: { more: true, turns: 5 }, right: { more: false, items: [] } });
  expect(body.left.items.map(({ id }: { id: string }) => id)).toEqual(["m1"]);
});

test("the tree contains the beginning of each node's text, and nothing else of its content", async () => {
  const { body, text } = await server.call("GET", "/api/sessions/large/tree", undefined, ANN);
  expect(body.nodes.map(({ preview }: { preview: string }) => preview.length)).toEqual([121, 121, 0, 121, 121, 121]);
  expect(text.length).toBeLessThan(5000);
});

test.for(["state", "context", "analytics", "compaction"])(
  "%s of a session that is too large has no pages and is refused",
  async (path) => {
    const { body } = await server.call("GET", `/api/sessions/large/${path}`, undefined, ANN);
    expect(body).toMatchObject({ status: 413, code: "TOO_LARGE" });
    expect(body.detail).toContain("page by page");
  },
);

/** Sends a request and does not read the answer. */
async function ask(path: string, who: string): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${tokenOf(who)}` };
  const sent = request(`${server.url}${path}`, { headers, agent: false });
  sent.end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  response.on("error", () => {});
  return response;
}

test("a client that does not read gets at most answerBytesPerUser and is disconnected in time, and others are served", async () => {
  const held = await ask("/api/sessions/wide/state", "ann");
  expect(held.statusCode).toBe(200);
  const { body, headers } = await server.call("GET", "/api/sessions/large", undefined, ANN);
  expect(body).toMatchObject({ status: 429, code: "TOO_MANY_ANSWERS" });
  expect(headers.get("retry-after")).toBe("5");
  expect((await server.call("GET", "/api/sessions/small", undefined, { token: tokenOf("bob") })).status).toBe(200);
  await expect.poll(async () => (await server.call("GET", "/api/sessions/large", undefined, ANN)).status).toBe(200);
  held.destroy();
});

test("a client that reads slowly gets the whole answer", async () => {
  const response = await ask("/api/sessions/large/export", "ann");
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    // So slowly that the whole answer takes longer than the timeout for buffered data.
    if (Math.floor(bytes / MIB) < Math.floor((bytes + chunk.length) / MIB)) {
      await new Promise((resolve) => setTimeout(resolve, 120));
    }
    bytes += chunk.length;
  }
  expect(bytes).toBeGreaterThan(TURNS * 3 * MIB);
});
