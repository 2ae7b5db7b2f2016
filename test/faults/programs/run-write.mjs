// Stores a run of calls and results, and prints the id of each acknowledged row.
// node run-write.mjs <file|jsonl|sqlite> <path> <session id> <start|resume|hold|fill>
import { writeSync } from "node:fs";
import { resumeSession, Session } from "../../../src/index.ts";
import { Transcript } from "../../../src/session/index.ts";
import { openJsonlStore } from "../../../src/stores/jsonl/index.ts";
import { openSqliteStore } from "../../../src/stores/sqlite/index.ts";
import { openLog } from "../../sample-run-log.ts";

const [kind = "", path = "", id = "", mode = "start"] = process.argv.slice(2);
const print = (/** @type {string} */ line) => writeSync(1, `${line}\n`);
const runId = `run-${process.pid}`;

async function openStore() {
  if (kind === "file") return null;
  return kind === "jsonl" ? openJsonlStore({ directory: path }) : openSqliteStore({ path });
}

const store = await openStore();
const first = { id: "ask", message: /** @type {const} */ ({ role: "user", content: "go" }) };
const user =
  mode === "resume"
    ? (await resumeSession(store === null ? path : { store, sessionId: id })).user
    : Session.of(Transcript.of([first]));
const output = Session.of(user.transcript, mode === "resume" ? {} : { id });
const persist = store === null ? path : mode === "resume" ? { store, sessionId: id } : store;
const { log } = await openLog(persist, user, { runId, output, systemPrompt: "count" });
if (mode !== "resume") print("ask");

const padding = mode === "fill" ? "x".repeat(700) : "";
async function write(/** @type {string} */ row, /** @type {any} */ message) {
  await log.append([{ type: "message", id: row, message }]);
  print(row);
}
try {
  for (let i = 0; i < 100_000; i++) {
    const callId = `c${i}`;
    const toolCalls = [{ id: callId, name: "count", arguments: "{}" }];
    await write(`a-${process.pid}-${i}`, { role: "assistant", content: padding, toolCalls });
    if (mode === "hold") setInterval(() => {}, 1000);
    if (mode === "hold") break;
    await log.append([{ type: "effect", runId, callId }]);
    print(`effect ${callId}`);
    await write(`t-${process.pid}-${i}`, { role: "tool", toolCallId: callId, name: "count", content: padding });
  }
} catch (error) {
  print(`failed ${/** @type {{ code?: string }} */ (error).code}`);
  await log.abandon();
}
