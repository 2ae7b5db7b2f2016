// Sends a number of messages to a graph on one thread, and prints the graph's answer after each.
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { openStore } from "skein";
import { SkeinSaver } from "skein/langgraph";

const [url = "", name = "", count = "0"] = process.argv.slice(2);
const store = await openStore(url);
const graph = new StateGraph(MessagesAnnotation)
  .addNode("model", async () => ({ messages: [new AIMessage(`answer to ${name}`)] }))
  .addEdge(START, "model")
  .compile({ checkpointer: new SkeinSaver(store) });
const config = { configurable: { thread_id: "shared" } };
for (let index = 0; index < Number(count); index++) {
  /** @type {import("@langchain/core/runnables").RunnableConfig | undefined} */
  let last;
  const stream = await graph.stream(
    { messages: [new HumanMessage(`${name} ${index}`)] },
    { ...config, streamMode: "checkpoints", durability: "sync" },
  );
  /** @type {{ content: unknown }[]} */
  let messages = [];
  for await (const checkpoint of stream) {
    last = checkpoint.config;
    messages = checkpoint.values.messages;
  }
  console.log(
    JSON.stringify({ id: last?.configurable?.["checkpoint_id"], texts: messages.map(({ content }) => content) }),
  );
}
await store.close();
