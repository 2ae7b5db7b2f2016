// Serves sessions of a SQLite file with an agent that looks, then pays once it may, then says so.
// node serve-runs.mjs <path> <port>
import { createAgent } from "skein";
import { createServer } from "skein/http";
import { scripted } from "skein/offline";
import { openSqliteStore } from "skein/sqlite";

const [path = "", port = "0"] = process.argv.slice(2);

/** @returns {import("skein").Tool} */
const toolOf = (/** @type {string} */ name, /** @type {boolean} */ asks) => ({
  schema: { name, description: `Does ${name}.`, parameters: { type: "object" } },
  check: (value) => ({ ok: true, value }),
  needsApproval: () => asks,
  execute: () => `${name} done`,
});

/** @type {import("skein/offline").ScriptedReply} */
const reply = ({ messages }) => {
  const last = messages.at(-1);
  if (last?.role === "tool" && last.name === "pay") return "Paid.";
  const name = last?.role === "tool" ? "pay" : "look";
  return {
    role: "assistant",
    content: null,
    toolCalls: [{ id: name, name, arguments: "{}" }],
    stopReason: "tool_calls",
  };
};

const store = await openSqliteStore({ path });
const agent = createAgent({
  name: "payer",
  prompt: "Be careful.",
  model: scripted(Array.from({ length: 10 }, () => reply)),
  tools: [toolOf("look", false), toolOf("pay", true)],
  builtInTools: false,
});
const server = await createServer({ store, agents: [agent], port: Number(port) });
process.stdout.write(`${await server.listen()}\n`);
