import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import * as vitest from "vitest";
import { SkeinSaver } from "../../src/interop/langgraph/index.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { backends } from "../store-backends.ts";

// The validation kit expects the functions of its test runner as globals.
const { describe, it, expect, beforeAll, beforeEach, afterAll, afterEach } = vitest;
Object.assign(globalThis, { describe, it, expect, beforeAll, beforeEach, afterAll, afterEach });
const { deltaChannelHistoryTests, specTest } = await import("@langchain/langgraph-checkpoint-validation");

for (const backend of backends) {
  // One store for all tests of a backend: opening one takes longer than most tests.
  const opened = mkdtemp(join(tmpdir(), "skein-langgraph-")).then(async (directory) => ({
    directory,
    store: await backend.open(directory),
  }));
  const initializer = {
    checkpointerName: `SkeinSaver on ${backend.name}`,
    createCheckpointer: async () => new SkeinSaver((await opened).store),
    async destroyCheckpointer(): Promise<void> {
      const { store } = await opened;
      for (const { header } of (await store.list()).items) await store.delete(header.id);
      await store.purge(new Date(Date.now() + 60_000).toISOString());
    },
    async afterAll(): Promise<void> {
      const { store, directory } = await opened;
      await store.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
  describe(backend.name, () => {
    specTest(initializer);
    deltaChannelHistoryTests(initializer);

    it("starts a new thread after deleteThread, also if a fork depends on the old one", async () => {
      const { store } = await opened;
      const saver = new SkeinSaver(store);
      const graph = new StateGraph(MessagesAnnotation)
        .addNode("model", async ({ messages }) => ({ messages: [new AIMessage(`answer ${messages.length}`)] }))
        .addEdge(START, "model")
        .compile({ checkpointer: saver });
      const say = async (thread_id: string, text: string) => {
        const { messages } = await graph.invoke(
          { messages: [new HumanMessage(text)] },
          { configurable: { thread_id } },
        );
        return messages.map(({ content }) => content);
      };
      await say("reused", "one");
      await store.fork("reused", createHeader({ id: "a-fork" }));
      await saver.deleteThread("reused");
      expect(await saver.getTuple({ configurable: { thread_id: "reused" } })).toBeUndefined();
      expect(await say("reused", "two")).toEqual(["two", "answer 1"]);
      expect(await say("a-fork", "three")).toEqual(["one", "answer 1", "three", "answer 3"]);
      await initializer.destroyCheckpointer();
    });
  });
}
