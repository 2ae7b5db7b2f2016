import { serve } from "@hono/node-server";
import { serveStatic } from "@hono/node-server/serve-static";
import { Hono } from "hono";
import { createAgent, defineTool, openManager } from "skein";
import { createServer } from "skein/http";
import { chatHandler } from "skein/ui";
import { z } from "zod";

const orders = new Map([["4711", { state: "packed", euros: 20 }]]);
const findOrder = defineTool({
  name: "find_order",
  description: "Finds one order by its number.",
  parameters: z.object({ number: z.string() }),
  effects: "reads",
  idempotent: true,
  execute: ({ number }) => orders.get(number) ?? { error: `There is no order ${number}.` },
});
const cancelOrder = defineTool({
  name: "cancel_order",
  description: "Cancels an order. The customer is asked first.",
  parameters: z.object({ number: z.string() }),
  needsApproval: true,
  execute: ({ number }) => `Order ${number} is cancelled.`,
});

const common = { model: "openai/gpt-5-mini", builtInTools: false, budget: { totalTokens: 100_000 } };
const agents = [
  createAgent({ ...common, name: "orders", prompt: "You look after orders.", tools: [findOrder, cancelOrder] }),
  createAgent({ ...common, name: "shop", prompt: "You answer questions about the shop." }),
];
const triage = createAgent({ ...common, name: "triage", prompt: "Say which agent answers a customer best." });
const Triage = z.object({ agent: z.enum(["orders", "shop"]), urgent: z.boolean() });

const userOf = (headers) => /(?:^|; )user=(\w+)/.exec(headers.get("cookie") ?? "")?.[1];
const manager = await openManager({
  store: process.env.STORE ?? "sqlite:./chats.db",
  config: { maxSessionsPerUser: 2, maxTurnsPerSession: 200, sessionTtl: 30 * 86_400 },
});
const chats = await createServer({
  manager,
  agents,
  limits: { maxRunsPerUser: 2, rate: { requestsPerSecond: 5, burst: 50 } },
  authenticate: ({ headers }) => (userOf(headers) ? { userId: userOf(headers) } : null),
});
const chat = chatHandler(chats);

const app = new Hono();
app.get("/sign-in/:name", (c) => {
  c.header("Set-Cookie", `user=${c.req.param("name")}; Path=/; HttpOnly; SameSite=Strict`);
  return c.redirect("/");
});
app.all("/api/chat/*", (c) => chat(c.req.raw));
app.use("/my/*", (c, next) => (userOf(c.req.raw.headers) ? next() : c.text("Sign in first.", 401)));
app.post("/my/triage", async (c) => c.json((await triage.run(await c.req.text(), { output: Triage })).output));
app.get("/my/data", (c) => c.body(ReadableStream.from(manager.exportUser(userOf(c.req.raw.headers)))));
app.delete("/my/data", async (c) => c.json(await manager.erase({ userId: userOf(c.req.raw.headers) })));
app.use(serveStatic({ root: "./dist" }));
serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) }, ({ port }) => console.log(`Listening on ${port}`));
process.once("SIGTERM", async () => {
  await chats.close({ drainMs: 1000 });
  process.exit();
});
