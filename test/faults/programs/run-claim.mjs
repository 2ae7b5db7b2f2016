// Resumes a run when it gets a line, and prints how it ended. Each executed call writes a line to a file. node
// run-claim.mjs <file|jsonl|sqlite> <path> <start | session id> <file of effects>
import { appendFileSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { resumeSession, runSessionLoop, Session } from "skein";
import { scripted } from "skein/offline";
import { openJsonlStore } from "skein/jsonl";
import { openSqliteStore } from "skein/sqlite";

const [kind = "", path = "", sessionId = "", effects = ""] = process.argv.slice(2);
const print = (/** @type {string} */ line) => writeSync(1, `${line}\n`);
const schema = (/** @type {string} */ name) => ({ name, description: name, parameters: { type: "object" } });

/** @type {import("skein").Tool[]} */
const tools = [
  {
    schema: schema("wait"),
    check: (value) => ({ ok: true, value }),
    execute: () => {
      print("waiting");
      setInterval(() => {}, 1000);
      return new Promise(() => {});
    },
  },
  {
    schema: schema("pay"),
    check: (value) => ({ ok: true, value }),
    exclusive: true,
    execute: () => appendFileSync(effects, `${process.pid}\n`),
  },
];

async function openStore() {
  if (kind === "file") return null;
  return kind === "jsonl" ? openJsonlStore({ directory: path }) : openSqliteStore({ path });
}

const store = await openStore();
const persist = store ?? path;
if (sessionId === "start") {
  const call = (/** @type {string} */ name) => ({ id: name, name, arguments: "{}" });
  const model = scripted([{ role: "assistant", content: null, toolCalls: [call("wait"), call("pay")] }]);
  const run = runSessionLoop(Session.fromUserMessage("Pay."), Session.fromAgentPrompt(""), { model, tools, persist });
  print(run.id);
  await run;
}

/** The result of one attempt to continue the run. */
async function goOn() {
  try {
    const { user, agent } = await resumeSession(store === null ? path : { store, sessionId });
    print("found");
    // All continue at the next line, so that none continues before the others have looked.
    await lines.next();
    await runSessionLoop(user, agent, { model: scripted(["Done."]), tools, persist });
    return "ran";
  } catch (error) {
    return /** @type {{ code?: string }} */ (error).code ?? String(error);
  }
}

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
print("ready");
await lines.next();
print(await goOn());
print("end");
await store?.close();
process.exit(0);
