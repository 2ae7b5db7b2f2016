// Serves one agent on a memory store that makes the given calls, all in one round, in the given workspace. node
// serve-tools.mjs <workspace>; an input is a JSON list of `{ name, arguments }`.
import { createAgent, SessionManager } from "skein";
import { createServer } from "skein/http";
import { openMemoryStore } from "skein/memory";
import { scripted } from "skein/offline";
import { workspaceTools } from "skein/sandbox";

const [workingDir = ""] = process.argv.slice(2);

/** @type {import("skein/offline").ScriptedReply} */
const reply = ({ messages }) => {
  const last = messages.at(-1);
  if (last?.role !== "user" || typeof last.content !== "string") return "Done.";
  /** @type {{ name: string; arguments: object }[]} */
  const calls = JSON.parse(last.content);
  const toolCalls = calls.map((call, index) => ({
    id: `call-${index}`,
    name: call.name,
    arguments: JSON.stringify(call.arguments),
  }));
  return { role: "assistant", content: null, toolCalls, stopReason: "tool_calls" };
};

const agent = createAgent({
  name: "caller",
  prompt: "Call.",
  model: scripted(Array.from({ length: 100 }, () => reply)),
  tools: workspaceTools,
  builtInTools: false,
});
const server = await createServer({
  manager: new SessionManager({ store: openMemoryStore() }),
  agents: [agent],
  place: { backend: "local", spec: { workingDir, isolation: "off" } },
  ask: "never",
  limits: { rate: null },
});
process.stdout.write(`${await server.listen()}\n`);
