import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AgentInit, createAgent } from "../../src/agent/agent.ts";
import { defineTool } from "../../src/agent/tools/define-tool.ts";
import type { GroupRunOptions } from "../../src/group/group-options.ts";
import { GroupSession } from "../../src/group/group-session.ts";
import { LlmTurnManager } from "../../src/group/turns/llm-turn-manager.ts";
import { PriorityTurnManager } from "../../src/group/turns/priority-turn-manager.ts";
import { RoundRobinTurnManager } from "../../src/group/turns/round-robin-turn-manager.ts";
import { TopicBasedTurnManager } from "../../src/group/turns/topic-based-turn-manager.ts";
import type { TurnManager } from "../../src/group/turns/turn-manager.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { offline } from "../../src/models/offline.ts";
import { scripted } from "../../src/models/scripted.ts";
import type { SessionTurn } from "../../src/session/state/state.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { call, message, user } from "../sample-log.ts";
import "../../src/sandboxes/register-built-in.ts";
import "../../src/tools/register-built-in.ts";
import { agentOf, eventsOf, type GroupStage, linesOf, notesOf, stageOn } from "./groups-sample.ts";

const _lookUp = (answer = "42") =>
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

test("events are emitted in order, with the events of each agent's own run", async () => {
  const { group, id } = await stageOn(openMemoryStore());
  const heard: string[] = [];
  const run = group()
    .addAgent(createAgent({ name: "ada", prompt: "", model: scripted(["Yes."]) }))
    .addAgent(agentOf("bob", null))
    .stream(id, "Well?", { maxRounds: 1, turnId: "q", onEvent: ({ type }) => heard.push(type) });
  expect([run.pending, run.outcome, run.sessionId]).toEqual([true, null, id]);
  const events = await eventsOf(run);
  expect(events[0]).toEqual({
    type: "group-started",
    claim: 1,
    sessionId: id,
    messageId: "q",
    agents: ["ada", "bob"],
    resumed: false,
    runId: run.id,
  });
  expect(
    events
      .filter(({ type }) => type !== "text-delta")
      .map((event) => ("agent" in event ? `${event.type} ${event.agent}` : event.type)),
  ).toEqual([
    "group-started",
    "agent-selected ada",
    "run-started ada",
    "round-started ada",
    "agent-finished ada",
    "round-finished ada",
    "run-finished ada",
    "agent-selected bob",
    "agent-finished bob",
    "group-finished",
  ]);
  const text = events.flatMap((event) => (event.type === "text-delta" ? [event.text] : [])).join("");
  expect(text).toBe("Yes.");
  const state = await run;
  expect(new Set(events.map(({ runId }) => runId))).toEqual(new Set([run.id]));
  const finished = events.filter((event) => event.type === "agent-finished");
  expect(finished).toMatchObject([
    { type: "agent-finished", agent: "ada", kind: "spoke", turnId: state.turns[1]?.turnId, text: "Yes." },
    { type: "agent-finished", agent: "bob", kind: "passed", turnId: null, text: "" },
  ]);
  expect([run.pending, run.outcome]).toEqual([false, { reason: "max-rounds" }]);
  expect(heard).toEqual(events.map(({ type }) => type));
  expect(await eventsOf(run)).toEqual(events);
});

const managers: Readonly<Record<string, () => TurnManager>> = {
  "round robin": () => new RoundRobinTurnManager(),
  priority: () => new PriorityTurnManager({ bob: 1 }),
  topics: () => new TopicBasedTurnManager({ go: "ada" }, "bob"),
  "a model": () => new LlmTurnManager(scripted(Array.from({ length: 20 }, () => "ada"))),
};

