import assert from "node:assert/strict";
import { once } from "node:events";
import { request as sendRequest } from "node:http";
import { connect } from "node:net";
import { setImmediate } from "node:timers/promises";
import type { SessionConfig } from "../../src/lifecycle/session-config.ts";
import { SessionContext } from "../../src/lifecycle/session-context.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { Routes } from "./session-routes.ts";
import type { WebApp } from "./web-app.ts";

/*
 * The promises of the session middleware in every framework. Each framework has a small application with the same routes, behind
 * a real server; these cases send it requests.
 */

/** The parts of an application. */
export interface WebAppInit {
  readonly manager: SessionManager;
  readonly routes: Routes;
  /** Whether bodies are parsed before or after the session middleware. */
  readonly parse: "before" | "after";
  readonly trustProxy?: boolean;
  readonly anonymousQuery?: boolean;
}

/** An application on a new store, for the time of a test. */
export interface Trial extends WebApp {
  readonly manager: SessionManager;
  readonly routes: Routes;
}

/** A promise of the middleware. */
export interface WebCase {
  readonly name: string;
  readonly config?: Partial<SessionConfig>;
  readonly parse?: "before" | "after";
  readonly trustProxy?: boolean;
  readonly anonymousQuery?: boolean;
  /** Whether it needs a context. */
  readonly isAboutContext?: true;
  run(trial: Trial): Promise<void>;
}

/** Runs a case on a framework's application. */
export async function runWebCase(
  { config = {}, parse = "after", trustProxy = false, anonymousQuery = false, run }: WebCase,
  openApp: (init: WebAppInit) => Promise<WebApp>,
  { withContext = true }: { readonly withContext?: boolean } = {},
): Promise<void> {
  await using store = openMemoryStore();
  const manager = new SessionManager({ store, config });
  const routes = new Routes(withContext ? new SessionContext(manager) : null);
  const app = await openApp({ manager, routes, parse, trustProxy, anonymousQuery });
  try {
    await run({ ...app, manager, routes });
  } finally {
    await app.close();
  }
}

const COOKIE = /^skein_session=([0-9a-f-]{36}); HttpOnly; SameSite=Lax; Path=\/; Max-Age=86400$/;

/** Adds a turn, with the given headers. */
export async function say(
  { url }: Pick<WebApp, "url">,
  headers: Record<string, string> = {},
  path = "/say",
): Promise<{ readonly response: Response; readonly body: Record<string, unknown> }> {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: '{"text":"hello"}',
  });
  return { response, body: (await response.json()) as Record<string, unknown> };
}

