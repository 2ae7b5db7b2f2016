import { expect, onTestFinished, test, vi } from "vitest";
import { drainRuns } from "../../src/agent/active-runs.ts";
import { createAgent } from "../../src/agent/agent.ts";
import { defineTool } from "../../src/agent/tools/define-tool.ts";
import type { GroupAgent } from "../../src/group/group-agent.ts";
import { GroupSession } from "../../src/group/group-session.ts";
import { RoundRobinTurnManager } from "../../src/group/turns/round-robin-turn-manager.ts";
import { TopicBasedTurnManager } from "../../src/group/turns/topic-based-turn-manager.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { scripted } from "../../src/models/scripted.ts";
import { textOf } from "../../src/session/message.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { call } from "../sample-log.ts";
import { calling, modelOf, toolOf } from "../sample-run.ts";
import { agentOf, entriesOf, hanging, linesOf, phasesOf, stageOn } from "./groups-sample.ts";

const boom = new RangeError("boom");

test("an agent that exceeds its timeout has failed, and the group continues without waiting for it", async () => {
  const { group, id } = await stageOn(openMemoryStore());
  const aborted: boolean[] = [];
  const slow = agentOf("slow", ({ signal }) => {
    signal.addEventListener("abort", () => aborted.push(signal.aborted));
    return new Promise(() => {});
  });
  const run = group().addAgent(slow).stream(id, "Go.", { agentTimeoutMs: 5 });
  expect((await run).turns.at(-1)?.metadata.error).toEqual({
    name: "SessionError",
    code: "ABORTED",
    message: 'Agent "slow" did not answer within 5 ms.',
  });
  expect([run.outcome?.reason, aborted]).toEqual(["agent-failed", [true]]);
});

test("a loop agent that exceeds its timeout has failed, too, and its partial answer stays private", async () => {
  const { group, id } = await stageOn(openMemoryStore());
  const model = scripted([
    async function* () {
      yield { type: "text-delta" as const, text: "I was about to" };
      await new Promise(() => {});
    },
  ]);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const agent = createAgent({ name: "ada", prompt: "", model });
  const run = group().addAgent(agent).stream(id, "Go.", { agentTimeoutMs: 1000 });
  for await (const event of run) if (event.type === "text-delta") vi.advanceTimersByTime(1000);
  const { turns } = await run;
  expect(turns.map(({ stopReason, content }) => `${stopReason}: ${textOf(content)}`)).toEqual([
    "undefined: Go.",
    "aborted: I was about to",
    "error: ",
  ]);
  expect(turns[1]?.metadata.visibleTo).toEqual(["ada"]);
  expect(run.outcome).toMatchObject({ error: { message: 'Agent "ada" did not answer within 1000 ms.' } });
});

test("an agent that ran out of rounds or was cut short passes, and one whose text was cut still has a turn", async () => {
  const { group, id, store } = await stageOn(openMemoryStore());
  const tool = defineTool({
    name: "look",
    description: "Looks.",
    parameters: { type: "object" },
    execute: () => "seen",
  });
  const calling = {
    role: "assistant" as const,
    content: null,
    toolCalls: [call("c1")],
    stopReason: "tool_calls" as const,
  };
  const cut = {
    role: "assistant" as const,
    content: "Half of",
    toolCalls: [call("c2")],
    stopReason: "length" as const,
  };
  const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  const agent = (name: string, ...replies: Parameters<typeof scripted>[0]) =>
    createAgent({ name, prompt: "", model: scripted(replies), tools: [tool], maxToolRounds: 1 });
  const bob = agentOf("bob");
  await group()
    .addAgent(agent("ada", calling))
    .addAgent(agent("cut", cut))
    .addAgent(bob)
    .run(id, "Go.", { maxRounds: 1 });
  warned.mockRestore();
  expect(linesOf(bob.asked[0]?.history ?? [])).toEqual(["user: Go.", "cut: Half of"]);
  const passed = (await entriesOf(store, id)).filter(
    (entry) => entry.type === "custom" && entry.customType === "group",
  );
  expect(passed[0]).toMatchObject({ data: { kind: "passed", agent: "ada" } });
});

test("waiting for a session can be aborted", async () => {
  const { group, id, store } = await stageOn(openMemoryStore());
  await store.lease(id, "another run", 600_000);
  const waiting = group().addAgent(agentOf("ada")).stream(id, "Go.", { ifBusy: "enqueue", waitMs: 600_000 });
  setTimeout(() => waiting.abort("enough"), 30);
  await expect(waiting).rejects.toMatchObject({ code: "ABORTED", cause: "enough" });
  expect(await entriesOf(store, id)).toEqual([]);
});

