// Serves the studio and the sessions of an SQLite file with an agent that streams a hundred words, ten a second, with a
// group whose agents stream ten each, and with a model that answers immediately.
// node slow-server.mjs <path> <port> <seconds that its clock is ahead>
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createAgent, SessionManager } from "skein";
import { GroupSession, RoundRobinTurnManager } from "skein/group";
import { createServer } from "skein/http";
import { offline } from "skein/offline";
import { openSqliteStore } from "skein/sqlite";

const [path = "", port = "0", aheadSeconds = "0"] = process.argv.slice(2);
const PAUSE_MS = 100;

/** @type {(word: string, words: number) => import("skein").Model} */
const slow = (word, words) => ({
  provider: "slow",
  id: "slow",
  complete: () => Promise.reject(new Error("This model streams.")),
  async *stream(_request, { signal } = {}) {
    for (let count = 1; count <= words; count++) {
      await wait(PAUSE_MS, undefined, signal === undefined ? {} : { signal });
      yield { type: "text-delta", text: `${word}-${count} ` };
    }
    yield { type: "finish", stopReason: "stop" };
  },
});

/** @type {(name: string, word: string, words: number) => import("skein").Agent} */
const agentOf = (name, word, words) =>
  createAgent({ name, prompt: "Talk.", model: slow(word, words), builtInTools: false });

const store = await openSqliteStore({ path, clock: () => new Date(Date.now() + Number(aheadSeconds) * 1000) });
const manager = new SessionManager({ store });
const newsroom = new GroupSession({ manager, turnManager: new RoundRobinTurnManager(1) });
newsroom.addAgent(agentOf("writer", "draft", 10), "author");
newsroom.addAgent(agentOf("critic", "secret", 10), "critic", { visibleTo: ["editor"] });
newsroom.addAgent(agentOf("editor", "printed", 10), "editor");
const studioDirectory = fileURLToPath(new URL("../../../dist/studio", import.meta.url));
const server = await createServer({
  manager,
  agents: [agentOf("talker", "word", 100)],
  groups: { newsroom },
  models: [offline()],
  port: Number(port),
  studioDirectory,
});
process.stdout.write(`${JSON.stringify({ url: await server.listen() })}\n`);
