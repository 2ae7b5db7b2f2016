import { fileURLToPath } from "node:url";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { createAgent, type Entry, SessionManager } from "skein";
import { honoSession, type SessionEnv } from "skein/hono";
import { createServer } from "skein/http";
import { offline } from "skein/offline";
import { openFleetStore } from "../fleet/fleet-store.ts";
import { readMemory, resetPeak } from "../read-memory.ts";
import { openStoreOf } from "../store-kind.ts";
import { type AppInput, PAGE_ENTRIES } from "./app-process.ts";
import { serveRevision } from "./serve-revision.ts";

const STREAMS_MAX = 10_000;
// This file is compiled to .cache/bench/bench/http/serve-app.js.
const STUDIO = fileURLToPath(new URL("../../../../dist/studio", import.meta.url));

/** Serves one application, for `startApp`, until the parent process has ended. */
export async function serveApp(input: AppInput): Promise<never> {
  process.on("message", (asked) => process.send?.(asked === "peak" ? resetPeak() : readMemory()));
  process.on("disconnect", () => process.exit(0));
  process.send?.(await start(input));
  return new Promise<never>(() => {});
}

/** Serves the application on a free port and resolves to its URL. */
async function start(input: AppInput): Promise<string> {
  const { kind, folder, sessionId } = input;
  if (kind === "revision") return serveRevision(input);
  if (kind === "plain") {
    const app = new Hono();
    app.get("/", (c) => c.json({ id: sessionId, turns: 10 }));
    return listen(app);
  }
  const config = { maxTurnsPerSession: Number.MAX_SAFE_INTEGER };
  const { server } = input;
  const store = await (server === undefined
    ? openStoreOf("sqlite", folder)
    : openFleetStore(server.url, server.prefix));
  const manager = new SessionManager({ store, config });
  if (kind === "session") {
    const app = new Hono<SessionEnv>();
    app.use(honoSession({ manager }));
    app.get("/", (c) => c.json({ id: c.get("session").id, turns: 10 }));
    app.get("/state", async (c) => {
      const { sessionId: id, turnCount: turns } = await c.get("session").state({ turns: false });
      return c.json({ id, turns });
    });
    return listen(app);
  }
  // All streams of the benchmark belong to one user.
  if (kind === "server") return (await createServer({ manager, limits: { streamsPerUser: STREAMS_MAX } })).listen();
  if (kind === "studio") {
    const agents = [createAgent({ name: "talker", prompt: "Talk.", model: offline(), builtInTools: false })];
    return (await createServer({ manager, agents, studioDirectory: STUDIO })).listen();
  }
  const items: Entry[] = [];
  for await (const entry of manager.store.read(sessionId, { limit: PAGE_ENTRIES })) items.push(entry);
  const app = new Hono();
  app.get("/", (c) => c.json({ items, next: String(PAGE_ENTRIES - 1) }));
  return listen(app);
}

function listen(app: { fetch(request: Request): Response | Promise<Response> }): Promise<string> {
  return new Promise((resolve) => {
    serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) => resolve(`http://127.0.0.1:${port}`));
  });
}