test("a listener that throws is reported, and the group continues", async () => {
  const { group, id } = await stageOn(openMemoryStore());
  const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  const onEvent = () => {
    throw new Error("deaf");
  };
  const state = await group().addAgent(agentOf("ada")).run(id, "Go.", { maxRounds: 1, onEvent });
  expect(state.turnCount).toBe(2);
  expect(warned.mock.calls[0]?.[0]).toContain("deaf");
  warned.mockRestore();
});

test("a group interrupted by the end of its process is left as after a crash, and continues", async () => {
  const { group, id, store } = await stageOn(openMemoryStore());
  const { answer, asked } = hanging();
  const run = group().addAgent(agentOf("ada")).addAgent(agentOf("bob", answer)).stream(id, "Go.", { maxRounds: 1 });
  await asked;
  const { abandoned } = await drainRuns({ timeoutMs: 0 });
  expect(abandoned).toContain(run.id);
  await expect(run).rejects.toMatchObject({ code: "ABORTED" });
  expect(await phasesOf(store, id)).toEqual(["started"]);
  expect((await store.head(id))?.openRuns).toEqual([{ runId: run.id, state: "started", first: 0 }]);
  const state = await group().addAgent(agentOf("ada")).addAgent(agentOf("bob")).resume(id);
  expect(linesOf(state.turns)).toEqual(["user: Go.", "ada: ada 1", "bob: bob 1"]);
  expect(await phasesOf(store, id)).toEqual(["started", "failed", "started", "finished"]);
});

test("a group continues after a compaction that left out its message", async () => {
  const { group, id, manager } = await stageOn(openMemoryStore());
  const { answer, asked } = hanging();
  const run = group().addAgent(agentOf("ada")).addAgent(agentOf("bob", answer)).stream(id, "Go.", { maxRounds: 1 });
  await asked;
  run.abort();
  await expect(run).rejects.toMatchObject({ code: "ABORTED" });
  const tree = await manager.open(id);
  const last = (await manager.getState(id))?.turns.at(-1)?.turnId as string;
  await tree.appendCompaction({ summary: "They talked.", firstKeptEntryId: last, tokensBefore: 9 });
  const [ada, bob] = [agentOf("ada"), agentOf("bob")];
  await group().addAgent(ada).addAgent(bob).resume(id);
  expect([ada.asked.length, linesOf(bob.asked[0]?.history ?? [])]).toEqual([
    0,
    [expect.stringContaining("They talked."), "ada: ada 1"],
  ]);
});

test("an unknown agent returned by a turn manager ends the run with an error", async () => {
  const { group, id, store } = await stageOn(openMemoryStore());
  const turnManager = new TopicBasedTurnManager({ go: "nobody-here" });
  const run = group({ turnManager }).addAgent(agentOf("ada")).run(id, "Go.");
  await expect(run).rejects.toMatchObject({ code: "INVALID_OPTION", message: expect.stringContaining("nobody-here") });
  expect(await phasesOf(store, id)).toEqual(["started", "failed"]);
});

test("a turn manager that fails or hangs ends the run, and earlier turns are kept", async () => {
  const { group, id, manager } = await stageOn(openMemoryStore());
  class Failing extends RoundRobinTurnManager {
    override async selectNext(): Promise<string | null> {
      throw boom;
    }
  }
  await expect(group({ turnManager: new Failing() }).addAgent(agentOf("ada")).run(id, "Go.")).rejects.toBe(boom);
  class Hanging extends RoundRobinTurnManager {
    override isComplete(): Promise<boolean> {
      return new Promise(() => {});
    }
  }
  const signal = AbortSignal.timeout(5);
  const hung = group({ turnManager: new Hanging() }).addAgent(agentOf("ada")).run(id, "Go.", { signal });
  await expect(hung).rejects.toMatchObject({ code: "ABORTED", cause: { name: "TimeoutError" } });
  expect((await manager.getState(id, { turns: false }))?.turnCount).toBe(2);
});

