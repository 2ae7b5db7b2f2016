// Serves sessions of several users on SQLite, as `skein serve` would: with a token file, an isolated directory for each
// user, and an agent whose writes and commands need approval. Prints its log. node serve-hostile.mjs <directory>
// <limits of time as JSON>; the directory has a file `tokens`, and gets the rest.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createAgent, SessionManager } from "skein";
import { GroupSession, RoundRobinTurnManager } from "skein/group";
import { createServer, openTokenFile } from "skein/http";
import { scripted } from "skein/offline";
import { workspaceTools } from "skein/sandbox";
import { openSqliteStore } from "skein/sqlite";

const [directory = "", timeLimits = "{}"] = process.argv.slice(2);
const workingDir = join(directory, "work");
await mkdir(workingDir, { recursive: true });
// A page with the tokens and the store beside its directory, as a careless installation may have it.
const studioDirectory = join(directory, "studio");
await mkdir(studioDirectory);
await writeFile(join(studioDirectory, "index.html"), "<!doctype html><title>The page</title>");
const FIXTURES = { maxSessionsPerUser: 40, maxTurnsPerSession: 3000 };

/**
 * Obeys its input: `call <tool> <arguments>` calls a tool, `wait` waits until it is stopped, anything else is repeated.
 * @type {import("skein/offline").ScriptedReply}
 */
const reply = ({ messages }, { signal }) => {
  const last = messages.at(-1);
  if (last?.role === "tool") return `The tool said: ${JSON.stringify(last.content)}`;
  const said = typeof last?.content === "string" ? last.content : "";
  const [, name, given] = /^call (\w+) (.*)$/s.exec(said) ?? [];
  if (name !== undefined && given !== undefined) {
    const toolCalls = [{ id: `call-${messages.length}`, name, arguments: given }];
    return { role: "assistant", content: null, toolCalls, stopReason: "tool_calls" };
  }
  if (said !== "wait") return "Heard.";
  return new Promise((_resolve, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
};

const agent = createAgent({
  name: "worker",
  prompt: "Work.",
  model: scripted(Array.from({ length: 20_000 }, () => reply)),
  tools: workspaceTools,
  builtInTools: false,
});
const store = await openSqliteStore({ path: join(directory, "sessions.db") });
const manager = new SessionManager({ store, config: FIXTURES });
const crew = new GroupSession({ manager, turnManager: new RoundRobinTurnManager(1) });
crew.addAgent(agent);
const server = await createServer({
  manager,
  agents: [agent],
  groups: { crew },
  place: { backend: "local", spec: { workingDir, isolation: "required" } },
  ask: "writes",
  // The canary's run must look the same all the time, on a slow machine too.
  park: { afterMs: 3_600_000 },
  studioDirectory,
  tokens: await openTokenFile(join(directory, "tokens")),
  limits: { rate: null, storedSessionsPerUser: 150, ...JSON.parse(timeLimits) },
  logger: (line) => process.stdout.write(`${JSON.stringify(line)}\n`),
});
process.stdout.write(`${JSON.stringify({ url: await server.listen() })}\n`);
