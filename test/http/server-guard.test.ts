import { readdirSync, readlinkSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createServer } from "../../src/http/index.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { ALL_RIGHTS } from "../../src/http/caller-init.ts";
import { skipBecause } from "../skip.ts";
import { problemIn, sendRaw } from "./raw-request.ts";
import { startTestServer, TOKENS, type TestServer, tokenOf } from "./server-support.ts";

describe("without tokens, the server", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer();
  });
  afterAll(async () => server[Symbol.asyncDispose]());

  test("listens on loopback only", async () => {
    await using store = openMemoryStore();
    for (const host of ["0.0.0.0", "::", "192.168.1.1", "example.org"]) {
      await expect(createServer({ store, host })).rejects.toMatchObject({ code: "INVALID_OPTION" });
    }
    expect((await server.call("GET", "/api/me")).body).toEqual({ userId: "local", admin: true, may: ALL_RIGHTS });
  });

  test("refuses every request to another host than localhost, which a hostile page could have rebound", async () => {
    for (const host of ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example"]) {
      const answer = await sendRaw(server.url, `GET /api/me HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      expect(problemIn(answer)).toMatchObject({ status: 403, code: "FOREIGN_HOST" });
    }
    const { port } = new URL(server.url);
    for (const host of [`localhost:${port}`, `LOCALHOST:${port}`, `[::1]:${port}`, "127.0.0.1"]) {
      const answer = await sendRaw(server.url, `GET /api/me HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    }
  });

  test("refuses pages of other origins, also those of another port", async () => {
    for (const origin of ["http://evil.example", "null", "http://localhost:1", server.url.replace("http:", "https:")]) {
      for (const method of ["GET", "POST"]) {
        const answer = await server.call(method, "/api/sessions", {}, { headers: { origin } });
        expect(answer.body).toMatchObject({ status: 403, code: "FOREIGN_ORIGIN" });
        expect(answer.headers.get("access-control-allow-origin")).toBeNull();
      }
    }
    expect((await server.call("POST", "/api/sessions", {}, { headers: { origin: server.url } })).status).toBe(201);
    const cross = { "sec-fetch-site": "cross-site" };
    expect((await server.call("POST", "/api/sessions", {}, { headers: cross })).body.code).toBe("FOREIGN_ORIGIN");
    expect((await server.call("GET", "/api/me", undefined, { headers: cross })).body.code).toBe("FOREIGN_ORIGIN");
  });

  test("changes nothing for requests that a form of another site can send", async () => {
    const count = async () => (await server.call("GET", "/api/sessions?limit=1000")).body.items.length;
    const before = await count();
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]) {
      for (const path of ["/api/sessions", "/api/import", "/api/sessions/x/undelete"]) {
        const answer = await server.call("POST", path, "{}", { headers: { "content-type": type } });
        expect(answer.body).toMatchObject({ status: 415, code: "UNSUPPORTED_MEDIA_TYPE" });
      }
    }
    expect(await count()).toBe(before);
  });

  test("sends security headers for browsers with every answer", async () => {
    const paths = ["/", "/api/me", "/api/nothing", "/openapi.json", "/api/sessions/x"];
    for (const [method, path] of paths.flatMap((path) => [["GET", path] as const, ["HEAD", path] as const])) {
      const { headers } = await server.call(method, path);
      expect(headers.get("content-security-policy")).toMatch(/frame-ancestors 'none'/);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
      expect(headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
    }
  });
});

test("pages of an allowed origin may use the server, pages of other origins may not", async () => {
  await using server = await startTestServer({ tokens: TOKENS, allowedOrigins: ["https://studio.example.org"] });
  const ask = (method: string, origin: string, token?: string) =>
    server.call(method, "/api/me", undefined, { headers: { origin }, ...(token === undefined ? {} : { token }) });
  const asked = await fetch(`${server.url}/api/me`, {
    method: "OPTIONS",
    headers: { origin: "https://studio.example.org", "access-control-request-method": "GET" },
  });
  expect(asked.status).toBe(204);
  expect(asked.headers.get("access-control-allow-origin")).toBe("https://studio.example.org");
  expect(asked.headers.get("access-control-allow-headers")).toContain("authorization");
  const shared = await ask("GET", "https://studio.example.org", tokenOf("ann"));
  expect([shared.status, shared.headers.get("access-control-allow-origin")]).toEqual([
    200,
    "https://studio.example.org",
  ]);
  expect(shared.headers.get("vary")).toBe("origin");
  const other = await ask("GET", "https://evil.example", tokenOf("ann"));
  expect(other.headers.get("access-control-allow-origin")).toBeNull();
  await using store = openMemoryStore();
  await expect(createServer({ store, allowedOrigins: ["*"] })).rejects.toMatchObject({ code: "INVALID_OPTION" });
});

