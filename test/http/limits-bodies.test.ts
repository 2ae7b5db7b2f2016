import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { route, type ServerApp } from "../../src/http/server/route.ts";
import { list } from "../../src/http/server/schema.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { startTestServer, TOKENS, type TestServer, tokenOf } from "./server-support.ts";

const ANN = { token: tokenOf("ann") };
const ROOT = { token: tokenOf("root") };
const KIB = 1024;
let server: TestServer;
let base: string;
beforeAll(async () => {
  server = await startTestServer({
    tokens: TOKENS,
    limits: {
      rate: null,
      bodyBytesMax: 4 * KIB,
      contentBytesMax: 64 * KIB,
      contentPartsMax: 10,
      importBytesMax: 128 * KIB,
      bodyValuesMax: 1000,
      bodyBytesPerUser: 512 * KIB,
    },
  });
  base = `/api/sessions/${(await server.call("POST", "/api/sessions", {}, ANN)).body.header.id}`;
});
afterAll(async () => server[Symbol.asyncDispose]());

/** JSON with an exact number of bytes, padded with spaces. */
function padded(value: unknown, bytes: number): string {
  return JSON.stringify(value).padEnd(bytes);
}

const TEXT = { type: "text", text: "x" };
const SAID = { role: "user", content: "hello" };

describe("the bytes of a body", () => {
  test("have a limit for each kind of route", async () => {
    for (const [method, path, value, most] of [
      ["POST", "/api/sessions", {}, 4 * KIB],
      ["PATCH", base, {}, 4 * KIB],
      ["POST", `${base}/turns`, SAID, 64 * KIB],
      ["POST", `${base}/entries`, { entries: [{ type: "session_info", name: "n" }] }, 64 * KIB],
    ] as const) {
      expect((await server.call(method, path, padded(value, most), ANN)).status, path).toBeLessThan(300);
      const more = await server.call(method, path, padded(value, most + 1), ANN);
      expect(more.body, path).toMatchObject({ status: 413, code: "BODY_TOO_LARGE" });
    }
    for (const path of [`${base}/runs`, `${base}/steer`, `${base}/follow-ups`]) {
      expect((await server.call("POST", path, padded({ input: "a", content: "a" }, 64 * KIB), ANN)).status).not.toBe(
        413,
      );
      expect((await server.call("POST", path, padded({}, 64 * KIB + 1), ANN)).status).toBe(413);
    }
    const jsonl = { ...ANN, headers: { "content-type": "application/jsonl" } };
    const log = (await server.call("GET", `${base}/export`, undefined, ANN)).text;
    expect((await server.call("POST", "/api/import", log.padEnd(128 * KIB, "\n"), jsonl)).status).not.toBe(413);
    expect((await server.call("POST", "/api/import", log.padEnd(128 * KIB + 1, "\n"), jsonl)).status).toBe(413);
  });

  test("are not read before the caller is authenticated", async () => {
    const answer = await server.call("POST", "/api/sessions", padded({}, 5 * KIB), { token: "nobody's-token-000000" });
    expect(answer.status).toBe(401);
  });
});

