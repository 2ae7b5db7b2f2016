import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  Body,
  Controller,
  type DynamicModule,
  Get,
  Inject,
  type INestApplication,
  type MiddlewareConsumer,
  Module,
  Post,
  Req,
} from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  type RequestSession,
  SESSION_STORE,
  SessionContext,
  SessionHealthIndicator,
  SessionManager,
  SessionMiddleware,
  SessionModule,
} from "../../src/http/nest/index.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { say } from "./middleware-cases.ts";

class ChatController {
  readonly manager: SessionManager;
  readonly context: SessionContext;
  readonly store: SessionStore;

  constructor(manager: SessionManager, context: SessionContext, store: SessionStore) {
    this.manager = manager;
    this.context = context;
    this.store = store;
  }

  async say({ session }: { session: RequestSession }, { text }: { text: string }): Promise<object> {
    await session.addTurn({ role: "user", content: text });
    const { sessionId, userId, turnCount } = await this.context.getOrCreate("whoever");
    const counted = await this.store.count({ userId: session.userId });
    return { id: sessionId, bound: this.context.sessionId, userId, turnCount, counted, isNew: session.isNew };
  }

  async fail({ session }: { session: RequestSession }): Promise<never> {
    await session.state();
    throw new Error("as asked");
  }
}

const method = (name: "say" | "fail") => Object.getOwnPropertyDescriptor(ChatController.prototype, name) ?? {};
Controller()(ChatController);
Post("say")(ChatController.prototype, "say", method("say"));
Get("fail")(ChatController.prototype, "fail", method("fail"));
Req()(ChatController.prototype, "say", 0);
Body()(ChatController.prototype, "say", 1);
Req()(ChatController.prototype, "fail", 0);
for (const [index, token] of [SessionManager, SessionContext, SESSION_STORE].entries()) {
  Inject(token)(ChatController, undefined, index);
}

