import { once } from "node:events";
import { createRequire } from "node:module";
import { request as sendRequest, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import express, { type ErrorRequestHandler, type RequestHandler, type Response } from "express";
import { describe, expect, test } from "vitest";
import { expressSession } from "../../src/http/express/index.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { casesWithoutContext, runWebCase, type WebAppInit, webCases } from "./middleware-cases.ts";
import type { WebApp } from "./web-app.ts";

describe("sessions in Express", () => {
  test.for(webCases)("$name", (webCase) => runWebCase(webCase, openExpressApp));
  test.for(casesWithoutContext)("without a context: $name", (webCase) =>
    runWebCase(webCase, openExpressApp, { withContext: false }),
  );

  test("are bound in listeners of events of a request or its answer", () =>
    runWebCase(
      {
        name: "events",
        async run({ url, routes }) {
          const finished = new Promise((resolve) => {
            routes.ended = resolve;
          });
          const request = sendRequest(`${url}/events`, { method: "POST" });
          request.flushHeaders();
          const [response] = await once(request, "response");
          request.end("late");
          const body: string[] = await response.setEncoding("utf8").toArray();
          const id = response.headers["x-session-id"];
          expect(body.join("")).toBe(`${id} ${id} ${id} `);
          expect(await finished).toBe(id);
        },
      },
      openExpressApp,
    ));
});

describe("beside express-session", () => {
  // Its types declare request.session in every program that imports them.
  const require = createRequire(import.meta.url);
  const theirs = require("express-session") as (options: object) => RequestHandler;
  const refusing: ErrorRequestHandler = (
    { code, message }: { code: string; message: string },
    _request,
    response,
    _next,
  ) => {
    response.status(500).json({ code, message });
  };

  /** The answer of an application whose handler counts visits in `request.session`, as with express-session. */
  async function visit(order: "theirs first" | "ours first", property?: string) {
    await using store = openMemoryStore();
    const ours = expressSession({
      manager: new SessionManager({ store }),
      ...(property !== undefined && { property }),
    });
    const other = theirs({ secret: "s", resave: false, saveUninitialized: false });
    const app = express();
    for (const part of order === "ours first" ? [ours, other] : [other, ours]) app.use(part);
    app.get("/", async (request, response) => {
      const held = request as unknown as Record<string, { state(): Promise<{ sessionId: string }> }>;
      const session = request.session as { visits?: number };
      session.visits = (session.visits ?? 0) + 1;
      response.json({ visits: session.visits, id: (await held[property ?? ""]?.state())?.sessionId });
    });
    app.use(refusing);
    const server = app.listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const first = await fetch(url);
      const cookie = first.headers
        .getSetCookie()
        .map((each) => each.split(";")[0])
        .join("; ");
      const second = await fetch(url, { headers: { cookie } });
      return [await first.json(), await second.json()];
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }

  test("Skein's middleware refuses a request whose property is already used", async () => {
    const message = expect.stringMatching(
      /^The property "session" of requests is already used, .* as in \{ property: "chat" \}\.$/,
    );
    expect((await visit("theirs first"))[0]).toEqual({ code: "INVALID_OPTION", message });
  });

  test("Skein's session refuses unknown fields, because express-session ignores a request that has a session", async () => {
    const message = expect.stringMatching(/^A request's session stores turns and no fields, so visits would be lost; /);
    expect((await visit("ours first"))[0]).toEqual({ code: "INVALID_OPTION", message });
  });

  test.for(["theirs first", "ours first"] as const)("both work if ours uses another property, %s", async (order) => {
    const [first, second] = await visit(order, "chat");
    expect(first).toEqual({ visits: 1, id: expect.any(String) });
    expect(second).toEqual({ visits: 2, id: (first as { id: string }).id });
  });
});

async function openExpressApp({
  manager,
  routes,
  parse,
  trustProxy = false,
  anonymousQuery = false,
}: WebAppInit): Promise<WebApp> {
  const app = express();
  // Otherwise Express prints every error to the console.
  app.set("env", "test").set("trust proxy", trustProxy);
  const parts = [
    expressSession({
      manager,
      ...(routes.context !== null && { ...(routes.context !== null && { context: routes.context }) }),
      user: ({ headers }) => headers["x-user"] as string | undefined,
      anonymousQuery,
    }),
    express.json(),
  ];
  for (const part of parse === "before" ? parts.reverse() : parts) app.use(part);
  app.get("/idle", (_request, response) => {
    response.writeHead(200, { "set-cookie": ["own=1"] }).end("idle");
  });
  app.post("/say", async ({ session, body }, response) => {
    response.json(await routes.say(session, body));
  });
  app.get("/steps", async ({ session }, response) => {
    response.json(await routes.steps(session));
  });
  app.get("/fail", ({ session }) => routes.fail(session));
  app.get("/stream", async ({ session }, response) => pipe(await routes.stream(session), response));
  app.get("/late", ({ session }, response) => pipe(routes.late(session), response));
  app.get("/endless", async ({ session }, response) => pipe(await routes.endless(session), response));
  app.get("/wait", async ({ session }, response) => {
    response.json(await routes.wait(session));
  });
  app.post("/events", async (request, response) => {
    await request.session.state();
    // Started before the body arrives, so that the body's events come from the socket alone.
    response.write(`${routes.bound()} `);
    request.on("data", () => response.write(`${routes.bound()} `));
    response.on("finish", () => routes.ended(routes.bound()));
    request.on("end", () => response.end(`${routes.bound()} `));
  });
  const server: Server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    server,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

async function pipe(chunks: AsyncIterable<string>, response: Response): Promise<void> {
  // The client may disconnect during it.
  await pipeline(Readable.from(chunks), response).catch(() => undefined);
}
