import { Hono } from "hono";
import { describe, expect, test } from "vitest";
import { honoSession, type SessionEnv } from "../../src/http/hono/index.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { casesWithoutContext, runWebCase, type WebAppInit, webCases } from "./middleware-cases.ts";
import { listen, streamOf, type WebApp } from "./web-app.ts";

describe("sessions in Hono", () => {
  test.for(webCases)("$name", (webCase) => runWebCase(webCase, openHonoApp));
  test.for(casesWithoutContext)("without a context: $name", (webCase) =>
    runWebCase(webCase, openHonoApp, { withContext: false }),
  );

  test("are refused if another middleware uses the variable, and work under another name", async () => {
    await using store = openMemoryStore();
    const manager = new SessionManager({ store });
    const problems: unknown[] = [];
    const taken = new Hono<{ Variables: { session: unknown } }>();
    taken.use(async (c, next) => {
      c.set("session", new Map());
      await next();
    });
    taken.use(honoSession({ manager }));
    taken.onError((error, c) => {
      problems.push(error);
      return c.body(null, 500);
    });
    expect((await taken.request("/")).status).toBe(500);
    expect(problems).toMatchObject([{ code: "INVALID_OPTION" }]);
    const app = new Hono<SessionEnv<"chat">>();
    app.use(honoSession({ manager, property: "chat" }));
    app.get("/", async (c) => c.text((await c.get("chat").state()).sessionId));
    expect(await (await app.request("/")).text()).toMatch(/^[0-9a-f-]{36}$/);
  });

  test("keep the headers of an immutable answer", async () => {
    await using store = openMemoryStore();
    const app = new Hono<SessionEnv>();
    app.use(honoSession({ manager: new SessionManager({ store }) }));
    app.get("/", async (c) => {
      await c.get("session").state();
      return Response.redirect("http://127.0.0.1/elsewhere", 303);
    });
    const response = await app.request("https://127.0.0.1/");
    expect(response.status).toBe(303);
    expect(response.headers.get("location")).toBe("http://127.0.0.1/elsewhere");
    expect(response.headers.getSetCookie()).toEqual([expect.stringMatching(/^skein_session=.*; Secure$/)]);
  });
});

async function openHonoApp({
  manager,
  routes,
  parse,
  trustProxy = false,
  anonymousQuery = false,
}: WebAppInit): Promise<WebApp> {
  const app = new Hono<SessionEnv>();
  if (parse === "before") {
    app.use(async (c, next) => {
      if (c.req.method === "POST") await c.req.json();
      await next();
    });
  }
  app.use(
    honoSession({
      manager,
      ...(routes.context !== null && { ...(routes.context !== null && { context: routes.context }) }),
      user: (c) => c.req.header("x-user"),
      trustProxy,
      anonymousQuery,
    }),
  );
  app.onError((_error, c) => c.text("failed", 500));
  app.get("/idle", (c) => c.body("idle", 200, { "set-cookie": "own=1" }));
  app.post("/say", async (c) => c.json(await routes.say(c.get("session"), await c.req.json())));
  app.get("/steps", async (c) => c.json(await routes.steps(c.get("session"))));
  app.get("/fail", (c) => routes.fail(c.get("session")));
  app.get("/stream", async (c) => c.body(streamOf(await routes.stream(c.get("session")))));
  app.get("/late", (c) => c.body(streamOf(routes.late(c.get("session")))));
  app.get("/endless", async (c) => c.body(streamOf(await routes.endless(c.get("session")))));
  app.get("/wait", async (c) => c.json(await routes.wait(c.get("session"))));
  return listen(app.fetch);
}
