import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { Annotation, END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import type { MemorySaver } from "@langchain/langgraph-checkpoint";
import { describe, expect, test } from "vitest";
import { SkeinSaver } from "../../src/interop/langgraph/index.ts";
import { SessionTree } from "../../src/index.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";

const thread = { configurable: { thread_id: "a-thread" } };

/** A graph that answers with the number of messages so far. */
function counter(checkpointer: SkeinSaver | MemorySaver) {
  return new StateGraph(MessagesAnnotation)
    .addNode("model", async ({ messages }) => ({ messages: [new AIMessage(`answer ${messages.length}`)] }))
    .addEdge(START, "model")
    .addEdge("model", END)
    .compile({ checkpointer });
}

const say = (text: string) => ({ messages: [new HumanMessage(text)] });

async function turnsOf(store: SessionStore): Promise<unknown[]> {
  const { messages } = await (await SessionTree.on(store, "a-thread")).buildContext();
  return messages.map(({ content }) => content);
}

/** Counts the reads of a store from now on, and the entries that they return. */
function countReads(store: SessionStore): { calls: number; entries: number } {
  const counts = { calls: 0, entries: 0 };
  const { read, getEntry } = store;
  store.read = async function* (...given) {
    counts.calls++;
    for await (const entry of read.apply(store, given)) {
      counts.entries++;
      yield entry;
    }
  };
  store.getEntry = (...given) => {
    counts.calls++;
    counts.entries++;
    return getEntry.apply(store, given);
  };
  return counts;
}

describe("a long thread of a graph on a Skein store", () => {
  test("writes no more for a turn of a long thread than for one of a short thread", async () => {
    const store = openMemoryStore();
    const notes = Annotation<string[]>({ reducer: (left, right) => [...left, ...right], default: () => [] });
    const graph = new StateGraph(Annotation.Root({ ...MessagesAnnotation.spec, notes }))
      .addNode("model", async () => ({ messages: [new AIMessage("an answer")], notes: ["a note"] }))
      .addEdge(START, "model")
      .compile({ checkpointer: new SkeinSaver(store) });
    const begin = async (thread_id: string, length: number) => {
      const messages = Array.from({ length }, () => new HumanMessage("before"));
      await graph.invoke({ messages, notes: messages.map(() => "before") }, { configurable: { thread_id } });
    };
    const written = async (id: string) => {
      const before = (await store.head(id))?.version ?? 0;
      await graph.invoke(say("one more"), { configurable: { thread_id: id } });
      let characters = 0;
      for await (const entry of store.read(id, { after: before - 1 })) characters += JSON.stringify(entry).length;
      return characters;
    };
    await begin("short", 10);
    await begin("long", 1000);
    expect(await written("long")).toBeLessThan((await written("short")) * 1.2);
  });

  test("reads as many entries for a first turn on a thread of 500 turns as of 50, if its values have the same size", async () => {
    const store = openMemoryStore();
    const State = Annotation.Root({
      setting: Annotation<string>,
      count: Annotation<number>,
      tags: Annotation<string[]>,
    });
    const build = () =>
      new StateGraph(State)
        .addNode("model", async ({ count = 0 }) => ({ count: count + 1, tags: ["a", "b"] }))
        .addEdge(START, "model")
        .compile({ checkpointer: new SkeinSaver(store) });
    const graph = build();
    await graph.invoke({ setting: "once", tags: ["a"] }, thread);
    const counts = countReads(store);
    let turns = 1;
    const opening = async (after: number) => {
      for (; turns < after; turns++) await graph.invoke({ count: turns }, { ...thread, durability: "exit" });
      const before = { ...counts };
      const values = await build().invoke({ count: turns++ }, thread);
      expect(values).toEqual({ setting: "once", count: turns, tags: ["a", "b"] });
      return { calls: counts.calls - before.calls, entries: counts.entries - before.entries };
    };
    const early = await opening(50);
    expect(await opening(500)).toEqual(early);
  });

  test("lists every checkpoint of a long thread, newest first, also with an empty cache", async () => {
    const store = openMemoryStore();
    const graph = counter(new SkeinSaver(store));
    for (let turn = 0; turn < 60; turn++) await graph.invoke(say(`turn ${turn}`), thread);
    const lengths: number[] = [];
    for await (const { values } of counter(new SkeinSaver(store)).getStateHistory(thread))
      lengths.push(values.messages?.length ?? 0);
    const expected = Array.from({ length: 60 }, (_, turn) => [turn * 2, turn * 2 + 1, turn * 2 + 2]).flat();
    expect(lengths).toEqual(expected.reverse());
  });

  test("accepts more messages at a time than one append may have, and reads each about once", async () => {
    const store = openMemoryStore();
    const messages = Array.from({ length: 10_001 }, (_, index) => new HumanMessage(`message ${index}`));
    await counter(new SkeinSaver(store)).invoke({ messages }, thread);
    const counts = countReads(store);
    const { values } = await counter(new SkeinSaver(store)).getState(thread);
    expect(values.messages).toHaveLength(10_002);
    expect(counts.entries).toBeLessThan(10_002 * 1.1);
    expect(counts.calls).toBeLessThan(100);
    expect(await turnsOf(store)).toHaveLength(10_002);
  });
});
