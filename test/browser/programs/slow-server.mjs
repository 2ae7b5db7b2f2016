// Serves the studio and the sessions of a SQLite file with an agent that says a hundred words, ten a second.
// node slow-server.mjs <path> <port> <seconds that its clock is ahead>
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createAgent } from "../../../dist/agent/index.js";
import { createServer } from "../../../dist/http/index.js";
import { openSqliteStore } from "../../../dist/stores/sqlite/index.js";

const [path = "", port = "0", aheadSeconds = "0"] = process.argv.slice(2);
const WORDS = 100;
const PAUSE_MS = 100;

/** @type {import("../../../dist/agent/index.js").Model} */
const model = {
  provider: "slow",
  id: "slow",
  complete: () => Promise.reject(new Error("This model streams.")),
  async *stream(_request, { signal } = {}) {
    for (let word = 1; word <= WORDS; word++) {
      await wait(PAUSE_MS, undefined, signal === undefined ? {} : { signal });
      yield { type: "text-delta", text: `word-${word} ` };
    }
    yield { type: "finish", stopReason: "stop" };
  },
};

const store = await openSqliteStore({ path, clock: () => new Date(Date.now() + Number(aheadSeconds) * 1000) });
const agent = createAgent({ name: "talker", prompt: "Talk.", model, builtInTools: false });
const studioDirectory = fileURLToPath(new URL("../../../dist/studio", import.meta.url));
const server = await createServer({ store, agents: [agent], port: Number(port), studioDirectory });
process.stdout.write(`${JSON.stringify({ url: await server.listen() })}\n`);