describe("the contents of a body", () => {
  test("is limited in values and in depth on every route that accepts JSON", async () => {
    const document = (await server.call("GET", "/openapi.json")).body as Record<"paths", Record<string, object>>;
    let routes = 0;
    for (const [path, operations] of Object.entries(document.paths)) {
      for (const [method, operation] of Object.entries(operations as Record<string, { requestBody?: object }>)) {
        if (operation.requestBody === undefined) continue;
        const type = Object.keys((operation.requestBody as { content: object }).content)[0] as string;
        // Bytes are neither parsed nor held in memory.
        if (type === "application/octet-stream") continue;
        const options = { ...ANN, headers: { "content-type": type } };
        const at = path.replace(/\{\w+\}/g, "x");
        const deep = await server.call(method.toUpperCase(), at, `${"[".repeat(201)}${"]".repeat(201)}`, options);
        expect(deep.body, path).toMatchObject({
          status: 400,
          detail: expect.stringContaining("nests deeper than 200"),
        });
        routes++;
        if (type !== "application/json") continue;
        const wide = await server.call(method.toUpperCase(), at, `{"x":[${"1,".repeat(1000)}1]}`, options);
        expect(wide.body, path).toMatchObject({
          status: 400,
          detail: expect.stringContaining("more than 1000 values"),
        });
      }
    }
    expect(routes).toBeGreaterThan(20);
    const fits = `{"metadata":{"deep":${"[".repeat(190)}${"]".repeat(190)}}}`;
    expect((await server.call("POST", "/api/sessions", fits, ANN)).status).toBe(201);
  });

  test("is checked for its length first, and a check ends after ten problems", async () => {
    const turn = (content: unknown) => server.call("POST", `${base}/turns`, { role: "user", content }, ANN);
    expect((await turn(Array(10).fill(TEXT))).status).toBe(201);
    expect((await turn(Array(11).fill(1))).body.problems).toEqual([
      { path: "body.content", message: "This has more than 10 parts." },
    ]);
    const said = { type: "message", message: { role: "user", content: Array(11).fill(TEXT) } };
    const entries = await server.call("POST", `${base}/entries`, { entries: [said] }, ANN);
    expect(entries.body.problems[0].path).toBe("body.entries.0.message.content");
    for (const [path, name] of [
      ["/api/chat", "parts"],
      ["/agui/helper", "content"],
    ] as const) {
      const messages = [{ id: "m", role: "user", [name]: Array(11).fill(TEXT) }];
      const asked = await server.call("POST", path, { messages }, ANN);
      expect(asked.body.problems[0], path).toEqual({
        path: "body.messages.0",
        message: "This has more than 10 parts.",
      });
    }
    const wrong = await server.call("POST", `${base}/merges`, { branchId: "b", turnIds: Array(500).fill(1) }, ANN);
    expect(wrong.body.problems).toHaveLength(10);
    expect(wrong.body.problems[9].path).toBe("body.turnIds.9");
  });

  test("is refused with problems of bounded length, for any keys", async () => {
    const keys = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`key-${i}`, 1]));
    for (const body of [keys, { ["k".repeat(3000)]: 1 }]) {
      const answer = await server.call("POST", "/api/sessions", body, ANN);
      expect(answer.body).toMatchObject({ status: 400, code: "INVALID_REQUEST" });
      expect(answer.text.length).toBeLessThan(1000);
    }
  });

  test("and a query with more than 100 parameters are refused", async () => {
    const query = (count: number) => Array(count).fill("status=active").join("&");
    expect((await server.call("GET", `/api/sessions?${query(20)}`, undefined, ANN)).status).toBe(200);
    const more = await server.call("GET", `/api/sessions?${query(101)}`, undefined, ANN);
    expect(more.body).toMatchObject({ status: 400, detail: "The query has more than 100 parameters." });
  });

  test("a route with an unbounded list cannot be added", () => {
    const app = { hono: { on: () => {} }, routes: [] } as unknown as ServerApp;
    const about = { method: "post", path: "/api/x", operationId: "x", summary: "X.", answers: {} } as const;
    const handle = () => new Response();
    for (const body of [
      z.strictObject({ items: z.array(z.string()).max(3) }) as z.ZodType<object>,
      z.strictObject({
        deep: z.union([z.string(), z.strictObject({ map: z.record(z.string(), z.string()) })]),
      }) as z.ZodType<object>,
    ]) {
      expect(() => route(app, { ...about, body, handle })).toThrow("of any length");
    }
    route(app, { ...about, body: z.strictObject({ items: list(z.string(), 3).optional() }), handle });
    expect(app.routes).toHaveLength(1);
  });
});