const apps: INestApplication[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

async function openNestApp(sessions: DynamicModule): Promise<{ app: INestApplication; url: string }> {
  class AppModule {
    configure(consumer: MiddlewareConsumer): void {
      consumer.apply(SessionMiddleware).forRoutes("{*path}");
    }
  }
  Module({ imports: [sessions], controllers: [ChatController] })(AppModule);
  const app = await NestFactory.create(AppModule, { logger: false, abortOnError: false });
  apps.push(app);
  await app.listen(0, "127.0.0.1");
  return { app, url: await app.getUrl() };
}

describe("SessionModule", () => {
  test("provides a running application with store, manager, context and the sessions of its requests", async () => {
    const requests = {
      user: ({ headers }: { headers: NodeJS.Dict<string | string[]> }) => headers["x-user"] as string,
    };
    const trial = await openNestApp(SessionModule.stub({ requests, config: { cookieName: "chat" } }));
    const first = await say(trial, { "x-user": "ann" });
    const { id } = first.body;
    expect(first.body).toEqual({ id, bound: id, userId: "ann", turnCount: 0, counted: 1, isNew: true });
    expect(first.response.headers.get("x-session-id")).toBe(id);
    expect(first.response.headers.getSetCookie()).toEqual([expect.stringMatching(`^chat=${id}; HttpOnly`)]);
    const second = await say(trial, { "x-user": "ann", cookie: `chat=${id}` });
    expect(second.body).toMatchObject({ id, bound: id, turnCount: 1, isNew: false });
    const failed = await fetch(`${trial.url}/fail`);
    expect(failed.status).toBe(500);
    expect(failed.headers.get("x-session-id")).toMatch(/^[0-9a-f-]{36}$/);
    const context = trial.app.get(SessionContext);
    expect(() => context.sessionId).toThrow(expect.objectContaining({ code: "NO_SESSION" }));
    expect(trial.app.get(SessionManager).store).toBe(trial.app.get(SESSION_STORE));
  });

  test("isolates 100 concurrent requests", async () => {
    const trial = await openNestApp(SessionModule.stub());
    const answers = await Promise.all(Array.from({ length: 100 }, () => say(trial)));
    for (const { body, response } of answers) {
      expect(body["bound"]).toBe(body["id"]);
      expect(response.headers.get("x-session-id")).toBe(body["id"]);
    }
    expect(new Set(answers.map(({ body }) => body["id"])).size).toBe(100);
  });

  test("creates its options from other providers, sweeps from bootstrap to shutdown, and does not close a store that it was given", async () => {
    await using store = openMemoryStore();
    class ConfigModule {}
    Module({ providers: [{ provide: "TTL", useValue: 3600 }], exports: ["TTL"] })(ConfigModule);
    let now = Date.now() - 7_200_000;
    const expired: string[] = [];
    const sessions = SessionModule.forRootAsync({
      imports: [ConfigModule],
      inject: ["TTL"],
      useFactory: async (sessionTtl: number) => ({
        store,
        clock: () => new Date(now),
        config: { sessionTtl, cleanupInterval: 1 },
      }),
    });
    const { app } = await openNestApp(sessions);
    const manager = app.get(SessionManager);
    expect(manager.config.sessionTtl).toBe(3600);
    const swept = new Promise<void>((resolve) => {
      manager.events.on("expired", ({ sessionId }) => {
        expired.push(sessionId);
        resolve();
      });
    });
    const { sessionId } = await manager.create({ userId: "ann" });
    now = Date.now() + 7_200_000;
    await swept;
    expect(expired).toEqual([sessionId]);
    await app.close();
    expect((await store.head(sessionId))?.status).toBe("expired");
  });

  test("closes the store that it opened, after the background work of closed sessions", async () => {
    const directory = await mkdtemp(join(tmpdir(), "skein-nest-"));
    const lessons: number[] = [];
    const consolidator = {
      consolidate: async ({ turns }: { turns: readonly unknown[] }) => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        lessons.push(turns.length);
      },
    };
    const trial = await openNestApp(
      SessionModule.forRoot({ store: `sqlite:${join(directory, "s.db")}`, consolidator }),
    );
    const { body } = await say(trial);
    const manager = trial.app.get(SessionManager);
    await manager.close(String(body["id"]));
    await trial.app.close();
    expect(lessons).toEqual([1]);
    await expect(manager.store.ping()).rejects.toMatchObject({ code: "STORE_CLOSED" });
    const again = await openNestApp(SessionModule.configure({ store: `sqlite:${join(directory, "s.db")}` }));
    expect((await again.app.get(SessionManager).getState(String(body["id"])))?.status).toBe("closed");
    await again.app.close();
    await rm(directory, { recursive: true });
  });

  test("starts no timer as a stub, with sessions disabled or without sweeping; any other timer is stopped on shutdown", async () => {
    const started = vi.spyOn(globalThis, "setInterval");
    const stopped = vi.spyOn(globalThis, "clearInterval");
    const config = { cleanupInterval: 777 };
    const sweeps = () => started.mock.results.filter((_, call) => started.mock.calls[call]?.[1] === 777_000);
    for (const sessions of [
      SessionModule.stub({ config }),
      SessionModule.configure({ ...config, enabled: false }),
      SessionModule.forRoot({ config, enableCleanupScheduler: false }),
      SessionModule.configure(config, { enableCleanupScheduler: false }),
    ]) {
      await (await openNestApp(sessions)).app.close();
      expect(sweeps()).toEqual([]);
    }
    const { app } = await openNestApp(SessionModule.configure(config));
    const [sweep, ...more] = sweeps();
    expect(more).toEqual([]);
    expect(stopped).not.toHaveBeenCalledWith(sweep?.value);
    await app.close();
    expect(stopped).toHaveBeenCalledWith(sweep?.value);
    vi.restoreAllMocks();
  });

  test("is visible only to modules that import it, if isGlobal is false", async () => {
    expect(SessionModule.forRoot({ isGlobal: false }).global).toBe(false);
    expect(SessionModule.forRootAsync({ isGlobal: false, useFactory: () => ({}) }).global).toBe(false);
    expect(SessionModule.configure({}, { isGlobal: false }).global).toBe(false);
    expect(SessionModule.stub().global).toBe(true);
  });

  test("refuses invalid options before the application runs", async () => {
    const invalid = expect.objectContaining({ code: "INVALID_OPTION" });
    expect(() => SessionModule.forRoot({ sotre: "memory:" } as never)).toThrow(invalid);
    expect(() => SessionModule.forRootAsync({} as never)).toThrow(invalid);
    await expect(openNestApp(SessionModule.configure({ sessionTtl: -1 }))).rejects.toEqual(invalid);
    await expect(openNestApp(SessionModule.forRoot({ store: "nowhere:x" }))).rejects.toEqual(invalid);
    await expect(openNestApp(SessionModule.forRootAsync({ useFactory: () => null as never }))).rejects.toEqual(invalid);
  });
});

describe("SessionHealthIndicator", () => {
  test("is up while the store responds, and down if it is closed or too slow", async () => {
    const store = openMemoryStore();
    const { app } = await openNestApp(SessionModule.forRoot({ store, healthTimeoutMs: 20 }));
    const health = app.get(SessionHealthIndicator);
    expect(await health.check()).toEqual({ sessions: { status: "up", elapsedMs: expect.any(Number) } });
    const ping = store.ping;
    store.ping = () => new Promise(() => undefined);
    expect(await health.check("store")).toMatchObject({
      store: { status: "down", reason: expect.stringContaining("20 ms") },
    });
    expect(await health.check("store", { timeoutMs: 1 })).toMatchObject({
      store: { reason: expect.stringContaining(" 1 ms") },
    });
    store.ping = ping;
    await store.close();
    expect(await health.check()).toMatchObject({
      sessions: { status: "down", reason: expect.stringContaining("closed") },
    });
  });
});
