import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { problemIn, sendRaw } from "./raw-request.ts";
import { startTestServer, type TestServer } from "./server-support.ts";

const BODY_BYTES_MAX = 64 * 1024;
let server: TestServer;
let sessionId: string;
beforeAll(async () => {
  server = await startTestServer({
    limits: { bodyBytesMax: BODY_BYTES_MAX, headersTimeoutMs: 300, requestTimeoutMs: 600 },
  });
  sessionId = (await server.call("POST", "/api/sessions", {})).body.header.id;
});
afterAll(async () => server[Symbol.asyncDispose]());

/** The first lines of every raw request. */
function head(method: string, path: string, ...headers: readonly string[]): string {
  return [`${method} ${path} HTTP/1.1`, "Host: localhost", "Connection: close", ...headers, "", ""].join("\r\n");
}
const POST = ["POST", "/api/sessions", "Content-Type: application/json"] as const;
const sessionCount = async () => (await server.call("GET", "/api/sessions?limit=1000")).body.items.length;

describe("a body", () => {
  test("that is not JSON, or does not match the route's schema, is refused by name, and nothing changes", async () => {
    const before = await sessionCount();
    for (const [body, path] of [
      ["{", null],
      ['{"name":"\\ud800', null],
      ["[]", "body"],
      ["null", "body"],
      ['"text"', "body"],
      ['{"name":7}', "body.name"],
      ['{"metadata":[1]}', "body.metadata"],
      ['{"unknown":1}', "body"],
      ['{"__proto__":{"admin":true}}', "body"],
      ['{"cwd":""}', "body.cwd"],
    ] as const) {
      const answer = await server.call("POST", "/api/sessions", body);
      expect(answer.body, body).toMatchObject({ status: 400, code: "INVALID_REQUEST" });
      if (path !== null) expect(answer.body.problems[0].path).toBe(path);
    }
    expect(await sessionCount()).toBe(before);
  });

  test("with a hostile key in metadata is refused, and changes no prototype", async () => {
    for (const metadata of ['{"__proto__":{"polluted":1}}', '{"a":{"__proto__":{"polluted":1}}}']) {
      const answer = await server.call("POST", "/api/sessions", `{"metadata":${metadata}}`);
      expect(answer.body).toMatchObject({ status: 400, code: expect.stringMatching(/^INVALID_/) });
    }
    const kept = await server.call(
      "POST",
      "/api/sessions",
      '{"metadata":{"constructor":{"prototype":1},"toString":2}}',
    );
    expect(kept.body.header.metadata).toEqual({ constructor: { prototype: 1 }, toString: 2 });
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  test("that nests too deeply is refused", async () => {
    for (const depth of [250, 30_000]) {
      const body = `{"metadata":${'{"a":'.repeat(depth)}1${"}".repeat(depth)}}`;
      const answer = await server.call("POST", "/api/sessions", body.slice(0, BODY_BYTES_MAX * 10));
      expect([400, 413]).toContain(answer.status);
    }
    const deep = `${"[".repeat(5000)}${"]".repeat(5000)}`;
    expect((await server.call("POST", "/api/sessions", deep)).body.detail).toContain("nests deeper");
  });

  test("that is not UTF-8 is refused", async () => {
    const bytes = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]);
    const answer = await sendRaw(server.url, head(...POST, `Content-Length: ${bytes.length}`), bytes);
    expect(problemIn(answer)).toEqual({ status: 400, code: "INVALID_REQUEST" });
  });

  test("with a content-length above the limit is refused before it arrives", async () => {
    const answer = await sendRaw(server.url, head(...POST, "Content-Length: 1073741824"), "{");
    expect(problemIn(answer)).toEqual({ status: 413, code: "BODY_TOO_LARGE" });
  });

  test("that never ends is cut off soon after the limit, without a content-length", async () => {
    const before = await sessionCount();
    const sent = await sendEndless(
      server.url,
      head(...POST, "Transfer-Encoding: chunked").replace("Connection: close\r\n", ""),
    );
    expect(problemIn(sent.answer)).toEqual({ status: 413, code: "BODY_TOO_LARGE" });
    expect(sent.bytes).toBeLessThan(512 * 1024 * 1024);
    expect(await sessionCount()).toBe(before);
  });

  test("that is longer or shorter than its content-length creates no session", async () => {
    const before = await sessionCount();
    const longer = await sendRaw(server.url, head(...POST, "Content-Length: 4"), '{"name":"smuggled"}');
    expect(problemIn(longer).status).toBe(400);
    const shorter = await sendRaw(server.url, head(...POST, "Content-Length: 100"), "{}");
    expect(problemIn(shorter).status).toBe(408);
    const both = ["Content-Length: 2", "Transfer-Encoding: chunked"] as const;
    expect(problemIn(await sendRaw(server.url, head(...POST, ...both), "0\r\n\r\n")).status).toBe(400);
    expect(await sessionCount()).toBe(before);
  });
});