test.for(Object.entries(managers))("after a group has run, its turn manager recognizes that: %s", async ([, make]) => {
  const { group, id, manager, store } = await stageOn(openMemoryStore());
  const turnManager = make();
  const agents = [agentOf("ada"), agentOf("bob")] as const;
  const known = async (of: TurnManager) => [await of.isComplete(id), await of.selectNext(id)];
  const crew = group({ turnManager });
  for (const agent of agents) crew.addAgent(agent);
  await crew.run(id, "Go.", { maxRounds: 1 });
  expect(await known(turnManager)).toEqual([true, null]);
  expect(await turnManager.isComplete("another")).toBe(false);

  const later = make();
  const another = new GroupSession({ manager: new SessionManager({ store }), turnManager: later });
  for (const agent of agents) another.addAgent(agent);
  expect(await later.isComplete(id)).toBe(false);
  await another.resume(id);
  expect(await known(later)).toEqual([true, null]);

  await manager.addTurn(id, { role: "user", content: "And now go on." });
  turnManager.recordTurns?.(id, (await manager.getState(id))?.turns ?? []);
  expect(await turnManager.isComplete(id)).toBe(false);
  expect(await turnManager.selectNext(id)).not.toBeNull();
});

test("a turn manager does not consider a group finished while it works or after an agent failed", async () => {
  const { group, id } = await stageOn(openMemoryStore());
  const turnManager = new RoundRobinTurnManager(1);
  const asked: (string | null)[] = [];
  const curious = {
    name: "ada",
    execute: async () => {
      asked.push(await turnManager.selectNext(id));
      return "Well.";
    },
  };
  const failing = {
    name: "bob",
    execute: () => {
      throw new Error("No.");
    },
  };
  const crew = group({ turnManager }).addAgent(curious).addAgent(failing);
  const run = crew.stream(id, "Go.");
  await run;
  expect([asked, run.outcome?.reason]).toEqual([["ada"], "agent-failed"]);
  expect([await turnManager.isComplete(id), await turnManager.selectNext(id)]).toEqual([false, "bob"]);
});

test("memory, listeners and automatic checkpoints receive the turns of a group like any others", async () => {
  const remembered: string[] = [];
  const added: string[] = [];
  const stage = await stageOn(openMemoryStore(), {
    memory: { add: ({ turn }) => remembered.push(turn.turnId) },
    config: { autoCheckpointInterval: 2 },
  });
  stage.manager.events.on("turnAdded", ({ turn }) => added.push(turn.turnId));
  const { turns } = await stage.group().addAgent(agentOf("ada")).run(stage.id, "Go.", { maxRounds: 3 });
  const ids = turns.map(({ turnId }) => turnId);
  expect([remembered, added]).toEqual([ids, ids]);
  expect((await stage.store.listCheckpoints(stage.id)).length).toBe(2);
});

test("the history is read once for a run, and then only new entries", async () => {
  const readFor = async (moves: number, interjecting: boolean): Promise<number> => {
    const { store, manager, id, group } = await stageOn(counting(openMemoryStore()));
    for (let i = 0; i < 200; i++) await manager.addTurn(id, { role: "user", content: `${i}` });
    const before = (store as Counting).entriesRead;
    const interject = async () => {
      await manager.addTurn(id, { role: "user", content: "By the way…" });
      return "Yes.";
    };
    const ada = agentOf("ada", ...Array.from({ length: interjecting ? moves : 0 }, () => interject));
    const turnManager = new RoundRobinTurnManager(moves);
    await group({ turnManager }).addAgent(ada).run(id, "Go.", { maxRounds: moves, turns: false });
    expect(ada.asked.length).toBe(moves);
    return (store as Counting).entriesRead - before;
  };
  const few = await readFor(2, false);
  expect(few).toBeLessThan(300);
  expect((await readFor(40, false)) - few).toBe(0);
  expect((await readFor(40, true)) - few).toBe(40);
});

test("a group that is interrupted any number of times produces the same turns", async () => {
  const answer = fc.constantFrom("spoke", "passed", "refused");
  const names = ["ada", "bob", "cid"];
  const talk = async (script: readonly string[], stops: ReadonlySet<number>): Promise<unknown> => {
    const { group, id, store } = await stageOn(openMemoryStore());
    const stopped = new Set<number>();
    let move = 0;
    let stop: () => void = () => {};
    const makeGroup = () => {
      const three = group();
      for (const name of names) {
        three.addAgent({
          name,
          execute: () => {
            if (stops.has(move) && !stopped.has(move)) {
              stopped.add(move);
              stop();
              return new Promise<never>(() => {});
            }
            const how = script[move++];
            if (how === "refused") return { ok: false, error: how };
            return how === "passed" ? null : `${name} ${move}`;
          },
        });
      }
      return three;
    };
    for (let message: string | null = "Go."; ; message = null) {
      const run = makeGroup().stream(id, message, message === null ? {} : { maxRounds: 3 });
      stop = () => run.abort();
      try {
        const { turns } = await run;
        return { lines: linesOf(turns), notes: await notesOf(store, id), outcome: run.outcome };
      } catch (error) {
        expect(error).toMatchObject({ code: "ABORTED" });
      }
    }
  };
  await fc.assert(
    fc.asyncProperty(
      fc.array(answer, { minLength: 9, maxLength: 9 }),
      fc.array(fc.nat({ max: 8 }), { maxLength: 6 }),
      async (script, stops) => {
        expect(await talk(script, new Set(stops))).toEqual(await talk(script, new Set()));
      },
    ),
    { numRuns: 60 },
  );
});

