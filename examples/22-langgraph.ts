// A LangGraph graph on a Skein store: it waits for a person, goes back in time, and its messages can be searched. No API key needed.
import assert from "node:assert/strict";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { Command, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { openStore, openTree } from "skein";
import { SkeinSaver } from "skein/langgraph";

await using store = await openStore("sqlite:graph.db");
const graph = new StateGraph(MessagesAnnotation)
  .addNode("book", async ({ messages }) => {
    const answer = interrupt(`Book it? You said: ${messages.at(-1)?.content}`);
    return { messages: [new AIMessage(answer === "yes" ? "The table is booked." : "Nothing is booked.")] };
  })
  .addEdge(START, "book")
  .compile({ checkpointer: new SkeinSaver(store) });
const config = { configurable: { thread_id: "dinner" } };

const asked = await graph.invoke({ messages: [new HumanMessage("A table for two at eight.")] }, config);
assert.ok("__interrupt__" in asked);
const waiting = await graph.getState(config);

// The answer may come days later, and in another process.
await graph.invoke(new Command({ resume: "no" }), config);

// Time travel: back to the question, with another answer. The first one stays on its branch.
await graph.invoke({ messages: [new HumanMessage("Make that three.")] }, waiting.config);
const booked = await graph.invoke(new Command({ resume: "yes" }), config);
assert.equal(booked.messages.at(-1)?.content, "The table is booked.");

// The thread is a session, and its messages are turns.
const tree = await openTree(store, "dinner");
const { messages } = await tree.buildContext();
assert.deepEqual(
  messages.map(({ content }) => content),
  ["A table for two at eight.", "Make that three.", "The table is booked."],
);
const [hit] = await store.search('"nothing is booked"');
assert.equal(hit?.head.header.id, "dinner");
console.log(`Session ${tree.id} has ${tree.head.messageCount} turns on its branches.`);
