// Runs the agent "clerk" in an SQLite store, and hangs in its tool until it is killed.
// node hang-in-tool.mjs <path of the store>
import { writeSync } from "node:fs";
import { createAgent, defineTool } from "../../../dist/index.js";
import { scripted } from "../../../dist/models/index.js";
import { openSqliteStore } from "../../../dist/stores/sqlite/index.js";

const [path = ""] = process.argv.slice(2);
const pay = defineTool({
  name: "pay",
  description: "Pays.",
  parameters: { type: "object" },
  execute: () => {
    writeSync(1, "paying\n");
    setInterval(() => {}, 1000);
    return new Promise(() => {});
  },
});
const call = { id: "c1", name: "pay", arguments: "{}" };
const model = scripted([{ role: "assistant", content: null, toolCalls: [call], stopReason: "tool_calls" }]);
const agent = createAgent({ name: "clerk", prompt: "", model, tools: [pay], builtInTools: false });
const run = agent.run("Pay.", { persist: await openSqliteStore({ path }) });
writeSync(1, `${run.id}\n`);
await run;
