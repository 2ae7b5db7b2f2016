// Runs the first version of the agent "clerk" in an SQLite store, and hangs in its tools until it is killed.
// node run-first-version.mjs <path of the store> <chat, responses or messages> <URL of the model's server>
import { writeSync } from "node:fs";
import { createAgent, defineTool, openManager } from "skein";
import { anthropic } from "skein/anthropic";
import { openai } from "skein/openai";

const [path = "", api = "", baseURL = ""] = process.argv.slice(2);
const model =
  api === "messages"
    ? anthropic("claude-sonnet-4-5", { apiKey: "k", baseURL })
    : openai("gpt-5.2", { apiKey: "k", baseURL, api: api === "chat" ? "chat" : "responses", cache: true });

const parameters = { type: "object", properties: { zone: { type: "string" }, at: {} }, additionalProperties: true };
const tools = ["get_weather", "list_orders", "send_card", "find_order"].map((name) =>
  defineTool({
    name,
    description: `Does ${name}.`,
    parameters,
    idempotent: true,
    execute: () => {
      writeSync(1, "called\n");
      setInterval(() => {}, 1000);
      return new Promise(() => {});
    },
  }),
);
// Long enough that providers cache it.
const prompt = `You keep orders. First version. ${"Every rule of the shop is written down here. ".repeat(120)}`;
const agent = createAgent({ name: "clerk", prompt, model, tools, builtInTools: false });
const manager = await openManager({ store: `sqlite:${path}` });
await manager.run(agent, "What is the weather, and which orders are there?");
