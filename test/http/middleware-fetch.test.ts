import { AsyncResource } from "node:async_hooks";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import type { RequestSession } from "../../src/http/middleware/request-session.ts";
import { sessionMiddleware, withSession } from "../../src/http/middleware/session-middleware.ts";
import { SessionContext } from "../../src/lifecycle/session-context.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { scripted } from "../../src/models/index.ts";
import { openJsonlStore } from "../../src/stores/jsonl/index.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { casesWithoutContext, runWebCase, type WebAppInit, webCases } from "./middleware-cases.ts";
import { listen, streamOf, type WebApp } from "./web-app.ts";
import type { Routes } from "./session-routes.ts";

describe("sessions of Web-standard handlers", () => {
  test.for(webCases)("$name", (webCase) => runWebCase(webCase, openFetchApp));
  test.for(casesWithoutContext)("without a context: $name", (webCase) =>
    runWebCase(webCase, openFetchApp, { withContext: false }),
  );
});

async function openFetchApp({
  manager,
  routes,
  parse,
  trustProxy = false,
  anonymousQuery = false,
}: WebAppInit): Promise<WebApp> {
  const user = ({ headers }: Request): string | null => headers.get("x-user");
  const { handle } = sessionMiddleware({
    manager,
    ...(routes.context !== null && { ...(routes.context !== null && { context: routes.context }) }),
    user,
    trustProxy,
    anonymousQuery,
  });
  return listen(async (request) => {
    const body = parse === "before" && request.method === "POST" ? await request.json() : null;
    const answer = handle(request, async ({ url, method }, session) => {
      const route = handlers[new URL(url).pathname.slice(1)];
      if (route === undefined) return new Response(null, { status: 404 });
      return route(routes, session, method === "POST" ? (body ?? (await request.json())) : null);
    });
    const { pathname } = new URL(request.url);
    // An error of the handler reaches the caller, who makes an answer without a session.
    return answer.catch(() => new Response(pathname, { status: 500 }));
  });
}

type Route = (routes: Routes, session: RequestSession, body: unknown) => Promise<Response>;

const handlers: Readonly<Record<string, Route>> = {
  idle: async () => new Response("idle", { headers: { "set-cookie": "own=1" } }),
  say: async (routes, session, body) => Response.json(await routes.say(session, body)),
  steps: async (routes, session) => Response.json(await routes.steps(session)),
  fail: async (routes, session) => {
    // A handler that wants to send the client its session id catches its own errors.
    await routes.fail(session).catch(() => undefined);
    return new Response("failed", { status: 500 });
  },
  stream: async (routes, session) => new Response(streamOf(await routes.stream(session))),
  late: async (routes, session) => new Response(streamOf(routes.late(session))),
  endless: async (routes, session) => new Response(streamOf(await routes.endless(session))),
  wait: async (routes, session) => Response.json(await routes.wait(session)),
};

