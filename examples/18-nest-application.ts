// A Nest application with sessions: injected by the module, swept while the application runs, closed with it.
// Without a compiler for Nest's decorators, they are called like the functions that they are.
import assert from "node:assert/strict";
import { Body, Controller, Get, Inject, type MiddlewareConsumer, Module, Post, Req } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import type { TurnInput } from "skein/lifecycle";
import {
  type RequestSession,
  SessionContext,
  SessionHealthIndicator,
  SessionManager,
  SessionMiddleware,
  SessionModule,
} from "skein/nest";

/** Keeps notes without a session argument: the context has the session of the request. */
class NotesService {
  readonly #manager: SessionManager;
  readonly #context: SessionContext;

  constructor(manager: SessionManager, context: SessionContext) {
    this.#manager = manager;
    this.#context = context;
  }

  async add(content: string): Promise<number> {
    const { sessionId } = await this.#context.getOrCreate("nobody");
    await this.#manager.addTurn(sessionId, { role: "user", content } satisfies TurnInput);
    return (await this.#manager.getState(sessionId))?.turnCount ?? 0;
  }
}
Inject(SessionManager)(NotesService, undefined, 0);
Inject(SessionContext)(NotesService, undefined, 1);

class NotesController {
  readonly #notes: NotesService;
  readonly #health: SessionHealthIndicator;

  constructor(notes: NotesService, health: SessionHealthIndicator) {
    this.#notes = notes;
    this.#health = health;
  }

  async add({ session }: { session: RequestSession }, { note }: { note: string }): Promise<object> {
    const count = await this.#notes.add(note);
    return { count, isNew: session.isNew };
  }

  health(): Promise<object> {
    return this.#health.check();
  }
}
const descriptorOf = (name: "add" | "health") => Object.getOwnPropertyDescriptor(NotesController.prototype, name) ?? {};
Controller()(NotesController);
Inject(NotesService)(NotesController, undefined, 0);
Inject(SessionHealthIndicator)(NotesController, undefined, 1);
Post("notes")(NotesController.prototype, "add", descriptorOf("add"));
Req()(NotesController.prototype, "add", 0);
Body()(NotesController.prototype, "add", 1);
Get("health")(NotesController.prototype, "health", descriptorOf("health"));

class AppModule {
  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(SessionMiddleware).forRoutes("notes");
  }
}
Module({
  imports: [
    SessionModule.forRoot({
      config: { store: "sqlite:./notes.db", sessionTtl: 3600, cookieName: "notes" },
      requests: { user: ({ headers }) => headers["x-user"] as string | undefined },
    }),
  ],
  controllers: [NotesController],
  providers: [NotesService],
})(AppModule);

const app = await NestFactory.create(AppModule, { logger: ["error"] });
await app.listen(0, "127.0.0.1");
const url = await app.getUrl();
const add = (note: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${url}/notes`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ note }),
  });

const first = await add("Buy milk");
const [cookie = ""] = first.headers.getSetCookie();
console.log(cookie.replace(/=[^;]+/, "=…"));
assert.deepEqual(await first.json(), { count: 1, isNew: true });
const second = await add("Call Ann", { cookie: cookie.split(";")[0] ?? "" });
assert.deepEqual(await second.json(), { count: 2, isNew: false });

// A user with the cookie of a visitor does not get the visitor's session.
const other = await add("Hello", { cookie: cookie.split(";")[0] ?? "", "x-user": "ann" });
assert.deepEqual(await other.json(), { count: 1, isNew: true });

const health = (await (await fetch(`${url}/health`)).json()) as { sessions: { status: string } };
console.log(`sessions are ${health.sessions.status}`);
assert.equal(health.sessions.status, "up");

// The module opened the store, so it closes it, after the last request.
const manager = app.get(SessionManager);
await app.close();
await assert.rejects(manager.store.ping(), { code: "STORE_CLOSED" });