describe("concurrent bodies", () => {
  test("of one user may use up to bodyBytesPerUser until they are answered, and other users are served", async () => {
    const store = openMemoryStore();
    const limits = { rate: null, contentBytesMax: 64 * KIB, bodyBytesMax: KIB, importBytesMax: KIB };
    const small = await startTestServer({ store, tokens: TOKENS, limits: { ...limits, bodyBytesPerUser: 100 * KIB } });
    await using _small = small;
    const sessionOf = async (who: string) => {
      const made = await small.call("POST", "/api/sessions", {}, { token: tokenOf(who) });
      return `/api/sessions/${made.body.header.id}`;
    };
    const [anns, bobs] = [await sessionOf("ann"), await sessionOf("bob")];
    const held = await holdBody(small.url, `${anns}/turns`, tokenOf("ann"), padded(SAID, 60 * KIB));
    const say = (path: string, who: string) =>
      small.call("POST", `${path}/turns`, padded(SAID, 60 * KIB), { token: tokenOf(who) });
    // The server may not have received the bytes yet; a request that arrives before them is accepted.
    await expect.poll(async () => (await say(anns, "ann")).status).toBe(429);
    const refused = await say(anns, "ann");
    expect(refused.body).toMatchObject({ status: 429, code: "TOO_MANY_BODIES" });
    expect(refused.headers.get("retry-after")).toBe("1");
    expect((await say(bobs, "bob")).status).toBe(201);
    expect((await small.call("POST", `${anns}/turns`, SAID, ANN)).status).toBe(201);
    expect(await held.finish()).toBe(201);
    expect((await say(anns, "ann")).status).toBe(201);
  });

  test("of all users may use up to bodyBytesAtOnce, and limits below the largest body are refused", async () => {
    const limits = { rate: null, contentBytesMax: 64 * KIB, bodyBytesMax: KIB, importBytesMax: KIB };
    const sizes = { bodyBytesPerUser: 70 * KIB, bodyBytesAtOnce: 100 * KIB };
    const small = await startTestServer({ tokens: TOKENS, limits: { ...limits, ...sizes } });
    await using _small = small;
    const session = (await small.call("POST", "/api/sessions", {}, ANN)).body.header.id;
    const held = await holdBody(small.url, `/api/sessions/${session}/turns`, tokenOf("ann"), padded(SAID, 60 * KIB));
    const say = () => small.call("POST", `/api/sessions/${session}/turns`, padded(SAID, 60 * KIB), ROOT);
    await expect.poll(async () => (await say()).status).toBe(503);
    expect((await say()).body).toMatchObject({ status: 503, code: "OVERLOADED" });
    expect(await held.finish()).toBe(201);
    await expect(startTestServer({ limits: { bodyBytesPerUser: KIB } })).rejects.toThrow("the largest body fits");
    await expect(startTestServer({ limits: { contentPartsMax: 10_001 } })).rejects.toThrow("limits.contentPartsMax");
  });
});

describe("declared spending", () => {
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
  const answer = { role: "assistant", content: "Done." };
  test.for([
    ["turns", { ...answer, cost: 1e308 }, "cost"],
    ["turns", { ...answer, tokensUsed: 5 }, "tokensUsed"],
    ["entries", { entries: [{ type: "message", message: { ...answer, cost: 1e308 } }] }, "cost"],
    ["entries", { entries: [{ type: "message", message: { ...answer, usage } }] }, "usage"],
    ["entries", { entries: [{ type: "branch_summary", fromId: "x", summary: "s", cost: 1 }] }, "cost"],
    [
      "entries",
      { entries: [{ type: "compaction", summary: "s", firstKeptEntryId: "x", tokensBefore: 1, usage }] },
      "usage",
    ],
  ] as const)(
    "is recorded by runs and administrators, and cannot be set in %s by others: %j",
    async ([path, body, field]) => {
      const refused = await server.call("POST", `${base}/${path}`, body, ANN);
      expect(refused.body).toMatchObject({ status: 403, code: "FORBIDDEN" });
      expect(refused.body.detail).toMatch(
        new RegExp(`^Only runs and administrators may set ${field}; leave it out of `),
      );
    },
  );

  test("is accepted from an administrator, and 0 from anyone", async () => {
    expect((await server.call("POST", `${base}/turns`, { ...answer, cost: 0, tokensUsed: 0 }, ANN)).status).toBe(201);
    const told = await server.call("POST", `${base}/turns`, { ...answer, cost: 2, tokensUsed: 5 }, ROOT);
    expect(told.body).toMatchObject({ cost: 2, usage: { totalTokens: 5 } });
  });
});

/** Sends a body without its last byte. */
async function holdBody(
  url: string,
  path: string,
  token: string,
  body: string,
): Promise<{ finish(): Promise<number> }> {
  let last = (): void => {};
  const rest = new Promise<void>((resolve) => {
    last = resolve;
  });
  const bytes = Buffer.from(body);
  let taken = (): void => {};
  const sent = new Promise<void>((resolve) => {
    taken = resolve;
  });
  const source = new ReadableStream<Uint8Array>({
    async pull(controller) {
      controller.enqueue(bytes.subarray(0, -1));
      taken();
      await rest;
      controller.enqueue(bytes.subarray(-1));
      controller.close();
    },
  });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const init = { method: "POST", headers, body: source, duplex: "half" } as RequestInit;
  const answered = fetch(`${url}${path}`, init).then(({ status }) => status);
  await sent;
  return {
    finish: () => {
      last();
      return answered;
    },
  };
}