describe("a handler with a session", () => {
  const open = () => {
    const manager = new SessionManager({ store: openMemoryStore() });
    return { manager, context: new SessionContext(manager) };
  };
  const get = (headers: Record<string, string> = {}, url = "http://127.0.0.1/") => new Request(url, { headers });
  const idOf = async (response: Promise<Response>): Promise<string> => (await (await response).json()) as string;
  const reply = async (_request: Request, session: RequestSession): Promise<Response> =>
    Response.json((await session.state()).sessionId);

  test("runs once, with its session bound; an error is rethrown and unbinds the session", async () => {
    const { manager, context } = open();
    let calls = 0;
    let look: () => unknown = () => "never bound";
    const failing = withSession(
      async (_request, session) => {
        calls++;
        await session.state();
        look = AsyncResource.bind(() => context.sessionId);
        expect(look()).toBe(session.id);
        throw new Error("as asked");
      },
      { manager, context },
    );
    await expect(failing(get())).rejects.toThrow("as asked");
    expect(calls).toBe(1);
    expect(look).toThrow(expect.objectContaining({ code: "NO_SESSION" }));
    expect(() => context.sessionId).toThrow(expect.objectContaining({ code: "NO_SESSION" }));
  });

  test("is bound until its answer is cancelled, or fails", async () => {
    const { manager, context } = open();
    let look: () => unknown = () => "never bound";
    const answer = async (chunks: () => AsyncIterable<string>) => {
      const handler = withSession(
        async (_request, session) => {
          await session.state();
          look = AsyncResource.bind(() => context.sessionId);
          return new Response(streamOf(chunks()));
        },
        { manager, context },
      );
      const response = await handler(get());
      return { id: response.headers.get("x-session-id"), reader: (response.body as ReadableStream).getReader() };
    };
    const dropped = await answer(async function* () {
      for (;;) yield context.sessionId;
    });
    expect(new TextDecoder().decode((await dropped.reader.read()).value)).toBe(dropped.id);
    expect(look()).toBe(dropped.id);
    await dropped.reader.cancel();
    expect(look).toThrow(expect.objectContaining({ code: "NO_SESSION" }));
    const failed = await answer(async function* () {
      yield context.sessionId;
      throw new Error("as asked");
    });
    await failed.reader.read();
    expect(look()).toBe(failed.id);
    await expect(failed.reader.read()).rejects.toThrow("as asked");
    expect(look).toThrow(expect.objectContaining({ code: "NO_SESSION" }));
  });

  test("creates one session, whether it uses the session, the context or both concurrently", async () => {
    const { manager, context } = open();
    const handler = withSession(
      async (_request, session) => {
        expect(session.id).toBeNull();
        const [one, two] = await Promise.all([context.getOrCreate("whoever"), session.state()]);
        expect(one.sessionId).toBe(two.sessionId);
        expect(one.userId).toBe("ann");
        expect(session.id).toBe(one.sessionId);
        return new Response(context.sessionId);
      },
      { manager, context, user: () => "ann" },
    );
    const response = await handler(get());
    expect(response.headers.get("x-session-id")).toBe(await response.text());
    expect(await manager.store.count()).toBe(1);
  });

  test("can run an agent synchronously, on a session that is created in the meantime and named by the answer", async () => {
    const { manager } = open();
    const agent = createAgent({ prompt: "Be brief.", model: scripted(["Hello!", "Again!"]), builtInTools: false });
    const handler = withSession(
      (_request, session) => {
        const run = session.run(agent, "Hi");
        return new Response(streamOf(texts(run)));
      },
      { manager },
    );
    const first = await handler(get());
    const id = first.headers.get("x-session-id") ?? "";
    expect(await first.text()).toBe("Hello!");
    await manager.suspend(id);
    const second = await handler(get({ "x-session-id": id }));
    expect(await second.text()).toBe("Again!");
    const state = await manager.getState(id);
    expect(state?.turns.filter(({ role }) => role !== "system").map(({ content }) => content)).toEqual([
      "Hi",
      "Hello!",
      "Hi",
      "Again!",
    ]);
  });

  test("has stored nothing if an agent cannot be run, and can retry to create a session", async () => {
    const { manager } = open();
    const limited = new SessionManager({ store: manager.store, config: { maxSessionsPerUser: 1 } });
    const taken = await limited.create({ userId: "ann" });
    const handler = withSession(
      async (_request, session) => {
        expect(() => session.run(undefined as never, "Hi")).toThrow(
          expect.objectContaining({ code: "INVALID_OPTION" }),
        );
        expect(session.id).toBeNull();
        await expect(session.addTurn({ role: "user", content: "Hi" })).rejects.toMatchObject({ code: "CAPACITY" });
        expect(session.id).toBeNull();
        await limited.close(taken.sessionId);
        return reply(_request, session);
      },
      { manager: limited, user: async () => "ann" },
    );
    const response = await handler(get());
    expect(await response.json()).toBe(response.headers.get("x-session-id"));
    expect(await manager.store.count({ userId: "ann" })).toBe(2);
  });

  test("opens the tree of its session, resumed, and refuses a turn on a session that was closed in the meantime", async () => {
    const { manager } = open();
    await manager.create({ userId: "ann", id: "s" });
    await manager.suspend("s");
    const handler = withSession(
      async (_request, session) => {
        expect((await session.state()).status).toBe("suspended");
        await (await session.tree()).setName("named");
        expect((await session.state({ turns: false })).name).toBe("named");
        await manager.close("s");
        await expect(session.addTurn({ role: "user", content: "Hi" })).rejects.toMatchObject({
          code: "SESSION_CLOSED",
        });
        await manager.delete("s");
        await expect(session.state()).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
        return new Response(null, { status: 204 });
      },
      { manager, user: () => "ann" },
    );
    expect((await handler(get({ "x-session-id": "s" }))).status).toBe(204);
  });

  test("sets the cookie by the config, the protocol and the options", async () => {
    const named = (config: object, more: object = {}, url?: string) => {
      const manager = new SessionManager({ store: openMemoryStore(), config });
      return withSession(reply, { manager, ...more })(get({}, url)).then(({ headers }) => headers.getSetCookie());
    };
    const end = (text: string) => [expect.stringMatching(text)];
    expect(await named({ sessionTtl: 60 })).toEqual(
      end("^skein_session=[^;]+; HttpOnly; SameSite=Lax; Path=/; Max-Age=60$"),
    );
    expect(await named({ sessionTtl: 0 })).toEqual(end("Max-Age=34560000$"));
    expect(await named({ cookieName: "__Host-s" }, {}, "https://127.0.0.1/")).toEqual(end("^__Host-s=.*; Secure$"));
    expect(await named({}, { secure: true })).toEqual(end("; Secure$"));
    expect(await named({}, { secure: false }, "https://127.0.0.1/")).toEqual(end("Max-Age=86400$"));
    expect(await named({ cookieName: null })).toEqual([]);
  });

  test("renews the cookie after half of its lifetime, only for clients that sent it, and not again until the next half", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: 0 });
    onTestFinished(() => void vi.useRealTimers());
    const manager = new SessionManager({ store: openMemoryStore(), config: { sessionTtl: 100 } });
    const talk = async (_request: Request, session: RequestSession): Promise<Response> => {
      await session.addTurn({ role: "user", content: "Still here." });
      return new Response(null, { status: 204 });
    };
    const handler = withSession(talk, { manager });
    const [first = ""] = (await handler(get())).headers.getSetCookie();
    const [cookie = ""] = first.split(";");
    const [, id = ""] = cookie.split("=");
    const ask = async (seconds: number, headers: Record<string, string> = { cookie }, ask = handler) => {
      vi.setSystemTime(seconds * 1000);
      return (await ask(get(headers))).headers.getSetCookie();
    };
    expect(await ask(49)).toEqual([]);
    expect(await ask(51, { "x-session-id": id })).toEqual([]);
    expect(await ask(51, { cookie: `other=${id}`, "x-session-id": id })).toEqual([]);
    expect(await ask(51)).toEqual([first]);
    expect(await ask(100)).toEqual([]);
    expect(await ask(101)).toEqual([first]);
    // Another process knows only when the session was created.
    const another = withSession(talk, { manager });
    expect(await ask(102, { cookie }, another)).toEqual([first]);
    expect(await ask(103, { cookie }, another)).toEqual([]);
  });

  test("reads the id only from the configured places", async () => {
    const manager = new SessionManager({
      store: openMemoryStore(),
      config: { headerName: "X-Chat", cookieName: "chat" },
    });
    await manager.create({ userId: "ann", id: "s" });
    const isNew = async (request: Request, more: object = {}) => {
      const handler = withSession((_request, session) => Response.json(session.isNew), {
        manager,
        user: () => "ann",
        ...more,
      });
      const response = await handler(request);
      return response.json();
    };
    expect(await isNew(get({ "x-chat": "s" }))).toBe(false);
    expect(await isNew(get({ cookie: "chat=s" }))).toBe(false);
    expect(await isNew(get({ "x-session-id": "s", cookie: "skein_session=s; xchat=s; chat=" }))).toBe(true);
    expect(await isNew(get({}, "http://127.0.0.1/?a=?session_id=s#?session_id=s"))).toBe(true);
    expect(await isNew(get({}, "http://127.0.0.1/?session_id=s"), { queryName: null })).toBe(true);
    expect(await isNew(get({}, "http://127.0.0.1/?chat_id=s"), { queryName: "chat_id" })).toBe(false);
  });

  test("looks up at most four ids, however many and long ids a request has", async () => {
    const { manager } = open();
    await manager.create({ userId: "anonymous:x", id: "known" });
    const isNew = async (header: string, ids: readonly string[]) => {
      const handler = withSession((_request, session) => Response.json(session.isNew), {
        manager,
        anonymousQuery: true,
      });
      const cookie = ids.map((id) => `skein_session=${id}`).join("; ");
      return (
        await handler(get({ cookie, "x-session-id": header }, `http://127.0.0.1/?${"session_id=q&".repeat(5000)}`))
      ).json();
    };
    const guesses = Array.from({ length: 5000 }, (_, index) => `guess-${index}`);
    expect(await isNew("x".repeat(100_000), ["a", "a", "b", "known", ...guesses])).toBe(false);
    expect(await isNew("x".repeat(100_000), ["a", "b", "c", "known"])).toBe(true);
    expect(await isNew("x", [...guesses, "known"])).toBe(true);
  });

  test("does not find an expired session", async () => {
    let now = new Date();
    const manager = new SessionManager({ store: openMemoryStore(), clock: () => now });
    const handler = withSession(reply, { manager });
    const id = await idOf(handler(get()));
    expect(await idOf(handler(get({ "x-session-id": id })))).toBe(id);
    now = new Date(now.getTime() + 86_401_000);
    expect(await idOf(handler(get({ "x-session-id": id })))).not.toBe(id);
  });

  test("ignores an unreadable session and reports it; a failing store is an error", async () => {
    const directory = await mkdtemp(join(tmpdir(), "skein-web-"));
    const reported: unknown[] = [];
    const onError = (error: unknown): void => void reported.push(error);
    const openHandler = async () => {
      const store = await openJsonlStore({ directory });
      return { store, handler: withSession(reply, { manager: new SessionManager({ store, onError }) }) };
    };
    const first = await openHandler();
    const id = await idOf(first.handler(get()));
    await first.store.close();
    const files = (await readdir(directory, { recursive: true })).filter((name) => name.includes(id));
    for (const name of files) await writeFile(join(directory, name), "not a session\n");
    const second = await openHandler();
    expect(await idOf(second.handler(get({ "x-session-id": id })))).not.toBe(id);
    expect(reported).toHaveLength(1);
    await second.store.close();
    await expect(second.handler(get({ "x-session-id": id }))).rejects.toMatchObject({ code: "STORE_CLOSED" });
    await rm(directory, { recursive: true });
  });

  test.for([
    [{}, /manager/],
    [{ user: "ann" }, /user/],
    [{ queryName: "" }, /queryName/],
    [{ secure: "yes" }, /secure/],
    [{ trustProxy: 1 }, /trustProxy/],
    [{ anonymousQuery: "yes" }, /anonymousQuery/],
  ] as const)("refuses invalid options: %j", ([wrong, message]) => {
    const manager = "user" in wrong || Object.keys(wrong).length > 0 ? open().manager : undefined;
    const make = () => withSession(reply, { manager, ...wrong } as never);
    expect(make).toThrow(message);
    expect(make).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
  });

  test("refuses a user id that is invalid, or reserved for anonymous visitors", async () => {
    const { manager } = open();
    const as = (user: unknown) => withSession(reply, { manager, user: () => user as string })(get());
    await expect(as("")).rejects.toMatchObject({ code: "INVALID_ID" });
    await expect(as("anonymous:1")).rejects.toMatchObject({ code: "INVALID_OPTION" });
    expect((await as(undefined)).status).toBe(200);
  });
});

async function* texts(run: AsyncIterable<{ readonly type: string }>): AsyncIterable<string> {
  for await (const event of run) if (event.type === "text-delta") yield (event as { text?: string }).text ?? "";
}
