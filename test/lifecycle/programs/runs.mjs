// Does one thing with the runs of session "s" in a separate process: runs.mjs <directory> <what> [<argument>].
import { once } from "node:events";
import { join } from "node:path";
import { createAgent, defineTool, SessionManager } from "skein";
import { scripted } from "skein/offline";
import { openSqliteStore } from "skein/sqlite";

const [directory = "", what = "", argument = ""] = process.argv.slice(2);
const store = await openSqliteStore({ path: join(directory, "skein.db") });
const manager = new SessionManager({ store });
const actor = { actor: "ann" };
// A run that waits keeps no process alive.
setInterval(() => {}, 1000);

const pay = defineTool({
  name: "pay",
  description: "Pays.",
  parameters: { type: "object" },
  needsApproval: true,
  execute: () => {
    console.log("paid");
    return "paid";
  },
});
const call = { id: "c1", name: "pay", arguments: "{}" };
/** @type {Record<string, import("skein/offline").ScriptedReply[]>} */
const replies = {
  short: ["Done."],
  paying: [{ role: "assistant", content: null, toolCalls: [call], stopReason: "tool_calls" }, "Done."],
  hanging: [() => new Promise(() => {})],
  wrong: [
    '{"prime":"seven"}',
    () => {
      console.log("told");
      return new Promise(() => {});
    },
  ],
  right: ['{"prime":97}'],
};
const output = { type: "object", properties: { prime: { type: "integer" } }, required: ["prime"] };

/** @param {string} how @param {object} options */
async function recover(how, options = {}) {
  const model = scripted(replies[how] ?? []);
  const clerk = createAgent({ name: "clerk", prompt: "Help.", model, tools: [pay], builtInTools: false });
  const found = await manager.recover("s", { clerk }, options);
  if (found === null) return "nothing";
  console.log("running");
  const answer = await found.run.synchronize().catch(() => null);
  const given = answer?.output === undefined ? "" : ` ${JSON.stringify(answer.output)}`;
  return `${found.run.status}${given}`;
}

/** @type {Record<string, () => Promise<unknown>>} */
const acts = {
  async together() {
    console.log("ready");
    await once(process.stdin, "data");
    await manager.request("s", { agent: "clerk", input: "Go.", runId: argument }, actor);
    return recover("short");
  },
  output: async () =>
    (await manager.request("s", { agent: "clerk", input: "Go.", runId: argument, options: { output } }, actor)).runId,
  request: async () => (await manager.request("s", { agent: "clerk", input: "Go.", runId: argument }, actor)).runId,
  recover: () => recover(argument, { park: false }),
  park: () => recover("paying", { park: { afterMs: 0 } }),
  approve: () => manager.approve("s", argument, {}, { actor: { userId: "boss", admin: true } }),
  cancel: () => manager.cancel("s", {}, actor),
};
console.log(`done ${await acts[what]?.()}`);
await store.close();
process.exit(0);