test("agents of a group work on the same files", async () => {
  const store = openMemoryStore();
  const { manager, group } = await stageOn(store);
  const sandbox = { backend: "local", spec: {}, handleId: null };
  const { sessionId } = await manager.create({ userId: "ann", id: "files", sandbox });
  const two = group()
    .addAgent(createAgent({ name: "writer", prompt: "", model: offline() }))
    .addAgent(createAgent({ name: "reader", prompt: "", model: scripted([readFile, "Done."]) }));
  const { turns } = await two.run(sessionId, 'write "Dear reader" to letter.txt', { maxRounds: 1 });
  expect(linesOf(turns).find((line) => line.startsWith("reader") && line.includes("Dear reader"))).toBeDefined();
});

const readFile = {
  role: "assistant" as const,
  content: null,
  toolCalls: [{ id: "r1", name: "read_workspace_file", arguments: JSON.stringify({ path: "letter.txt" }) }],
  stopReason: "tool_calls" as const,
};

test("a call that waits for approval is approved or denied through the group", async () => {
  const guarded = defineTool({
    name: "look_up",
    description: "Looks a number up.",
    parameters: { type: "object", properties: {} },
    needsApproval: true,
    execute: () => "42",
  });
  const { group, id } = await stageOn(openMemoryStore());
  const model = scripted([calling("c1", "c2"), "Done."]);
  const run = group()
    .addAgent(createAgent({ name: "ada", prompt: "", model, tools: [guarded] }))
    .stream(id, "Go.", { maxRounds: 1 });
  for await (const event of run) {
    if (event.type !== "approval-required") continue;
    const { callId } = event.approval;
    await (callId === "c1" ? run.approve(callId) : run.deny(callId, "no"));
  }
  const answers = (await run).turns.filter(({ role }) => role === "tool").map(({ content }) => content as string);
  expect(answers).toEqual(["42", expect.stringContaining("no")]);
  await expect(run.approve("c1")).rejects.toMatchObject({ code: "RUN_ENDED" });
});

describe("a group whose agent needs approval of a call", () => {
  async function asking(options: GroupRunOptions, own: Partial<AgentInit> = {}) {
    const { group, id } = await stageOn(openMemoryStore());
    const parameters = { type: "object", properties: {} };
    const guarded = { name: "look_up", description: "Looks up.", parameters, needsApproval: true, execute: () => "42" };
    const model = scripted([calling("c1"), "Done."]);
    const agent = createAgent({ name: "ada", prompt: "", model, tools: [defineTool(guarded)], ...own });
    const { turns } = await group()
      .addAgent(agent)
      .stream(id, "Go.", { maxRounds: 1, ...options });
    return turns.filter(({ role }) => role === "tool").map(({ content }) => content);
  }

  test("has it denied immediately while its events have no subscriber", async () => {
    expect(await asking({})).toEqual([expect.stringMatching(/denied.*no one can be asked/)]);
  });

  test("calls onApproval of the group, or else of the agent", async () => {
    expect(await asking({ onApproval: () => true })).toEqual(["42"]);
    expect(await asking({}, { onApproval: () => true })).toEqual(["42"]);
    expect(await asking({ onApproval: () => false }, { onApproval: () => true })).toEqual([
      expect.stringContaining("denied"),
    ]);
  });

  test("accepts no parking times, because it does not park", async () => {
    await expect(asking({ park: { afterMs: 1 } as never })).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await expect(asking({ onApproval: 5 as never })).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });
});

