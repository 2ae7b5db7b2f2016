// Runs a session in a file up to calls that need approval, approves the second of them, leaves input, and waits.
// node run-approval.mjs <path>
import { writeSync } from "node:fs";
import { runSessionLoop, Session } from "skein";
import { scripted } from "skein/offline";

const [path = ""] = process.argv.slice(2);
const print = (/** @type {string} */ line) => writeSync(1, `${line}\n`);
const call = (/** @type {string} */ id) => ({ id, name: "pay", arguments: "{}" });

/** @type {import("skein").Tool} */
const pay = {
  schema: { name: "pay", description: "Pays.", parameters: { type: "object" } },
  check: (value) => ({ ok: true, value }),
  needsApproval: () => true,
  execute: (_args, { callId }) => print(`paid ${callId}`),
};
const model = scripted([{ role: "assistant", content: null, toolCalls: [call("1"), call("2")] }]);
const run = runSessionLoop(Session.fromUserMessage("Pay."), Session.fromAgentPrompt("Be careful."), {
  model,
  tools: [pay],
  persist: path,
});
for await (const event of run) {
  if (event.type !== "approval-required" || event.approval.callId !== "2") continue;
  await run.approve("2");
  await run.followUp("And the receipt?");
  print("waiting");
}
