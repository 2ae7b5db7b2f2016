import { AIMessage, HumanMessage, RemoveMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";
import {
  Annotation,
  Command,
  END,
  interrupt,
  MessagesAnnotation,
  MessagesDeltaValue,
  START,
  Send,
  StateGraph,
  StateSchema,
} from "@langchain/langgraph";
import { emptyCheckpoint, MemorySaver } from "@langchain/langgraph-checkpoint";
import { describe, expect, test, vi } from "vitest";
import { SkeinSaver } from "../../src/interop/langgraph/index.ts";
import { createHeader } from "../../src/session/log/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { SessionTree } from "../../src/index.ts";

const thread = { configurable: { thread_id: "a-thread" } };
const texts = (messages: readonly BaseMessage[]) => messages.map(({ content }) => content);

/** A graph that answers with the number of messages so far. */
function counter(checkpointer: SkeinSaver | MemorySaver) {
  return new StateGraph(MessagesAnnotation)
    .addNode("model", async ({ messages }) => ({ messages: [new AIMessage(`answer ${messages.length}`)] }))
    .addEdge(START, "model")
    .addEdge("model", END)
    .compile({ checkpointer });
}

const say = (text: string) => ({ messages: [new HumanMessage(text)] });

async function turnsOf(store: SessionStore, id = "a-thread"): Promise<unknown[]> {
  const { messages } = await (await SessionTree.on(store, id)).buildContext();
  return messages.map(({ content }) => content);
}

describe("a graph on a Skein store", () => {
  test("continues a thread, also with an empty cache", async () => {
    const store = openMemoryStore();
    await counter(new SkeinSaver(store)).invoke(say("one"), thread);
    await counter(new SkeinSaver(store)).invoke(say("two"), thread);
    const { values } = await counter(new SkeinSaver(store)).getState(thread);
    expect(texts(values.messages)).toEqual(["one", "answer 1", "two", "answer 3"]);
    expect(values.messages.every(({ id }: BaseMessage) => typeof id === "string")).toBe(true);
  });

  test("stores its messages as turns, once, which can be searched", async () => {
    const store = openMemoryStore();
    const graph = counter(new SkeinSaver(store));
    await graph.invoke(say("where is the giraffe?"), thread);
    await graph.invoke(say("two"), thread);
    expect(await turnsOf(store)).toEqual(["where is the giraffe?", "answer 1", "two", "answer 3"]);
    expect((await store.search("giraffe")).map(({ head }) => head.header.id)).toEqual(["a-thread"]);
    expect((await store.head("a-thread"))?.messageCount).toBe(4);
  });

  test("keeps tool calls, results, usage and models of a turn", async () => {
    const store = openMemoryStore();
    const call = { id: "call-1", name: "look_up", args: { word: "skein" }, type: "tool_call" as const };
    const fields: unknown = {
      content: "",
      tool_calls: [call],
      usage_metadata: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
      response_metadata: { model_name: "a-model", model_provider: "a-provider" },
    };
    const answer = new AIMessage(fields as string);
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("model", async () => ({ messages: [answer] }))
      .addNode("tool", async () => ({
        messages: [new ToolMessage({ content: "a yarn", tool_call_id: "call-1", name: "look_up" })],
      }))
      .addEdge(START, "model")
      .addEdge("model", "tool")
      .compile({ checkpointer: new SkeinSaver(store) });
    await graph.invoke(say("what is a skein?"), thread);
    const { messages } = await (await SessionTree.on(store, "a-thread")).buildContext();
    expect(messages[1]).toMatchObject({
      role: "assistant",
      toolCalls: [{ id: "call-1", name: "look_up", arguments: '{"word":"skein"}' }],
      model: "a-model",
      provider: "a-provider",
    });
    expect(messages[2]).toMatchObject({ role: "tool", toolCallId: "call-1", content: "a yarn" });
    expect((await store.head("a-thread"))?.usage.totalTokens).toBe(15);
    const { values } = await counter(new SkeinSaver(store)).getState(thread);
    expect(values.messages[1].tool_calls).toEqual([call]);
    expect(values.messages[1].usage_metadata.total_tokens).toBe(15);
    expect(ToolMessage.isInstance(values.messages[2])).toBe(true);
  });

  test("waits for an answer to an interrupt, and resumes with it in another process", async () => {
    const store = openMemoryStore();
    const asking = () =>
      new StateGraph(MessagesAnnotation)
        .addNode("ask", async () => ({ messages: [new AIMessage(`you said ${interrupt("really?")}`)] }))
        .addEdge(START, "ask")
        .compile({ checkpointer: new SkeinSaver(store) });
    const asked = await asking().invoke(say("delete it"), thread);
    expect(asked).toMatchObject({ __interrupt__: [{ value: "really?" }] });
    const answered = await asking().invoke(new Command({ resume: "yes" }), thread);
    expect(texts(answered.messages)).toEqual(["delete it", "you said yes"]);
    expect(await turnsOf(store)).toEqual(["delete it", "you said yes"]);
  });

  test("resumes from an older checkpoint, and the other branch keeps its values", async () => {
    const store = openMemoryStore();
    const graph = counter(new SkeinSaver(store));
    for (const text of ["one", "two", "three"]) await graph.invoke(say(text), thread);
    const states = [];
    for await (const state of counter(new SkeinSaver(store)).getStateHistory(thread)) states.push(state);
    const afterOne = states.find(({ values, next }) => next.length === 0 && values.messages?.length === 2);
    const afterThree = states[0];
    await counter(new SkeinSaver(store)).invoke(say("another"), afterOne?.config);
    const fresh = counter(new SkeinSaver(store));
    const latest = await fresh.getState(thread);
    expect(texts(latest.values.messages)).toEqual(["one", "answer 1", "another", "answer 3"]);
    const left = await fresh.getState(afterThree?.config ?? {});
    expect(texts(left.values.messages)).toEqual(["one", "answer 1", "two", "answer 3", "three", "answer 5"]);
    expect(await turnsOf(store)).toEqual(["one", "answer 1", "another", "answer 3"]);
  });

  test("separates the state of a sub-graph, while both graphs wait", async () => {
    const store = openMemoryStore();
    const build = () => {
      const inner = new StateGraph(MessagesAnnotation)
        .addNode("ask", async () => ({ messages: [new AIMessage(`inner: ${interrupt("inside?")}`)] }))
        .addEdge(START, "ask")
        .compile();
      return new StateGraph(MessagesAnnotation)
        .addNode("inner", inner)
        .addNode("outer", async () => ({ messages: [new AIMessage("outer")] }))
        .addEdge(START, "inner")
        .addEdge("inner", "outer")
        .compile({ checkpointer: new SkeinSaver(store) });
    };
    await build().invoke(say("go"), thread);
    const state = await build().getState(thread, { subgraphs: true });
    const task = state.tasks[0]?.state as { values: { messages: BaseMessage[] } };
    expect(texts(task.values.messages)).toEqual(["go"]);
    const done = await build().invoke(new Command({ resume: "yes" }), thread);
    expect(texts(done.messages)).toEqual(["go", "inner: yes", "outer"]);
    expect(await turnsOf(store)).toEqual(["go", "inner: yes", "outer"]);
  });

  test("keeps the writes of parallel branches if one of them fails, and does not run the others again", async () => {
    const store = openMemoryStore();
    const ran: string[] = [];
    const State = Annotation.Root({
      done: Annotation<string[]>({ reducer: (left, right) => [...left, ...right], default: () => [] }),
    });
    const build = () =>
      new StateGraph(State)
        .addNode("start", async () => ({}))
        .addNode("work", async ({ name }: { name: string }) => {
          ran.push(name);
          if (name === "b" && ran.filter((other) => other === "b").length === 1) throw new Error("b fails once");
          return { done: [name] };
        })
        .addEdge(START, "start")
        .addConditionalEdges("start", () => ["a", "b", "c"].map((name) => new Send("work", { name })))
        .compile({ checkpointer: new SkeinSaver(store) });
    await expect(build().invoke({ done: [] }, thread)).rejects.toThrow("b fails once");
    const { done } = await build().invoke(null, thread);
    expect([...done].sort()).toEqual(["a", "b", "c"]);
    expect(ran.sort()).toEqual(["a", "b", "b", "c"]);
  });

  test("keeps a delta channel", async () => {
    const store = openMemoryStore();
    const build = () =>
      new StateGraph(new StateSchema({ messages: MessagesDeltaValue }))
        .addNode("model", async ({ messages }) => ({ messages: [new AIMessage(`answer ${messages.length}`)] }))
        .addEdge(START, "model")
        .compile({ checkpointer: new SkeinSaver(store) });
    for (const text of ["one", "two", "three"]) await build().invoke(say(text), thread);
    const { values } = await build().getState(thread);
    expect(texts(values.messages)).toEqual(["one", "answer 1", "two", "answer 3", "three", "answer 5"]);
    expect(await turnsOf(store)).toEqual(["one", "answer 1", "two", "answer 3", "three", "answer 5"]);
  });

  test.for(["sync", "async", "exit"] as const)(
    "returns the same as the memory saver, with durability %s",
    async (durability) => {
      const store = openMemoryStore();
      const build = (checkpointer: SkeinSaver | MemorySaver) => {
        const State = Annotation.Root({
          ...MessagesAnnotation.spec,
          notes: Annotation<{ text: string; seen: number }[]>,
          last: Annotation<string>,
        });
        return new StateGraph(State)
          .addNode("edit", async ({ messages, notes = [] }) => {
            // In place, as programs do.
            for (const note of notes) note.seen += 1;
            notes.push({ text: `note ${notes.length}`, seen: 0 });
            const first = messages[0] as BaseMessage;
            if (messages.length === 3) first.content = "edited";
            const gone = messages.length > 4 ? [new RemoveMessage({ id: String(messages[1]?.id) })] : [];
            return {
              notes,
              messages: [first, ...gone, new AIMessage({ id: `m${messages.length}-${notes.length}`, content: "ok" })],
            };
          })
          .addNode("close", async ({ messages }) => ({ last: String(messages.at(-1)?.id) }))
          .addEdge(START, "edit")
          .addEdge("edit", "close")
          .compile({ checkpointer });
      };
      const memory = new MemorySaver();
      const keptStore = openMemoryStore();
      const kept = new SkeinSaver(keptStore);
      for (let turn = 0; turn < 6; turn++) {
        const input = () => ({ messages: [new HumanMessage({ id: `h${turn}`, content: `turn ${turn}` })] });
        await build(memory).invoke(input(), { ...thread, durability });
        await build(new SkeinSaver(store)).invoke(input(), { ...thread, durability });
        await build(kept).invoke(input(), { ...thread, durability });
      }
      const expected = await build(memory).getState(thread);
      const plain = (state: typeof expected) => JSON.parse(JSON.stringify(state.values));
      const savers = [new SkeinSaver(store), kept, new SkeinSaver(keptStore)];
      for (const saver of savers) expect(plain(await build(saver).getState(thread))).toEqual(plain(expected));
      const history = async (saver: SkeinSaver | MemorySaver) => {
        const found = [];
        for await (const { values, metadata } of build(saver).getStateHistory(thread))
          found.push([metadata?.step, plain({ values } as typeof expected)]);
        return found;
      };
      for (const saver of savers) expect(await history(saver)).toEqual(await history(memory));
    },
  );

  test("returns the same values as the memory saver for a channel that grows, shrinks, is edited, and changes between list and value", async () => {
    const build = (checkpointer: SkeinSaver | MemorySaver) =>
      new StateGraph(Annotation.Root({ thing: Annotation<unknown>, other: Annotation<string> }))
        .addNode("model", async () => ({ other: "same" }))
        .addEdge(START, "model")
        .compile({ checkpointer });
    const store = openMemoryStore();
    const [memory, kept] = [new MemorySaver(), new SkeinSaver(store)];
    const things = [[1], [1, 2], [1, 2], [0, 2], "one", ["one", { two: 2 }], ["one", { two: 2 }, null], [], null, [[]]];
    for (const thing of things) {
      for (const saver of [memory, kept]) await build(saver).invoke({ thing }, thread);
      for (const saver of [kept, new SkeinSaver(store)]) {
        expect((await build(saver).getState(thread)).values).toEqual({ thing, other: "same" });
      }
    }
    const history = async (saver: SkeinSaver | MemorySaver) => {
      const found = [];
      for await (const { values } of build(saver).getStateHistory(thread)) found.push(values);
      return found;
    };
    expect(await history(new SkeinSaver(store))).toEqual(await history(memory));
  });

  test("continues in a fork of the session, and neither affects the other", async () => {
    const store = openMemoryStore();
    const saver = new SkeinSaver(store);
    await counter(saver).invoke(say("one"), thread);
    await store.fork("a-thread", createHeader({ id: "a-fork" }));
    await counter(saver).invoke(say("two"), { configurable: { thread_id: "a-fork" } });
    expect(await turnsOf(store, "a-fork")).toEqual(["one", "answer 1", "two", "answer 3"]);
    const { values } = await counter(saver).getState(thread);
    expect(texts(values.messages)).toEqual(["one", "answer 1"]);
  });

  test("stores no reference to a turn that a refused write did not store", async () => {
    const store = openMemoryStore();
    const graph = new StateGraph(Annotation.Root({ ...MessagesAnnotation.spec, note: Annotation<string> }))
      .addNode("model", async ({ messages }) => ({ messages: [new AIMessage(`answer ${messages.length}`)] }))
      .addEdge(START, "model")
      .compile({ checkpointer: new SkeinSaver(store) });
    await graph.invoke(say("one"), thread);
    const again = say("two");
    const tooLarge = { ...again, note: "x".repeat(9 * 1024 * 1024) };
    await expect(graph.invoke(tooLarge, { ...thread, durability: "sync" })).rejects.toMatchObject({
      code: "TOO_LARGE",
    });
    await graph.invoke(again, thread);
    const { values } = await counter(new SkeinSaver(store)).getState(thread);
    expect(texts(values.messages)).toEqual(["one", "answer 1", "two", "answer 3"]);
  });

  test("does not give a run the in-place changes of a failed run to the list of messages, like the memory saver", async () => {
    const run = async (checkpointer: SkeinSaver | MemorySaver) => {
      let failures = 3;
      const graph = new StateGraph(MessagesAnnotation)
        .addNode("model", async ({ messages }) => {
          messages.push(new AIMessage("junk"));
          if (failures-- > 0) throw new Error("it fails");
          return { messages: [new AIMessage(`answer ${messages.length}`)] };
        })
        .addEdge(START, "model")
        .compile({ checkpointer });
      const config = { ...thread, durability: "sync" as const };
      await graph.invoke(say("one"), config).catch(() => {});
      for (let tries = 0; tries < 2; tries++) await graph.invoke(null, config).catch(() => {});
      return texts((await graph.invoke(null, config)).messages);
    };
    expect(await run(new SkeinSaver(openMemoryStore()))).toEqual(await run(new MemorySaver()));
  });

  test("keeps a task's first write at each index, its last resume value, and writes that arrived before their checkpoint", async () => {
    const store = openMemoryStore();
    const saver = new SkeinSaver(store);
    const checkpoint = emptyCheckpoint();
    const config = { configurable: { ...thread.configurable, checkpoint_ns: "", checkpoint_id: checkpoint.id } };
    await saver.putWrites(config, [["early", "early"]], "task-0");
    await saver.put(
      { configurable: { ...thread.configurable } },
      checkpoint,
      { source: "input", step: -1, parents: {} },
      {},
    );
    for (const value of ["first", "second"]) {
      await saver.putWrites(config, [["channel", value]], "task-1");
      await saver.putWrites(config, [["__resume__", value]], "task-1");
    }
    for (const each of [thread, config]) {
      expect((await new SkeinSaver(store).getTuple(each))?.pendingWrites).toEqual([
        ["task-0", "early", "early"],
        ["task-1", "channel", "first"],
        ["task-1", "__resume__", "second"],
      ]);
    }
  });

  test("refuses a LangGraph with another checkpoint format, in one sentence", async () => {
    vi.resetModules();
    vi.doMock("@langchain/langgraph-checkpoint", async (original) => ({
      ...(await original<object>()),
      emptyCheckpoint: () => ({ v: 5 }),
    }));
    const { SkeinSaver: saver } = await import("../../src/interop/langgraph/index.ts");
    vi.doUnmock("@langchain/langgraph-checkpoint");
    expect(() => new saver(openMemoryStore())).toThrow(
      expect.objectContaining({ code: "DRIVER_VERSION", message: expect.stringContaining("install version 1") }),
    );
  });

  test("accepts a thread id that is not a valid session id, and deletes the thread", async () => {
    const store = openMemoryStore();
    const saver = new SkeinSaver(store);
    const config = { configurable: { thread_id: "user:42/mail@example.org" } };
    await counter(saver).invoke(say("one"), config);
    const listed = [];
    for await (const { config: found } of saver.list({}, { limit: 1 })) listed.push(found.configurable?.thread_id);
    expect(listed).toEqual(["user:42/mail@example.org"]);
    await saver.deleteThread("user:42/mail@example.org");
    expect(await saver.getTuple(config)).toBeUndefined();
  });
});
