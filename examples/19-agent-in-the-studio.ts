// Your own agent in the studio: open the printed address in a browser and talk with it. The program checks itself and exits;
// with STAY=1 in the environment it runs until Ctrl-C.
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createAgent, defineTool, openStore } from "skein";
import { createClient } from "skein/client";
import { createServer } from "skein/http";
import { offline } from "skein/offline";
import { z } from "zod";

// #region agent
const findOrder = defineTool({
  name: "find_order",
  description: "Finds an order by its number.",
  parameters: z.object({ number: z.string() }),
  needsApproval: () => true, // needs approval in the studio
  execute: async ({ number }) => `Order ${number} left the warehouse yesterday.`,
});
const clerk = createAgent({
  name: "clerk",
  prompt: "You answer questions about orders.",
  model: offline(), // or openai("gpt-5-mini") of skein/openai
  tools: [findOrder],
  builtInTools: false,
});

await using store = await openStore("sqlite:./orders.db");
const studioDirectory = fileURLToPath(new URL("./studio/", import.meta.resolve("skein"))); // in the package
await using server = await createServer({ store, agents: [clerk], studioDirectory });
const url = await server.listen();
console.log(`Talk with the clerk at ${url}`);
// #endregion

// The studio shows the data of these responses.
const client = createClient({ url });
assert.ok(existsSync(studioDirectory));
assert.match(await (await fetch(url)).text(), /Skein studio/);
assert.deepEqual((await client.catalogue()).agents[0]?.name, "clerk");
const { header } = await client.sessions.create({ name: "An order" });
const { runId } = await client.runs.start(header.id, { input: 'call find_order with {"number": "4711"}' });
for await (const event of client.runs.events(header.id, runId)) {
  if (event.type === "approval-required") await client.runs.approve(header.id, event.approval.question);
}
const { items } = await client.sessions.entries(header.id);
assert.match(JSON.stringify(items), /Order 4711 left the warehouse/);

if (process.env.STAY === "1") await once(process, "SIGINT");
await client.sessions.delete(header.id);
