// A front end made with the AI SDK: `useChat` talks to a Skein server, an answer survives a reload, a person approves a
// call, stop stops the run. `Chat`, on which `useChat` is built, stands for the page.
import assert from "node:assert/strict";
import { Chat } from "@ai-sdk/react";
import { lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from "ai";
import { createAgent, defineTool, openStore } from "skein";
import { createServer } from "skein/http";
import { scripted } from "skein/offline";
import { createChatTransport } from "skein/ui";
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
    "It takes two days.",
    "About two days.",
  ]), // or openai("gpt-5-mini") of skein/openai
  tools: [refund],
  builtInTools: false,
});
await using store = await openStore("sqlite:./chats.db");
await using server = await createServer({ store, agents: [clerk] });
const url = await server.listen();
// #endregion

// #region page
// In a page: useChat({ id, messages, transport, resume: true, sendAutomaticallyWhen: … })
const transport = createChatTransport({ api: `${url}/api/chat` });
const id = crypto.randomUUID(); // the chat's id is the session's
const openPage = async (): Promise<Chat<UIMessage>> =>
  new Chat({
    id,
    messages: await transport.messages(id),
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
// #endregion

const page = await openPage();
await page.sendMessage({ text: "Please refund order 4711." });
assert.equal(await store.count({ runs: "running" }), 1, "the run waits for a person");

// The page is reloaded: the question is shown again, and its answer continues the run.
const loaded = await openPage();
await loaded.resumeStream();
const asked = loaded.lastMessage?.parts.at(-1);
assert.ok(asked?.type === "tool-refund" && asked.state === "approval-requested");
console.log(`Approve ${JSON.stringify(asked.input)}?`);
await loaded.addToolApprovalResponse({ id: asked.approval.id, approved: true });
const textOf = (chat: Chat<UIMessage>): string => {
  const part = chat.lastMessage?.parts.at(-1);
  return part?.type === "text" ? part.text : "";
};
const until = async (text: string): Promise<void> => {
  while (textOf(loaded) !== text || loaded.status !== "ready") await new Promise((resolve) => setTimeout(resolve, 10));
};
await until("Order 4711 is paid back.");

// Another answer is a branch beside the first; the log keeps both.
await loaded.sendMessage({ text: "When?" });
assert.equal(textOf(loaded), "It takes two days.");
await loaded.regenerate();
assert.equal(textOf(loaded), "About two days.");
const said = (await transport.messages(id)).map(({ role, parts }) => `${role}: ${parts.length} parts`);
console.log(said.join("\n"));
assert.equal(said.length, 4);
const entries = store.read(id);
const texts: unknown[] = [];
for await (const entry of entries) if (entry.type === "message") texts.push(entry.message.content);
assert.ok(texts.includes("It takes two days.") && texts.includes("About two days."));
await store.delete(id);
