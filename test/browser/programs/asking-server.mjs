// Serves the studio with an agent, and a group of one, that call the tool of a message {"name","arguments"} in JSON.
// Only reading needs no approval; commands can reach everything. `ask_helper` runs an agent itself.
// node asking-server.mjs <path> <port>
import { fileURLToPath } from "node:url";
import { createAgent, defineTool, SessionManager } from "skein";
import { GroupSession, RoundRobinTurnManager } from "skein/group";
import { createServer } from "skein/http";
import { registerSandboxBackend, workspaceTools } from "skein/sandbox";
import { openSqliteStore } from "skein/sqlite";

const [path = "", port = "0"] = process.argv.slice(2);

registerSandboxBackend("open", () => ({
  reach: async ({ workingDir = null }) => ({ directory: workingDir, isolated: false, network: true }),
  open: () => Promise.reject(new Error("There is nothing to run it in.")),
}));

/** @type {import("skein").Model} */
const obedient = {
  provider: "obedient",
  id: "obedient",
  async complete({ messages }) {
    const last = messages.at(-1);
    if (last?.role !== "user") return { role: "assistant", content: "It is done.", stopReason: "stop" };
    const text = typeof last.content === "string" ? last.content : JSON.stringify(last.content);
    const { name, arguments: args } = JSON.parse(text);
    const toolCalls = [{ id: "1", name, arguments: JSON.stringify(args) }];
    return { role: "assistant", content: null, toolCalls, stopReason: "tool_calls" };
  },
};

const askHelper = defineTool({
  name: "ask_helper",
  description: "Lets another agent run a command.",
  parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
  effects: "reads",
  async execute({ command }) {
    const helper = createAgent({ prompt: "Obey.", model: obedient });
    return (await helper.run(JSON.stringify({ name: "run_shell_command", arguments: { command } }))).text();
  },
});

const agent = createAgent({
  name: "caller",
  prompt: "Obey.",
  model: obedient,
  tools: [...workspaceTools, askHelper],
  builtInTools: false,
});
const manager = new SessionManager({ store: await openSqliteStore({ path }) });
const crew = new GroupSession({ manager, turnManager: new RoundRobinTurnManager(1) }).addAgent(agent);
const server = await createServer({
  manager,
  agents: [agent],
  groups: { crew },
  place: { backend: "open", spec: "/srv/work" },
  ask: "writes",
  port: Number(port),
  studioDirectory: fileURLToPath(new URL("../../../dist/studio", import.meta.url)),
});
process.stdout.write(`${JSON.stringify({ url: await server.listen() })}\n`);
