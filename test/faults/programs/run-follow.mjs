// Runs or resumes a session of a store, prints its events, and ends. Executed calls print a line too. node run-follow.mjs
// <path of the database> <start | session id> <milliseconds until it parks, or never>
import { writeSync } from "node:fs";
import { resumeSession, runSessionLoop, Session } from "skein";
import { scripted } from "skein/offline";
import { openSqliteStore } from "skein/sqlite";

const [path = "", sessionId = "", afterMs = "never"] = process.argv.slice(2);
const print = (/** @type {string} */ line) => writeSync(1, `${line}\n`);
const store = await openSqliteStore({ path });

/** @type {import("skein").Tool} */
const pay = {
  schema: { name: "pay", description: "Pays.", parameters: { type: "object" } },
  check: (value) => ({ ok: true, value }),
  needsApproval: () => true,
  execute: () => print("paid"),
};
const toolCalls = [{ id: "1", name: "pay", arguments: "{}" }];
const park = afterMs === "never" ? {} : { park: { afterMs: Number(afterMs) } };
const options = { tools: [pay], persist: store, ...park };

async function begin() {
  if (sessionId === "start") {
    const model = scripted([{ role: "assistant", content: null, toolCalls }, "Done.", "Done."]);
    const source = Session.fromUserMessage("Pay.");
    return { run: runSessionLoop(source, Session.fromAgentPrompt(""), { ...options, model }) };
  }
  const { user, agent } = await resumeSession({ store, sessionId });
  return { run: runSessionLoop(user, agent, { ...options, model: scripted(["Done."]) }) };
}

const { run } = await begin();
// A run that waits for others does not keep its process alive.
const alive = setInterval(() => {}, 1000);
for await (const event of run) {
  if (event.type === "approval-required") print(`asks ${run.id} ${run.runId} ${event.approval.question}`);
}
const said = await run.synchronize().then(
  ({ transcript }) => transcript.toMessages().map(({ role, content }) => `${role} ${content}`),
  (error) => [`${error.code} ${error.cause}`],
);
print(`${run.status}: ${said.at(-1)}`);
if (said.includes("user Hurry.")) print("heard");
clearInterval(alive);
await store.close();