describe("a request", () => {
  test("whose headers never end is disconnected, and others are served meanwhile", async () => {
    const slow = sendRaw(server.url, "GET /api/me HTTP/1.1\r\nHost: localhost\r\nX-Slow: ");
    expect((await server.call("GET", "/api/me")).status).toBe(200);
    expect(problemIn(await slow).status).toBe(408);
  });

  test("with a line break in a header is refused, or has two headers", async () => {
    for (const header of ["X-A: a\rb", "X-A: a\nInjected: b\0", "X A: b", "X-A: \x01"]) {
      const answer = await sendRaw(server.url, head("GET", "/api/me", header));
      expect(problemIn(answer)).toEqual({ status: 400, code: "INVALID_REQUEST" });
    }
    const echoed = await sendRaw(server.url, head("GET", "/api/sessions/x%0d%0aSet-Cookie:%20a=b"));
    expect(echoed).not.toMatch(/^set-cookie/im);
    expect(problemIn(echoed).status).toBe(400);
  });

  test("with a query of 64 KB is refused as too long", async () => {
    const answer = await sendRaw(server.url, head("GET", `/api/sessions?cursor=${"x".repeat(64 * 1024)}`));
    expect(problemIn(answer)).toEqual({ status: 414, code: "URL_TOO_LONG" });
    const huge = await sendRaw(server.url, head("GET", "/api/me", `X-A: ${"x".repeat(256 * 1024)}`));
    expect(problemIn(huge)).toEqual({ status: 431, code: "INVALID_REQUEST" });
  });

  test("with .. in its path does not leave the directory", async () => {
    for (const path of [
      "/api/%2e%2e/%2e%2e/etc/passwd",
      "/../../etc/passwd",
      "/api/sessions/%2e%2e/state",
      "/api/sessions/..%2f..%2fetc%2fpasswd",
      "//evil.example/api/me",
      "/api/sessions/%",
      "/api/sessions/%zz/state",
      "/api/sessions/%c0%ae%c0%ae",
      "/api/sessions/%00",
      "/api//sessions",
      "/API/me",
      "/api/me/",
    ]) {
      const { status } = problemIn(await sendRaw(server.url, head("GET", path)));
      expect([400, 404], path).toContain(status);
    }
    for (const segment of ["%", "%zz", "%c0%ae", "%ff"]) {
      const answer = await sendRaw(server.url, head("GET", `/api/sessions/${sessionId}/entries/${segment}`));
      expect(problemIn(answer)).toEqual({ status: 400, code: "INVALID_REQUEST" });
    }
  });

  test("that is not HTTP, or has no host or several, is refused", async () => {
    expect(problemIn(await sendRaw(server.url, "\x16\x03\x01\x02hello\r\n\r\n")).status).toBe(400);
    const nameless = await sendRaw(server.url, "GET /api/me HTTP/1.1\r\nConnection: close\r\n\r\n");
    expect(problemIn(nameless)).toEqual({ status: 400, code: "INVALID_REQUEST" });
    const double = await sendRaw(
      server.url,
      "GET /api/me HTTP/1.1\r\nHost: a\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    expect([400, 403]).toContain(problemIn(double).status);
    const weird = await sendRaw(server.url, "GET /api/me HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n");
    expect([400, 403]).toContain(problemIn(weird).status);
  });

  test("with a wrong method gets the allowed ones, and an unknown path gets 404", async () => {
    const wrong = await server.call("DELETE", "/api/sessions");
    expect(wrong.body).toMatchObject({ status: 405, code: "METHOD_NOT_ALLOWED" });
    expect(wrong.headers.get("allow")).toBe("GET, HEAD, POST");
    const encoded = await server.call("PUT", `/api/sessions/${sessionId}/entries/a%2Fb`, {});
    expect(encoded.headers.get("allow")).toBe("GET, HEAD");
    expect((await server.call("GET", "/api/none")).body).toMatchObject({ status: 404, code: "ROUTE_NOT_FOUND" });
    expect((await server.call("PROPFIND", "/api/me")).status).toBe(405);
  });

  test("with an unknown, repeated or malformed query parameter is refused by name", async () => {
    for (const [path, part] of [
      ["/api/sessions?limit=0", "query.limit"],
      ["/api/sessions?limit=1001", "query.limit"],
      ["/api/sessions?limit=ten", "query.limit"],
      ["/api/sessions?limit=1&limit=2", "query.limit"],
      ["/api/sessions?status=happy", "query.status.0"],
      ["/api/sessions?deleted=yes", "query.deleted"],
      ["/api/sessions?__proto__=1", "query"],
      ["/api/me?x=1", "query"],
      [`/api/sessions/${sessionId}/entries?after=1.5`, "query.after"],
      [`/api/sessions/${sessionId}/entries?after=99999999999999999999`, "query.after"],
    ] as const) {
      const answer = await server.call("GET", path);
      expect(answer.body, path).toMatchObject({ status: 400, code: "INVALID_REQUEST" });
      expect(answer.body.problems[0].path).toBe(part);
    }
    expect((await server.call("GET", "/api/sessions?cursor=mine")).body).toMatchObject({
      status: 400,
      code: "INVALID_QUERY",
    });
  });

  test("for an unknown id gets a 404 with the code of its kind", async () => {
    for (const [path, code] of [
      ["/api/sessions/nobody", "SESSION_NOT_FOUND"],
      [`/api/sessions/${sessionId}/entries/nothing`, "UNKNOWN_ENTRY"],
      ["/api/checkpoints/nowhere", "CHECKPOINT_NOT_FOUND"],
      [`/api/sessions/${sessionId}/runs/never`, "RUN_NOT_FOUND"],
    ] as const) {
      expect((await server.call("GET", path)).body).toMatchObject({ status: 404, code });
    }
    expect((await server.call("GET", `/api/checkpoints/${"x".repeat(600)}`)).status).toBeGreaterThanOrEqual(400);
  });
});

/** Sends an endless body until the server closes the connection; the answer, and how many bytes it had read. */
async function sendEndless(url: string, start: string): Promise<{ readonly answer: string; readonly bytes: number }> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const chunks: Buffer[] = [];
  let open = true;
  socket.on("data", (chunk) => chunks.push(chunk));
  socket.on("error", () => {});
  socket.on("close", () => {
    open = false;
  });
  socket.write(start);
  const piece = Buffer.from(`10000\r\n${" ".repeat(0x10000)}\r\n`);
  while (open && socket.bytesWritten < 2 ** 31) {
    if (socket.write(piece)) await new Promise((resolve) => setImmediate(resolve));
    else await new Promise((resolve) => socket.once("drain", resolve).once("close", resolve));
  }
  socket.destroy();
  return { answer: Buffer.concat(chunks).toString("utf8"), bytes: socket.bytesWritten };
}