test("a caller over the rate limit is told when to retry, and others are not affected", async () => {
  await using server = await startTestServer({
    tokens: TOKENS,
    limits: { rate: { requestsPerSecond: 0.01, burst: 3 } },
  });
  const ask = (who: string) => server.call("GET", "/api/me", undefined, { token: tokenOf(who) });
  const statuses = [];
  for (let i = 0; i < 4; i++) statuses.push((await ask("ann")).status);
  expect(statuses).toEqual([200, 200, 200, 429]);
  const refused = await ask("ann");
  expect(refused.body.code).toBe("RATE_LIMITED");
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await ask("bob")).status).toBe(200);
  const guesses = [];
  for (let i = 0; i < 4; i++)
    guesses.push((await server.call("GET", "/api/me", undefined, { token: `guess-${i}` })).status);
  expect(guesses).toEqual([401, 401, 401, 429]);
  expect((await server.call("GET", "/api/health")).status).toBe(200);
});

test("the log has one line for each request, with the route's pattern and without secrets", async () => {
  await using server = await startTestServer({ tokens: TOKENS, limits: { rate: null } });
  const ann = { token: tokenOf("ann") };
  const { body } = await server.call("POST", "/api/sessions", { metadata: { key: "sk-secret" } }, ann);
  await server.call("GET", `/api/sessions/${body.header.id}/entries?after=3`, undefined, ann);
  await server.call("GET", "/api/me", undefined, { token: "wrong-secret" });
  await server.call("GET", "/api/none", undefined, ann);
  expect(server.log.map(({ level, method, route, status }) => [level, method, route, status])).toEqual([
    ["info", "POST", "/api/sessions", 201],
    ["info", "GET", "/api/sessions/:id/entries", 200],
    ["info", "GET", "none", 401],
    ["info", "GET", "none", 404],
  ]);
  for (const secret of [ann.token, "wrong-secret", "sk-secret", body.header.id]) {
    expect(JSON.stringify(server.log)).not.toContain(secret);
  }
});

test("a failure of the store is answered without its message, which is in the log under the request's id", async () => {
  const store = openMemoryStore();
  await using server = await startTestServer({ store });
  const list = store.list.bind(store);
  store.list = async () => {
    throw new TypeError("password=hunter2 at /var/lib/skein");
  };
  const broken = await server.call("GET", "/api/sessions");
  store.list = list;
  expect(broken.body).toMatchObject({ status: 500, code: "INTERNAL" });
  expect(broken.text).not.toMatch(/hunter2|var\/lib|at .*\.ts/);
  const requestId = broken.headers.get("x-request-id") as string;
  expect(broken.body.detail).toContain(requestId);
  expect(server.log.at(-1)).toMatchObject({ level: "error", requestId, error: expect.stringContaining("hunter2") });
  await store.close();
  expect((await server.call("GET", "/api/sessions")).body).toMatchObject({ status: 503, code: "STORE_CLOSED" });
  expect(await server.call("GET", "/api/health")).toMatchObject({ status: 503, body: { status: "unavailable" } });
});

test("the studio's files are served from their directory only", async () => {
  const parent = await mkdtemp(join(tmpdir(), "studio-"));
  onTestFinished(() => rm(parent, { recursive: true }));
  const directory = join(parent, "www");
  await mkdir(directory);
  await writeFile(join(parent, "secret.txt"), "secret");
  await writeFile(join(directory, "index.html"), "<!doctype html><title>Studio</title>");
  await writeFile(join(directory, "app.js"), "export {};");
  await writeFile(join(directory, ".env"), "secret");
  await symlink(join(parent, "secret.txt"), join(directory, "link.txt"));
  await using server = await startTestServer({ studioDirectory: directory });
  expect(await server.call("GET", "/")).toMatchObject({ status: 200, text: expect.stringContaining("Studio") });
  expect((await server.call("GET", "/sessions/abc")).text).toContain("Studio");
  const script = await server.call("GET", "/app.js");
  expect(script.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  const asked = [
    "/../secret.txt",
    "/%2e%2e/secret.txt",
    "/..%2fsecret.txt",
    "/%2e%2e%2fsecret.txt",
    "/x/..%5csecret.txt",
  ];
  for (const path of [...asked, "/link.txt", "/.env", "/missing.js", "/%00", "/%ff.txt"]) {
    const answer = await sendRaw(server.url, `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
    expect(answer, path).toMatch(/^HTTP\/1\.1 40[04] /);
    expect(answer).not.toContain("\r\n\r\nsecret");
  }
  expect((await server.call("GET", "/api/none")).body.code).toBe("ROUTE_NOT_FOUND");
  await expect(startTestServer({ studioDirectory: join(parent, "none") })).rejects.toMatchObject({
    code: "INVALID_OPTION",
  });
});

test("a HEAD request for a file does not leave the file open", async (context) => {
  if (process.platform !== "linux") skipBecause(context, "Which files a process has open is read from /proc.");
  const directory = await mkdtemp(join(tmpdir(), "studio-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  await writeFile(join(directory, "index.html"), "x".repeat(1_000_000));
  await using server = await startTestServer({ studioDirectory: directory });
  for (let i = 0; i < 5; i++) expect((await server.call("HEAD", "/")).headers.get("content-length")).toBe("1000000");
  await expect.poll(() => openFiles().filter((path) => path.startsWith(directory))).toEqual([]);
});

function openFiles(): string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      // The listing itself opens one.
      return [];
    }
  });
}
