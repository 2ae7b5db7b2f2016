import { once } from "node:events";
import { request as sendRequest, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import express, { type Response } from "express";
import { describe, expect, test } from "vitest";
import { expressSession } from "../../src/http/express/index.ts";
import { casesWithoutContext, runWebCase, type WebApp, type WebAppInit, webCases } from "./middleware-cases.ts";

describe("sessions in Express", () => {
  test.for(webCases)("$name", (webCase) => runWebCase(webCase, openExpressApp));
  test.for(casesWithoutContext)("without a context: $name", (webCase) =>
    runWebCase(webCase, openExpressApp, { withContext: false }),
  );

  test("are bound in what listens to the events of a request or its answer", () =>
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

async function openExpressApp({
  manager,
  routes,
  parse,
  trustProxy = false,
  anonymousQuery = false,
}: WebAppInit): Promise<WebApp> {
  const app = express();
  // Otherwise Express tells the console of every error.
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
    // Begun before the body is there, so that the body's events come from the socket alone.
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
  // The client may leave in the middle.
  await pipeline(Readable.from(chunks), response).catch(() => undefined);
}