test("an invalid set-up is refused synchronously, and nothing is written", async () => {
  const { group, id, manager, store } = await stageOn(openMemoryStore());
  const refused = (act: () => unknown, code = "INVALID_OPTION"): void =>
    expect(act).toThrow(expect.objectContaining({ code }));
  refused(() => new GroupSession({} as never));
  refused(() => new GroupSession({ manager, turnManager: { register() {} } as never }));
  refused(() => new GroupSession({ manager, roleIsolation: {} as never }));
  refused(() => new GroupSession({ manager, maxAgents: 0 }));
  const topic = new SessionManager({ store, config: { defaultTurnStrategy: "topic" } });
  refused(() => new GroupSession({ manager: topic }));
  refused(() => group().stream(id, "Go."));
  const one = group().addAgent(agentOf("ada"));
  refused(() => one.stream(id, 7 as never));
  for (const wrong of [
    { maxRounds: 0 },
    { maxRounds: -1 },
    { signal: {} as never },
    { onEvent: 1 as never },
    { ifBusy: "interrupt" as never },
    { waitMs: -1 },
    { agentTimeoutMs: 0 },
    { actor: undefined as never },
  ]) {
    refused(() => one.stream(id, "Go.", wrong));
  }
  refused(() => one.stream(id, "Go.", { turnId: "" }), "INVALID_ID");
  const agents: unknown[] = [
    null,
    {},
    { name: "x" },
    { execute: () => "x" },
    createAgent({ prompt: "", model: scripted([]) }),
  ];
  for (const agent of agents) refused(() => one.addAgent(agent as GroupAgent));
  refused(() => one.addAgent(agentOf("")), "INVALID_ID");
  refused(() => one.addAgent(agentOf("ada")));
  refused(() => one.addAgent(agentOf("bob"), ""));
  refused(() => one.addAgent(agentOf("bob"), "x", { visibleTo: "ada" as never }));
  expect(one.agentNames).toEqual(["ada"]);
  expect(await entriesOf(store, id)).toEqual([]);
  for (const metadata of [{ at: new Date() as never }, JSON.parse('{"__proto__": {}}')]) {
    await expect(one.run(id, "Go.", { metadata })).rejects.toMatchObject({ code: "INVALID_VALUE" });
  }
  expect([await entriesOf(store, id), await store.leaseOf(id)]).toEqual([[], null]);
});

test("the config or the group itself limits the number of agents", async () => {
  const { store } = await stageOn(openMemoryStore());
  const manager = new SessionManager({ store, config: { maxAgentsPerGroup: 2, defaultTurnStrategy: "priority" } });
  const two = new GroupSession({ manager }).addAgent(agentOf("ada")).addAgent(agentOf("bob"));
  expect(() => two.addAgent(agentOf("cid"))).toThrow(expect.objectContaining({ code: "CAPACITY", limit: 2 }));
  expect(two.agentNames).toEqual(["ada", "bob"]);
  const one = new GroupSession({ manager, maxAgents: 1 }).addAgent(agentOf("ada"));
  expect(() => one.addAgent(agentOf("bob"))).toThrow(expect.objectContaining({ code: "CAPACITY", limit: 1 }));
});

test.each([
  ["rounds with calls", { maxToolRounds: 2 }],
  ["budget", { budget: { totalTokens: 60 } }],
])("the limits of an agent's turn hold over all claims of the group's run: its %s", async (_what, limits) => {
  const { group, id, store, manager } = await stageOn(openMemoryStore());
  const usage = { inputTokens: 20, outputTokens: 10, totalTokens: 30 };
  let [asked, dies] = [0, (): void => {}];
  const model = modelOf(async () => {
    asked += 1;
    if (asked % 2 === 1) return { ...calling(call(`c${asked}`, "look")), usage };
    dies();
    return new Promise<never>(() => {});
  });
  const tools = [toolOf("look", () => "seen", { idempotent: true })];
  const ada = createAgent({ name: "ada", prompt: "Work.", builtInTools: false, model, tools, ...limits });
  await manager.request(id, { group: "crew", input: "Go.", runId: "r" });
  let claims = 0;
  for (let died = true; died && claims < 8; claims++) {
    const dead = new Promise<true>((resolve) => {
      dies = () => resolve(true);
    });
    const run = group().addAgent(ada).stream(id, null, { runId: "r", maxRounds: 1, park: false });
    died = await Promise.race([dead, run.then(() => false as const)]).catch(() => true);
    if (died) await drainRuns({ timeoutMs: 0, ids: [run.id] });
  }
  const rounds = (await entriesOf(store, id)).filter(
    (entry) => entry.type === "message" && entry.message.role === "assistant",
  );
  expect([claims, rounds.length]).toEqual("maxToolRounds" in limits ? [2, 2] : [3, 3]);
  expect((await store.head(id))?.openRuns).toEqual([]);
});
