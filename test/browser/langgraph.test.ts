import { dirname, join } from "node:path";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { expect } from "vitest";
import { SkeinSaver } from "../../src/interop/langgraph/index.ts";
import { openStore } from "../../src/stores/open-store.ts";
import { browserTest } from "./browser-test.ts";

browserTest("the studio shows and finds the turns of a LangGraph graph", async ({ open, server }) => {
  await using store = await openStore(`sqlite:${join(dirname(server.workspace), "skein.db")}`);
  const call = { id: "call-1", name: "look_up", args: { animal: "okapi" }, type: "tool_call" as const };
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("model", async () => ({ messages: [new AIMessage({ content: "", tool_calls: [call] })] }))
    .addNode("tool", async () => ({
      messages: [new ToolMessage({ content: "It lives in the Congo.", tool_call_id: "call-1", name: "look_up" })],
    }))
    .addNode("answer", async () => ({ messages: [new AIMessage("The okapi lives in the Congo.")] }))
    .addEdge(START, "model")
    .addEdge("model", "tool")
    .addEdge("tool", "answer")
    .compile({ checkpointer: new SkeinSaver(store) });
  const config = { configurable: { thread_id: "zoo" } };
  await graph.invoke({ messages: [new HumanMessage("Where does the okapi live?")] }, config);

  const page = await open({ at: "#/sessions/zoo/talk" });
  const turns = page.getByRole("listitem");
  await turns.filter({ hasText: "Where does the okapi live?" }).first().waitFor();
  await turns.filter({ hasText: "look_up" }).first().waitFor();
  await turns.filter({ hasText: "The okapi lives in the Congo." }).first().waitFor();

  // The internal records of the graph are only shown on request.
  const records = page.getByText(/A record of langgraph\./);
  expect(await records.count()).toBe(0);
  await page.getByRole("button", { name: "Settings and records" }).click();
  await records.first().waitFor();
  await page.getByRole("button", { name: "Settings and records" }).click();

  // A later run is shown while the page is open, and a turn leads to its session.
  await graph.invoke({ messages: [new HumanMessage("Does the tapir live there, too?")] }, config);
  await turns.filter({ hasText: "Does the tapir live there, too?" }).first().waitFor();
  await page.getByRole("searchbox", { name: "Search sessions" }).fill('"the tapir"');
  const found = page.getByRole("list", { name: "Sessions" }).getByRole("listitem");
  await found.filter({ hasText: "Does the tapir live there" }).waitFor();
  await expect.poll(() => found.count()).toBe(1);
});
