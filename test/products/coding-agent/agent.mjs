import { createInterface } from "node:readline/promises";
import { createAgent, defineTool, openManager } from "skein";
import { registerPrices } from "skein/context";
import { openai } from "skein/openai";
import { z } from "zod";

registerPrices({ "openai/coder-30b": { input: 1, output: 4 } }); // dollars for a million tokens
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const ask = async (prompt) => {
  process.stdout.write(prompt);
  return (await lines.next()).value ?? "/quit";
};

const publish = defineTool({
  name: "publish",
  description: "Publishes a version of the package. It cannot be taken back.",
  parameters: z.object({ version: z.string() }),
  needsApproval: true,
  async execute({ version }, { signal }) {
    const response = await fetch(`${process.env.REGISTRY}/${version}`, { method: "POST", signal });
    return `The registry says ${response.status}.`;
  },
});
const agent = createAgent({
  name: "coder",
  prompt: "You look after the code in this directory.",
  model: openai("coder-30b", { baseURL: process.env.MODEL_URL, apiKey: "none", contextWindow: 32_768 }),
  ask: "writes",
  tools: [publish],
  onApproval: async ({ name, arguments: given }) => (await ask(`${name} ${JSON.stringify(given)}? [y/N] `)) === "y",
});

const cwd = process.cwd();
const manager = await openManager({ workspace: cwd });
let sessionId = (await manager.list({ cwd })).items[0]?.header.id; // go on where we were in this directory
const show = async (run) => {
  for await (const event of run) {
    if (event.type === "text-delta") process.stdout.write(event.text);
    if (event.type === "tool-started") console.log(`* ${event.name}`);
    if (event.type === "compaction") console.log("(The beginning is summed up.)");
  }
  sessionId = (await run).sessionId;
  console.log();
};

const left = sessionId && (await manager.recover(sessionId, { coder: agent }));
if (left) await show(left.run);
const commands = {
  fork: async (name) => {
    sessionId = (await manager.fork(sessionId, name)).sessionId;
  },
  merge: async () => {
    const { parentSessionId } = await manager.getState(sessionId, { turns: false });
    const { appended } = await manager.merge(parentSessionId, sessionId);
    console.log(`${appended.length} entries merged.`);
    sessionId = parentSessionId;
  },
  cost: async () => {
    const { spent } = await manager.getState(sessionId, { turns: false });
    console.log(`${spent.totalTokens} tokens, $${spent.totalCost.toFixed(4)}`);
  },
};
for (let words = await ask("> "); words !== "/quit"; words = await ask("> ")) {
  const [, command, rest] = /^\/(\w+) ?(.*)$/.exec(words) ?? [];
  if (command !== undefined) await commands[command]?.(rest);
  else await show(sessionId ? manager.run(sessionId, agent, words) : manager.run(agent, words));
}
process.exit();