/** All promises. */
export const webCases: readonly WebCase[] = [
  ...(["before", "after"] as const).map(
    (parse): WebCase => ({
      name: `creates a session on first use, with bodies parsed ${parse} it, and finds it again by cookie and header, and not by query`,
      isAboutContext: true as const,
      parse,
      async run(trial) {
        const first = await say(trial);
        const { id, userId } = first.body;
        assert.equal(first.response.headers.get("x-session-id"), id);
        const [cookie, ...more] = first.response.headers.getSetCookie();
        assert.deepEqual(more, []);
        assert.match(cookie ?? "", COOKIE);
        assert.equal(COOKIE.exec(cookie ?? "")?.[1], id);
        assert.deepEqual(first.body, { id, userId, isNew: true, bound: id, said: ["hello"] });
        assert.match(String(userId), /^anonymous:[0-9a-f-]{36}$/);
        const again = [
          await say(trial, { cookie: `other=1; skein_session=${id}` }),
          await say(trial, { "X-Session-ID": String(id) }),
        ];
        for (const [index, { response, body }] of again.entries()) {
          const said = Array.from({ length: index + 2 }, () => "hello");
          assert.deepEqual(body, { id, userId, isNew: false, bound: id, said });
          assert.equal(response.headers.get("x-session-id"), id);
          assert.deepEqual(response.headers.getSetCookie(), []);
        }
        assert.equal(await trial.manager.store.count(), 1);
        const linked = await say(trial, {}, `/say?session_id=${id}`);
        assert.equal(linked.body["isNew"], true);
        assert.notEqual(linked.body["id"], id);
        assert.notEqual(linked.body["userId"], userId);
      },
    }),
  ),
  {
    name: "finds the session of an anonymous visitor by the query only if anonymousQuery is set",
    anonymousQuery: true,
    async run(trial) {
      const { body } = await say(trial);
      const linked = await say(trial, {}, `/say?session_id=${body["id"]}`);
      assert.deepEqual([linked.body["id"], linked.body["isNew"]], [body["id"], false]);
      const { sessionId } = await trial.manager.create({ userId: "ann" });
      const hers = await say(trial, {}, `/say?session_id=${sessionId}`);
      assert.equal(hers.body["isNew"], true);
    },
  },
  {
    name: "stores nothing and sets no cookie if the handler does not use its session",
    async run({ url, manager }) {
      const response = await fetch(`${url}/idle`);
      assert.equal(await response.text(), "idle");
      assert.equal(response.headers.get("x-session-id"), null);
      assert.deepEqual(response.headers.getSetCookie(), ["own=1"]);
      assert.equal(await manager.store.count(), 0);
      const { sessionId } = await manager.create({ userId: "anonymous:x" });
      const found = await fetch(`${url}/idle`, { headers: { "x-session-id": sessionId } });
      assert.equal(found.headers.get("x-session-id"), sessionId);
    },
  },
  {
    name: "prefers the header to the query and the query to the cookie, and ignores unusable ids",
    async run(trial) {
      const { manager } = trial;
      const [a, b, c] = await Promise.all(["a", "b", "c"].map((id) => manager.create({ userId: "ann", id })));
      const as = (header: string, query: string, cookie: string) =>
        say(
          trial,
          { "x-user": "ann", "x-session-id": header, cookie: `skein_session=${cookie}` },
          `/say?session_id=${query}`,
        );
      assert.equal((await as("a", "b", "c")).body["id"], a?.sessionId);
      assert.equal((await as("nobody", "b", "c")).body["id"], b?.sessionId);
      assert.equal((await as("nobody", "__proto__", "c")).body["id"], c?.sessionId);
      await manager.close("a");
      await manager.suspend("b");
      const resumed = await as("a", "b", "c");
      assert.equal(resumed.body["id"], "b");
      assert.equal((await manager.getState("b"))?.status, "active");
      await manager.delete("c");
      await manager.create({ userId: "bob", id: "d" });
      await manager.create({ userId: "anonymous:someone", id: "e" });
      const made = await as("a", "d", "e");
      assert.equal(made.body["isNew"], true);
      assert.equal(made.body["userId"], "ann");
      assert.ok(!["a", "d", "e"].includes(String(made.body["id"])));
      assert.equal((await manager.getState("d"))?.turnCount, 0);
    },
  },
  {
    name: "gives each visitor a separate quota, and nobody another user's session",
    config: { maxSessionsPerUser: 1 },
    async run(trial) {
      const visits = await Promise.all(Array.from({ length: 5 }, () => say(trial)));
      assert.equal(new Set(visits.map(({ body }) => body["userId"])).size, 5);
      const ann = await say(trial, { "x-user": "ann" });
      const stolen = await say(trial, { "x-session-id": String(ann.body["id"]) });
      assert.notEqual(stolen.body["id"], ann.body["id"]);
      assert.deepEqual(stolen.body["said"], ["hello"]);
      assert.equal((await fetch(`${trial.url}/steps`, { headers: { "x-user": "ann" } })).status, 500);
      assert.equal((await fetch(`${trial.url}/steps`, { headers: { "x-user": "anonymous:ann" } })).status, 500);
      assert.equal(await trial.manager.store.count({ userId: "ann" }), 1);
    },
  },
  {
    name: "ignores ids that are too long, repeated or malformed",
    async run(trial) {
      const { manager, url } = trial;
      const { sessionId } = await manager.create({ userId: "anonymous:x" });
      const hostile = [
        "x".repeat(7000),
        "__proto__",
        "constructor",
        "../../etc/passwd",
        "%0d%0aSet-Cookie:a=b",
        '"',
        "é",
      ];
      for (const id of hostile.map(encodeURI)) {
        const { response, body } = await say(trial, { "x-session-id": id, cookie: `__proto__=1; skein_session=${id}` });
        assert.equal(response.status, 200);
        assert.equal(body["isNew"], true);
        assert.equal(response.headers.get("x-session-id"), body["id"]);
        assert.equal(response.headers.getSetCookie().length, 1);
      }
      const doubled = await say(
        trial,
        { cookie: `skein_session=; skein_session=stale; skein_session=${sessionId}; skein_session` },
        "/say?session_id=nothing&session_id",
      );
      assert.equal(doubled.body["id"], sessionId);
      assert.equal((await say(trial, {}, `/say?session_id=${"y".repeat(8000)}`)).response.status, 200);
      assert.equal(await rawStatus(url, `X-Session-ID: ${sessionId}\r\nX-Session-ID: ${sessionId}`), 200);
      assert.equal(await rawStatus(url, `X-Session-ID: ${sessionId}\rX-Smuggled: 1`), 400);
      assert.ok((await rawStatus(url, `Cookie: skein_session=${"z".repeat(100_000)}`)) >= 400);
    },
  },
  {
    name: "keeps the session bound for a handler whose body arrives long after the headers",
    isAboutContext: true,
    async run({ url, server }) {
      const reading = signal();
      server.once("request", (request) => request.once("resume", reading.resolve));
      const headers = { "content-type": "application/json", "transfer-encoding": "chunked" };
      const request = sendRequest(`${url}/say`, { method: "POST", headers });
      request.flushHeaders();
      await reading.promise;
      request.write('{"text":');
      await setImmediate();
      request.end('"late"}');
      const [response] = await once(request, "response");
      const [body] = await response.setEncoding("utf8").toArray();
      const { id, bound, said } = JSON.parse(body) as Record<string, unknown>;
      assert.deepEqual({ bound, said }, { bound: id, said: ["late"] });
    },
  },
  {
    name: "isolates 500 concurrent requests",
    isAboutContext: true,
    config: { maxSessionsPerUser: 1000 },
    async run({ url, manager, routes }) {
      const answers = await Promise.all(
        Array.from({ length: 500 }, async (_, index) => {
          const headers: Record<string, string> = index % 2 === 0 ? {} : { "x-user": `user-${index % 7}` };
          const response = await fetch(`${url}/steps`, { headers });
          const body = (await response.json()) as { id: string; userId: string; seen: string[] };
          assert.deepEqual(body.seen, [body.id]);
          assert.equal(response.headers.get("x-session-id"), body.id);
          if (index % 2 === 1) assert.equal(body.userId, headers["x-user"]);
          return body.id;
        }),
      );
      assert.equal(new Set(answers).size, 500);
      assert.equal(await manager.store.count(), 500);
      assert.equal(routes.bound(), "NO_SESSION");
    },
  },
  {
    name: "unbinds the session of a handler that throws, and still sends the client its id",
    isAboutContext: true,
    async run({ url, manager, routes }) {
      const response = await fetch(`${url}/fail`);
      assert.equal(response.status, 500);
      await response.text();
      const id = response.headers.get("x-session-id") ?? "";
      assert.equal((await manager.getState(id))?.status, "active");
      assert.equal(response.headers.getSetCookie().length, 1);
      await routes.unbound();
    },
  },
  {
    name: "keeps the session bound until a streamed answer has ended",
    isAboutContext: true,
    async run({ url, routes }) {
      const response = await fetch(`${url}/stream`);
      const id = response.headers.get("x-session-id");
      assert.equal(await response.text(), `${id} ${id} ${id} `);
      await routes.unbound();
    },
  },
  {
    name: "refuses to create a session after the answer has started",
    async run({ url, manager }) {
      const response = await fetch(`${url}/late`);
      assert.equal(await response.text(), "begun NO_SESSION");
      assert.equal(response.headers.get("x-session-id"), null);
      assert.equal(await manager.store.count(), 0);
      const { sessionId } = await manager.create({ userId: "anonymous:x" });
      const found = await fetch(`${url}/late`, { headers: { "x-session-id": sessionId } });
      assert.equal(await found.text(), "begun made");
    },
  },
  {
    name: "unbinds the session when the client disconnects during an answer",
    isAboutContext: true,
    async run({ url, routes }) {
      const ended = signal();
      routes.ended = ended.resolve;
      const request = sendRequest(`${url}/endless`).end();
      const [response] = await once(request, "response");
      await once(response, "data");
      response.on("error", () => undefined);
      request.destroy();
      await ended.promise;
      await routes.unbound();
    },
  },
  {
    name: "keeps the session bound when the client disconnects before the answer, until the handler has answered",
    isAboutContext: true,
    async run({ url, server, manager, routes }) {
      const [gate, arrived, ended, left] = [signal(), signal(), signal(), signal()];
      Object.assign(routes, { gate: gate.promise, arrived: arrived.resolve, ended: ended.resolve });
      server.once("request", (_request, response) => response.once("close", left.resolve));
      const request = sendRequest(`${url}/wait`).on("error", () => undefined);
      request.end();
      await arrived.promise;
      request.destroy();
      await left.promise;
      gate.resolve();
      const [session] = (await manager.list()).items;
      assert.equal(await ended.promise, session?.header.id);
      await routes.unbound();
    },
  },
  {
    name: "marks the cookie as secure if a trusted proxy reports https",
    trustProxy: true,
    async run(trial) {
      const { response } = await say(trial, { "x-forwarded-proto": "https" });
      assert.match(response.headers.getSetCookie()[0] ?? "", /; Secure$/);
      assert.match((await say(trial)).response.headers.getSetCookie()[0] ?? "", COOKIE);
    },
  },
  {
    name: "ignores the header of an untrusted proxy",
    async run(trial) {
      const { response } = await say(trial, { "x-forwarded-proto": "https" });
      assert.match(response.headers.getSetCookie()[0] ?? "", COOKIE);
    },
  },
  {
    name: "does nothing while sessions are disabled, and refuses to use one",
    config: { enabled: false },
    async run({ url, manager }) {
      const { sessionId } = await manager.create({ userId: "anonymous:x" });
      const response = await fetch(`${url}/idle`, { headers: { "x-session-id": sessionId } });
      assert.equal(response.headers.get("x-session-id"), null);
      assert.equal(await (await fetch(`${url}/late`)).text(), "begun NO_SESSION");
    },
  },
];

/** The promises that apply without a context, too. */
export const casesWithoutContext: readonly WebCase[] = webCases.filter((webCase) => webCase.isAboutContext !== true);

function signal(): { readonly promise: Promise<unknown>; readonly resolve: (value?: unknown) => void } {
  let resolve: (value?: unknown) => void = () => undefined;
  const promise = new Promise<unknown>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** The status of the answer to a request whose headers are sent unchanged. */
async function rawStatus(url: string, headers: string): Promise<number> {
  const { hostname, port, host } = new URL(url);
  const socket = connect(Number(port), hostname);
  try {
    let text = "";
    socket.setEncoding("latin1").on("error", () => undefined);
    socket.write(`GET /idle HTTP/1.1\r\nHost: ${host}\r\n${headers}\r\nConnection: close\r\n\r\n`);
    for await (const chunk of socket) text += chunk;
    return Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0);
  } finally {
    socket.destroy();
  }
}
