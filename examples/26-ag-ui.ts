// A front end made with AG-UI: `HttpAgent` uses a Skein server without changes. A person approves a call after the page was
// reloaded, and the state is the session's variables.
import assert from "node:assert/strict";
import { HttpAgent } from "@ag-ui/client";
import { createAgent, defineTool, openStore } from "skein";
import { createServer } from "skein/http";
import { scripted } from "skein/offline";
import { z } from "zod";

// #region server
const refund = defineTool({
  name: "refund",
  description: "Pays an order back.",
  parameters: z.object({ order: z.string() }),
  needsApproval: () => true,
  execute: async ({ order }) => ({ order, refunded: true }),
});
const clerk = createAgent({
  name: "clerk",
  prompt: "You answer questions about orders.",
  model: scripted([
    {
      role: "assistant",
      content: "I will pay it back.",
      toolCalls: [{ id: "call-1", name: "refund", arguments: '{"order":"4711"}' }],
      stopReason: "tool_calls",
    },
    "Order 4711 is paid back.",
  ]), // or openai("gpt-5-mini") of skein/openai
  tools: [refund],
  builtInTools: false,
});
await using store = await openStore("sqlite:./threads.db");
await using server = await createServer({ store, agents: [clerk] });
const url = await server.listen();
// #endregion

// #region page
const threadId = crypto.randomUUID(); // the thread's id is the session's
const openPage = (): HttpAgent => new HttpAgent({ url: `${url}/agui/clerk`, threadId });

const page = openPage();
page.setState({ language: "en" });
page.addMessage({ id: crypto.randomUUID(), role: "user", content: "Please refund order 4711." });
await page.runAgent();
assert.equal(page.pendingInterrupts.length, 1, "the run waits for a person");

// The page is reloaded: without a new message it gets the messages, the state and the question.
const loaded = openPage();
await loaded.runAgent();
assert.deepEqual(loaded.state, { language: "en" });
const [asked] = loaded.pendingInterrupts;
assert.ok(asked);
console.log(`${asked.message} ${JSON.stringify(asked.metadata?.arguments)}`);
await loaded.runAgent({ resume: [{ interruptId: asked.id, status: "resolved", payload: { approved: true } }] });
// #endregion

const said = loaded.messages.map(({ role, content }) => `${role}: ${content}`);
console.log(said.join("\n"));
assert.equal(said.at(-1), "assistant: Order 4711 is paid back.");
assert.equal((await store.head(threadId))?.openRuns.length, 0);
await store.delete(threadId);
