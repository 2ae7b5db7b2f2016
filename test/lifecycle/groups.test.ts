import { expect } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import { defineTool } from "../../src/agent/tools/define-tool.ts";
import { YOUR_TURN } from "../../src/group/agent-view.ts";
import { PriorityTurnManager } from "../../src/group/turns/priority-turn-manager.ts";
import { TopicBasedTurnManager } from "../../src/group/turns/topic-based-turn-manager.ts";
import { scripted } from "../../src/models/scripted.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { call, usage } from "../sample-log.ts";
import "../../src/sandboxes/register-built-in.ts";
import "../../src/tools/register-built-in.ts";
import { agentOf, entriesOf, linesOf, notesOf, onEveryStore, phasesOf } from "./groups-sample.ts";

const lookUp = (answer = "42") =>
  defineTool({
    name: "look_up",
    description: "Looks a number up.",
    parameters: { type: "object", properties: {} },
    execute: () => answer,
  });

const calling = (...ids: readonly string[]) => ({
  role: "assistant" as const,
  content: null,
  toolCalls: ids.map((id) => call(id, "look_up")),
  stopReason: "tool_calls" as const,
});

onEveryStore("a group", {
  "lets every agent answer in turn, and stores every answer with its name and cost": async (stage) => {
    const { group, id, store } = stage;
    const ada = agentOf("ada", { content: "Yes.", usage: usage(3, 4), cost: 0.5, provider: "p", model: "m" });
    const state = await group().addAgent(ada).addAgent(agentOf("bob", "No.")).run(id, "Well?", { maxRounds: 1 });
    expect(linesOf(state.turns)).toEqual(["user: Well?", "ada: Yes.", "bob: No."]);
    expect(state.turns[1]).toMatchObject({ role: "assistant", usage: usage(3, 4), tokensUsed: 7, cost: 0.5 });
    expect(state.turns[1]).toMatchObject({ provider: "p", model: "m", metadata: { group: { kind: "turn" } } });
    expect([state.turnCount, state.totalTokens, state.totalCost]).toEqual([3, 7, 0.5]);
    expect(await phasesOf(store, id)).toEqual(["started", "finished"]);
    expect(await notesOf(store, id)).toEqual([{ kind: "ended", reason: "max-rounds" }]);
    expect(await store.leaseOf(id)).toBeNull();
    await checkHeadIsFold(store, id);
  },

  "gives each agent the message and all visible turns": async ({ group, id }) => {
    const [ada, bob] = [agentOf("ada"), agentOf("bob")];
    await group().addAgent(ada).addAgent(bob).run(id, "Well?", { maxRounds: 2 });
    expect(bob.asked.map(({ message }) => message)).toEqual(["Well?", "Well?"]);
    expect(ada.asked.map(({ history }) => linesOf(history))).toEqual([
      ["user: Well?"],
      ["user: Well?", "ada: ada 1", "bob: bob 1"],
    ]);
    expect(linesOf(bob.asked[1]?.history ?? [])).toEqual(["user: Well?", "ada: ada 1", "bob: bob 1", "ada: ada 2"]);
  },

  "shows private turns to their recipients, in whatever way they were made private": async ({ group, id, manager }) => {
    await manager.addTurn(id, { role: "user", content: "for ada", metadata: { visibleTo: ["ada"] } });
    const ada = agentOf("ada", { content: "not for bob", metadata: { hiddenFrom: ["bob"] } });
    const [bob, cid] = [agentOf("bob"), agentOf("cid")];
    const three = group()
      .addAgent(ada)
      .addAgent(bob, "critic", { visibleTo: ["cid"] })
      .addAgent(cid);
    await three.run(id, "for ada and cid", { maxRounds: 2, metadata: { visibleTo: ["ada", "cid"] } });
    const seen = (agent: typeof ada) => linesOf(agent.asked[1]?.history ?? []);
    expect(seen(ada)).toEqual(["user: for ada", "user: for ada and cid", "ada: not for bob", "cid: cid 1"]);
    expect(seen(bob)).toEqual(["bob: bob 1", "cid: cid 1", "ada: ada 2"]);
    expect(seen(cid)).toEqual([
      "user: for ada and cid",
      "ada: not for bob",
      "bob: bob 1",
      "cid: cid 1",
      "ada: ada 2",
      "bob: bob 2",
    ]);
    // A hidden turn does not reach an agent in another way either.
    expect([bob.asked[0]?.message, cid.asked[0]?.message]).toEqual(["", "for ada and cid"]);
  },

  "passes turns of others to loop agents as messages with names, and their own turns as answers": async (stage) => {
    const { group, id } = stage;
    const [ada, bob] = [scripted(["Yes.", "Still yes."]), scripted(["No.", "Never."])];
    const two = group()
      .addAgent(createAgent({ name: "ada", prompt: "Agree.", model: ada }))
      .addAgent(createAgent({ name: "bob", prompt: "Disagree.", model: bob }));
    const state = await two.run(id, "Well?", { maxRounds: 2 });
    expect(linesOf(state.turns)).toEqual(["user: Well?", "ada: Yes.", "bob: No.", "ada: Still yes.", "bob: Never."]);
    expect(state.turns[1]).toMatchObject({ provider: "scripted", model: "scripted", stopReason: "stop" });
    const told = (model: typeof ada) =>
      model.requests[1]?.messages.map(({ role, content }) => `${role}: ${content as string}`);
    expect(told(ada)).toEqual(["system: Agree.", "user: Well?", "assistant: Yes.", "user: bob: No."]);
    expect(told(bob)).toEqual([
      "system: Disagree.",
      "user: Well?",
      "user: ada: Yes.",
      "assistant: No.",
      "user: ada: Still yes.",
    ]);
  },

  "keeps the tool calls of a loop agent, for that agent alone": async ({ group, id, store }) => {
    const ada = scripted([calling("c1"), "It is 42.", "As I said."]);
    const bob = agentOf("bob");
    const two = group()
      .addAgent(createAgent({ name: "ada", prompt: "Count.", model: ada, tools: [lookUp()] }))
      .addAgent(bob);
    const state = await two.run(id, "How many?", { maxRounds: 2 });
    expect(state.turns.map(({ role, agent }) => `${role} ${agent}`)).toEqual([
      "user undefined",
      "assistant ada",
      "tool ada",
      "assistant ada",
      "assistant bob",
      "assistant ada",
      "assistant bob",
    ]);
    expect(state.turns.map(({ metadata }) => metadata.visibleTo)).toEqual([
      undefined,
      ["ada"],
      ["ada"],
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect(linesOf(bob.asked[0]?.history ?? [])).toEqual(["user: How many?", "ada: It is 42."]);
    const request = ada.requests[2]?.messages.map(({ role }) => role);
    expect(request).toEqual(["system", "user", "assistant", "tool", "assistant", "user"]);
    expect((await entriesOf(store, id)).filter(({ type }) => type === "effect").length).toBe(1);
    await checkHeadIsFold(store, id);
  },

  "asks a single agent again, with a request that does not end in an answer": async ({ group, id }) => {
    const model = scripted(["one", "two"]);
    const alone = group().addAgent(createAgent({ name: "ada", prompt: "Count.", model }));
    expect(linesOf((await alone.run(id, "Go.", { maxRounds: 2 })).turns)).toEqual([
      "user: Go.",
      "ada: one",
      "ada: two",
    ]);
    expect(model.requests[1]?.messages.at(-1)).toEqual({ role: "user", content: YOUR_TURN });
  },

  "follows the turn manager, and the lower limit ends it": async ({ group, id, manager }) => {
    const state = await group({ turnManager: new PriorityTurnManager({ bob: 2 }, 1) })
      .addAgent(agentOf("ada"))
      .addAgent(agentOf("bob"))
      .run(id, "Go.");
    expect(linesOf(state.turns).slice(1)).toEqual(["bob: bob 1", "ada: ada 1"]);
    const topics = group({ turnManager: new TopicBasedTurnManager({ ping: "ada", pong: "bob" }) })
      .addAgent(agentOf("ada", "pong", "pong"))
      .addAgent(agentOf("bob", "ping"));
    const { turns } = await topics.run(id, "ping", { maxRounds: 3 });
    expect(linesOf(turns).slice(3)).toEqual(["user: ping", "ada: pong", "bob: ping", "ada: pong"]);
    expect((await manager.getState(id, { turns: false }))?.turnCount).toBe(7);
  },

  "records agents that pass or return an error, without a turn, and continues": async (stage) => {
    const { group, id, store } = stage;
    const silent = scripted([{ role: "assistant", content: "  ", usage: usage(5, 1), cost: 0.1, stopReason: "stop" }]);
    const five = group()
      .addAgent(agentOf("empty", ""))
      .addAgent(agentOf("nothing", null))
      .addAgent(createAgent({ name: "silent", prompt: "", model: silent }))
      .addAgent(agentOf("sorry", { ok: false, error: new Error("not today") }))
      .addAgent(agentOf("last"));
    const state = await five.run(id, "Who?", { maxRounds: 1 });
    expect(linesOf(state.turns)).toEqual(["user: Who?", "last: last 1"]);
    expect(await notesOf(store, id)).toEqual([
      { kind: "passed", agent: "empty" },
      { kind: "passed", agent: "nothing" },
      { kind: "passed", agent: "silent", usage: usage(5, 1), cost: 0.1 },
      { kind: "refused", agent: "sorry", error: { name: "Error", message: "not today" } },
      { kind: "ended", reason: "max-rounds" },
    ]);
  },

  "ends when all agents in a row have passed": async ({ group, id, store }) => {
    const [ada, bob] = [agentOf("ada", "Yes.", "", ""), agentOf("bob", null, "")];
    const run = group().addAgent(ada).addAgent(bob).stream(id, "Well?");
    expect(linesOf((await run).turns)).toEqual(["user: Well?", "ada: Yes."]);
    expect(run.outcome).toEqual({ reason: "all-passed" });
    expect([ada.asked.length, bob.asked.length]).toEqual([2, 1]);
    expect((await notesOf(store, id)).at(-1)).toEqual({ kind: "ended", reason: "all-passed" });
  },

  "sees turns that people add meanwhile, and keeps everything on one path": async ({ group, id, manager, store }) => {
    const ada = agentOf("ada", async () => {
      await manager.addTurn(id, { role: "user", content: "One more thing." });
      return "Yes.";
    });
    const bob = agentOf("bob");
    const state = await group().addAgent(ada).addAgent(bob).run(id, "Well?", { maxRounds: 1 });
    const lines = ["user: Well?", "user: One more thing.", "ada: Yes."];
    expect(linesOf(bob.asked[0]?.history ?? [])).toEqual(lines);
    expect(linesOf(state.turns)).toEqual([...lines, "bob: bob 1"]);
    await checkHeadIsFold(store, id);
  },

  "answers the next message with all earlier turns": async ({ group, id }) => {
    const ada = agentOf("ada");
    const one = group().addAgent(ada);
    await one.run(id, "First.", { maxRounds: 1 });
    await one.run(id, "Second.", { maxRounds: 1 });
    expect(linesOf(ada.asked[1]?.history ?? [])).toEqual(["user: First.", "ada: ada 1", "user: Second."]);
    expect(ada.asked[1]?.message).toBe("Second.");
  },

  "continues from a summary, which its details can hide from agents": async ({ group, id, manager }) => {
    await manager.addTurn(id, { role: "user", content: "long ago", turnId: "old" });
    await manager.addTurn(id, { role: "user", content: "kept", turnId: "kept" });
    const tree = await manager.open(id);
    const compaction = { summary: "It was long ago.", firstKeptEntryId: "kept", tokensBefore: 9 };
    await tree.appendCompaction({ ...compaction, details: { hiddenFrom: ["bob"] } });
    const [ada, bob] = [agentOf("ada"), agentOf("bob")];
    await group().addAgent(ada).addAgent(bob).run(id, "Well?", { maxRounds: 1 });
    expect(linesOf(ada.asked[0]?.history ?? [])).toEqual([
      expect.stringContaining("It was long ago."),
      "user: kept",
      "user: Well?",
    ]);
    expect(linesOf(bob.asked[0]?.history ?? [])).toEqual(["user: kept", "user: Well?", "ada: ada 1"]);
  },
});
