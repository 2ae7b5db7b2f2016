// Runs agents whose call needs approval, without anyone to answer, and prints what their callers get. node
// run-waiting.mjs <path of a database>
import { writeSync } from "node:fs";
import { createAgent, defineTool, SessionManager } from "skein";
import { scripted } from "skein/offline";
import { openSqliteStore } from "skein/sqlite";

const print = (/** @type {string} */ line) => writeSync(1, `${line}\n`);
/** Nothing but the run itself keeps the process alive until then. @type {() => Promise<true>} */
const later = () => new Promise((resolve) => setTimeout(resolve, 200, true).unref());

/** @param {Partial<import("skein").AgentInit>} options */
function paying(options = {}) {
  const parameters = { type: "object", properties: {} };
  const pay = defineTool({ name: "pay", description: "Pays.", parameters, needsApproval: true, execute: () => "paid" });
  const toolCalls = [{ id: "1", name: "pay", arguments: "{}" }];
  const model = scripted([{ role: "assistant", content: null, toolCalls }, "Done."]);
  return createAgent({ name: "clerk", prompt: "", model, tools: [pay], ...options });
}

await paying()
  .run("Pay.")
  .then(undefined, ({ code }) => print(`not kept: ${code}`));

print(`asked in place: ${(await paying({ onApproval: later }).run("Pay.")).text()}`);

const waiting = paying({ park: false }).run("Pay.");
waiting.listen(({ type }) => {
  if (type === "approval-required") void later().then(() => waiting.approve("1"));
});
print(`park false: ${(await waiting).text()}`);

const store = await openSqliteStore({ path: process.argv[2] ?? "" });
const manager = new SessionManager({ store });
const { sessionId } = await manager.create({ userId: "ann" });
const answer = await manager.run(sessionId, paying(), "Pay.");
print(`kept: ${answer.status} ${answer.questions.map(({ name }) => name)}`);
await store.close();