test("a summary that a loop agent makes of its context does not replace what others see", async () => {
  const { group, id, manager } = await stageOn(openMemoryStore());
  for (let i = 0; i < 6; i++) await manager.addTurn(id, { role: "user", content: `${i} ${"x".repeat(2000)}` });
  const model = scripted(["A summary.", "Yes."], { contextWindow: 3000 });
  const settings = { reserveTokens: 500, keepRecentTokens: 600 };
  const two = group()
    .addAgent(createAgent({ name: "ada", prompt: "", model, compaction: { settings } }))
    .addAgent(agentOf("bob"));
  const run = two.stream(id, "Well?", { maxRounds: 1 });
  const events = await eventsOf(run);
  expect(events.some(({ type }) => type === "compaction")).toBe(true);
  expect((await run).turnCount).toBe(9);
  expect((await manager.open(id)).head.path.compactionId).toBeNull();
});

test("a custom turn manager selects agents, hides turns, and may be synchronous", async () => {
  const { group, id } = await stageOn(openMemoryStore());
  const views: (readonly string[] | undefined)[] = [];
  const own: TurnManager = {
    register: () => {},
    selectNext: (_id, view) => {
      views.push(view?.moves);
      return (view?.moves?.length ?? 0) < 3 ? "bob" : null;
    },
    isComplete: () => false,
    filterVisible: (turns: readonly SessionTurn[]) => turns.filter(({ agent }) => agent === undefined),
  };
  const bob = agentOf("bob");
  const run = group({ turnManager: own }).addAgent(agentOf("ada")).addAgent(bob).stream(id, "Go.");
  expect(linesOf((await run).turns)).toEqual(["user: Go.", "bob: bob 1", "bob: bob 2", "bob: bob 3"]);
  expect(views).toEqual([[], ["bob"], ["bob", "bob"], ["bob", "bob", "bob"]]);
  expect(linesOf(bob.asked[2]?.history ?? [])).toEqual(["user: Go."]);
  expect(run.outcome).toEqual({ reason: "complete" });
});

test("one turn manager serves several groups concurrently", async () => {
  const { group, manager, id } = await stageOn(openMemoryStore());
  const { sessionId: other } = await manager.create({ userId: "ann" });
  const turnManager = new RoundRobinTurnManager(1);
  const [first, second] = [
    group({ turnManager }).addAgent(agentOf("ada")),
    group({ turnManager }).addAgent(agentOf("bob")),
  ];
  const states = await Promise.all([first.run(id, "a"), second.run(other, "b")]);
  expect(states.map(({ turns }) => linesOf(turns))).toEqual([
    ["user: a", "ada: ada 1"],
    ["user: b", "bob: bob 1"],
  ]);
});

test("a turn added directly after an answer is seen by the next agent", async () => {
  const memory = openMemoryStore();
  const append: GroupStage["store"]["append"] = async (id, drafts, options) => {
    const result = await memory.append(id, drafts, options);
    const answered = drafts.some((draft) => draft.type === "message" && draft.message.agent === "ada");
    if (answered) await memory.append(id, [message("late", user("Wait!"))]);
    return result;
  };
  const { group, id } = await stageOn(withOther(memory, { append }));
  const bob = agentOf("bob");
  await group().addAgent(agentOf("ada")).addAgent(bob).run(id, "Go.", { maxRounds: 1 });
  expect(linesOf(bob.asked[0]?.history ?? [])).toEqual(["user: Go.", "ada: ada 1", "user: Wait!"]);
});

type Counting = GroupStage["store"] & { readonly entriesRead: number };

/** A store that counts the entries that were read from it. */
function counting(store: GroupStage["store"]): Counting {
  let entriesRead = 0;
  const counted = {
    get entriesRead() {
      return entriesRead;
    },
    async *read(...args: Parameters<typeof store.read>) {
      for await (const entry of store.read(...args)) {
        entriesRead++;
        yield entry;
      }
    },
  };
  return withOther(store, counted) as Counting;
}

/** A store with some methods replaced. */
function withOther(store: GroupStage["store"], methods: object): GroupStage["store"] {
  return new Proxy(store, {
    get(target, key) {
      if (Object.hasOwn(methods, key)) return Reflect.get(methods, key);
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
