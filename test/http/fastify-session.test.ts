import { createRequire } from "node:module";
import { Readable } from "node:stream";
import Fastify, { type FastifyPluginAsync, type FastifyRequest } from "fastify";
import { describe, expect, test } from "vitest";
import { fastifySession, type RequestSession } from "../../src/http/fastify/index.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { casesWithoutContext, runWebCase, type WebAppInit, webCases } from "./middleware-cases.ts";
import type { WebApp } from "./web-app.ts";

declare module "fastify" {
  interface FastifyRequest {
    session: RequestSession;
  }
}

describe("sessions in Fastify", () => {
  test.for(webCases)("$name", (webCase) => runWebCase(webCase, openFastifyApp));
  test.for(casesWithoutContext)("without a context: $name", (webCase) =>
    runWebCase(webCase, openFastifyApp, { withContext: false }),
  );

  test("apply to all routes beside the plugin, and not to a parent application", async () => {
    await using store = openMemoryStore();
    const app = Fastify();
    await app.register(async (inner) => {
      await inner.register(fastifySession, { manager: new SessionManager({ store }) });
      inner.get("/inside", async ({ session }) => ({ id: (await session.state()).sessionId }));
    });
    app.get("/outside", async ({ session }) => ({ session: session === undefined }));
    expect((await app.inject("/inside")).headers["x-session-id"]).toMatch(/^[0-9a-f-]{36}$/);
    expect((await app.inject("/outside")).json()).toEqual({ session: true });
    await app.close();
  });

  test("refuse to be registered if @fastify/session has the property, and work beside it under another name", async () => {
    await using store = openMemoryStore();
    const manager = new SessionManager({ store });
    // Its types declare request.session in every program that imports them.
    const require = createRequire(import.meta.url);
    const cookies = require("@fastify/cookie") as FastifyPluginAsync;
    const theirs = require("@fastify/session") as FastifyPluginAsync<Record<string, unknown>>;
    const withTheirs = async () => {
      const app = Fastify();
      await app.register(cookies);
      await app.register(theirs, { secret: "s".repeat(32), cookie: { secure: false } });
      return app;
    };
    const refusing = await withTheirs();
    refusing.register(fastifySession, { manager });
    await expect(refusing.ready()).rejects.toMatchObject({
      code: "INVALID_OPTION",
      message: expect.stringMatching(/^The property "session" of requests is already used, /),
    });
    const app = await withTheirs();
    await app.register(fastifySession, { manager, property: "chat" });
    app.get("/", async (request) => {
      const { session, chat } = request as unknown as { session: { visits?: number }; chat: RequestSession };
      session.visits = (session.visits ?? 0) + 1;
      return { visits: session.visits, id: (await chat.state()).sessionId };
    });
    const first = await app.inject("/");
    const kept = Object.fromEntries(first.cookies.map(({ name, value }) => [name, value]));
    expect((await app.inject({ url: "/", cookies: kept })).json()).toEqual({ visits: 2, id: first.json().id });
    await app.close();
  });

  test("refuse to be registered without a manager", async () => {
    const app = Fastify();
    app.register(fastifySession, {} as Parameters<typeof fastifySession>[1]);
    await expect(app.ready()).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });
});

async function openFastifyApp({
  manager,
  routes,
  parse,
  trustProxy = false,
  anonymousQuery = false,
}: WebAppInit): Promise<WebApp> {
  const app = Fastify({ trustProxy, forceCloseConnections: true });
  if (parse === "before") {
    // Reads the body from the socket before any hook of the plugin.
    app.addHook("onRequest", async (request) => {
      const chunks = await request.raw.toArray();
      if (chunks.length > 0) Object.assign(request, { early: Buffer.concat(chunks) });
    });
    app.addHook("preParsing", async (request) => Readable.from([(request as { early?: Buffer }).early ?? ""]));
  }
  const user = ({ headers }: FastifyRequest) => headers["x-user"] as string | undefined;
  await app.register(fastifySession, {
    manager,
    ...(routes.context !== null && { ...(routes.context !== null && { context: routes.context }) }),
    user,
    anonymousQuery,
  });
  app.get("/idle", (_request, reply) => reply.header("set-cookie", "own=1").send("idle"));
  app.post("/say", ({ session, body }) => routes.say(session, body));
  app.get("/steps", ({ session }) => routes.steps(session));
  app.get("/fail", ({ session }) => routes.fail(session));
  app.get("/stream", async ({ session }, reply) => reply.send(Readable.from(await routes.stream(session))));
  app.get("/late", ({ session }, reply) => reply.send(Readable.from(routes.late(session))));
  app.get("/endless", async ({ session }, reply) => reply.send(Readable.from(await routes.endless(session))));
  app.get("/wait", ({ session }) => routes.wait(session));
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  return { url, server: app.server, close: () => app.close() };
}
