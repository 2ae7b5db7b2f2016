import { expect } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import { defineTool } from "../../src/agent/tools/define-tool.ts";
import type { Agent } from "../../src/agent/agent.ts";
import type { SessionRun } from "../../src/agent/session-run.ts";
import { scripted } from "../../src/models/scripted.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { agentOf, saidIn, slowAgent } from "./requests-sample.ts";
import { contentsOf, entriesOf, eventsOf, gate, type LifecycleCase, refusal } from "./lifecycle-case.ts";

async function phasesIn(store: SessionStore, id: string): Promise<string[]> {
  return (await entriesOf(store, id)).flatMap((entry) => (entry.type === "run" ? [entry.phase] : []));
}

/** Runs on managed sessions. */
export const runCases: readonly LifecycleCase[] = [
  {
    name: "runs an agent in a session with its earlier turns, and stores every message as a turn",
    async run({ store, manager }) {
      const remembered: string[] = [];
      const memory = { add: ({ turn }: { turn: { role: string } }) => remembered.push(turn.role) };
      const desk = manager({ memory, config: { autoCheckpointInterval: 2 } });
      const events = eventsOf(desk);
      await desk.create({ userId: "ann", id: "s" });
      await desk.addTurn("s", { role: "user", content: "I am Ann." });
      const look = defineTool({
        name: "look",
        description: "Looks.",
        parameters: { type: "object" },
        // A row is durable before the run continues.
        execute: async () => (await saidIn(store, "s")).length,
      });
      const model = scripted([
        {
          role: "assistant",
          content: null,
          toolCalls: [{ id: "c", name: "look", arguments: "{}" }],
          stopReason: "tool_calls",
        },
        {
          role: "assistant",
          content: "Hello, Ann.",
          usage: { inputTokens: 5, outputTokens: 3, totalTokens: 8 },
          cost: 0.5,
        },
      ]);
      const agent = createAgent({ name: "clerk", prompt: "Help.", model, tools: [look], builtInTools: false });
      const run = desk.run("s", agent, "Who am I?", { actor: "ann" });
      expect(run.pending).toBe(true);
      expect((await run).text()).toBe("Hello, Ann.");
      expect(model.requests[0]?.messages.map(({ content }) => content)).toEqual(["Help.", "I am Ann.", "Who am I?"]);
      const state = await desk.getState("s");
      expect(state).toMatchObject({
        turnCount: 5,
        totalTokens: 8,
        totalCost: 0.5,
        systemPrompt: "Help.",
        status: "active",
      });
      expect(state?.turns.map(({ role }) => role)).toEqual(["user", "user", "assistant", "tool", "assistant"]);
      expect(state?.turns[3]?.content).toContain("3");
      expect(state?.turns[4]?.agent).toBe("clerk");
      expect(events.flatMap((event) => (event.type === "turnAdded" ? [event.turn] : []))).toEqual(state?.turns);
      expect(remembered).toEqual(state?.turns.map(({ role }) => role));
      expect((await store.listCheckpoints("s")).length).toBe(2);
      expect(await phasesIn(store, "s")).toEqual(["started", "finished"]);
      expect(await store.leaseOf("s")).toBeNull();
    },
  },
  {
    name: "continues at the session's leaf: turns and settings of others come first, are in the next request, and the answer is on the path",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      const look = defineTool({
        name: "look",
        description: "Looks.",
        parameters: { type: "object" },
        async execute() {
          await desk.addTurn("s", { role: "user", content: "And be quick." });
          await store.append("s", [{ type: "variables", set: { looked: true }, unset: [] }]);
          return "seen";
        },
      });
      const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
      const model = scripted([
        { role: "assistant", content: null, toolCalls: [{ id: "c", name: "look", arguments: "{}" }], usage },
        { role: "assistant", content: "Done.", usage },
      ]);
      const agent = createAgent({ prompt: "Help.", model, tools: [look], builtInTools: false });
      const output = await desk.run("s", agent, "Look.");
      const said = ["Look.", null, "And be quick.", "seen", "Done."];
      expect(output.transcript.rows.map(({ message }) => message.content)).toEqual(said);
      const state = await desk.getState("s");
      expect(state?.turns.map(({ content }) => content)).toEqual(said);
      expect(state).toMatchObject({ turnCount: 5, totalTokens: 4, variables: { looked: true } });
      // A result follows its call, whatever was appended in between.
      expect(model.requests[1]?.messages.map(({ content }) => content)).toEqual([
        ...["Help.", "Look.", null, "seen", "And be quick."],
      ]);
    },
  },
  {
    name: "stays on its own branch if the leaf is moved elsewhere, and does not move the leaf",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      await desk.addTurn("s", { turnId: "first", role: "user", content: "Hello." });
      const { agent, asked, answer } = slowAgent();
      const run = desk.run("s", agent, "Look.");
      await asked;
      await store.append("s", [{ type: "leaf", targetId: "first" }]);
      await desk.addTurn("s", { turnId: "other", role: "user", content: "Elsewhere." });
      answer();
      expect((await run).text()).toBe("Done.");
      expect((await store.head("s"))?.leafId).toBe("other");
      expect((await desk.getState("s"))?.turns.map(({ content }) => content)).toEqual(["Hello.", "Elsewhere."]);
      expect(await saidIn(store, "s")).toEqual(["Hello.", "Look.", "Elsewhere.", "Done."]);
    },
  },
  {
    name: "refuses a run without room, and stops a run at the limit",
    async run({ store, manager }) {
      const desk = manager({ config: { maxTurnsPerSession: 2 } });
      await desk.create({ userId: "ann", id: "s" });
      await desk.addTurn("s", { role: "user", content: "one" });
      await expect(desk.run("s", agentOf("three"), "two")).rejects.toMatchObject({ code: "CAPACITY", limit: 2 });
      expect(await saidIn(store, "s")).toEqual(["one"]);
      expect(await phasesIn(store, "s")).toEqual([]);
      expect((await refusal(store, () => desk.run("s", agentOf("x"), "y"))).code).toBe("CAPACITY");
    },
  },
  {
    name: "ends a run whose session was closed meanwhile, with its end recorded and no message after it",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      const { agent, asked, answer } = slowAgent();
      const run = desk.run("s", agent, "Hello.");
      await asked;
      await desk.close("s");
      answer();
      await expect(run).rejects.toMatchObject({ code: "SESSION_CLOSED", sessionId: "s" });
      expect(await saidIn(store, "s")).toEqual(["Hello."]);
      expect(await store.head("s")).toMatchObject({ status: "closed", openRuns: [] });
    },
  },
  {
    name: "refuses a second run while one is active, by default",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      const { agent, asked, answer } = slowAgent();
      const run = desk.run("s", agent, "first");
      await asked;
      const error = await refusal(store, () => desk.run("s", agentOf("x"), "second"));
      expect(error).toMatchObject({ code: "SESSION_BUSY", sessionId: "s" });
      const elsewhere = await refusal(store, () => manager().run("s", agentOf("x"), "second"));
      expect(elsewhere).toMatchObject({ code: "SESSION_BUSY", sessionId: "s" });
      answer();
      await run;
      await desk.run("s", agentOf("ok"), "third");
      expect(await saidIn(store, "s")).toEqual(["first", "Done.", "third", "ok"]);
    },
  },
  {
    name: "runs enqueued runs one after the other, in order",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      const { agent, asked, answer } = slowAgent("a1");
      const first = desk.run("s", agent, "q1");
      await asked;
      const runs = [2, 3, 4].map((n) => desk.run("s", agentOf(`a${n}`), `q${n}`, { ifBusy: "enqueue" }));
      answer();
      await Promise.all([first, ...runs]);
      expect(await saidIn(store, "s")).toEqual(["q1", "a1", "q2", "a2", "q3", "a3", "q4", "a4"]);
    },
  },
  {
    name: "waits no longer than waitMs, and not after an abort",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      const { agent, asked, answer } = slowAgent();
      const run = desk.run("s", agent, "first");
      await asked;
      const late = desk.run("s", agentOf("x"), "late", { ifBusy: "enqueue", waitMs: 20 });
      await expect(late).rejects.toMatchObject({ code: "SESSION_BUSY" });
      const controller = new AbortController();
      const waiting: SessionRun[] = [
        desk.run("s", agentOf("x"), "by signal", { ifBusy: "enqueue", signal: controller.signal }),
        desk.run("s", agentOf("x"), "by hand", { ifBusy: "enqueue" }),
      ];
      controller.abort();
      waiting[1]?.abort();
      for (const aborted of waiting) await expect(aborted).rejects.toMatchObject({ code: "ABORTED" });
      await expect.poll(async () => (await store.head("s"))?.openRuns).toMatchObject([{ state: "started" }]);
      answer();
      await run;
      expect(await saidIn(store, "s")).toEqual(["first", "Done."]);
      expect(await phasesIn(store, "s")).toEqual(["started", "finished"]);
    },
  },
  {
    name: "cancels the active run for one that interrupts, which comes after the waiting ones",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      const { agent, asked } = slowAgent();
      const first = desk.run("s", agent, "first");
      await asked;
      const patient = desk.run("s", agentOf("a3"), "q3", { ifBusy: "enqueue" });
      const urgent = desk.run("s", agentOf("a2"), "q2", { ifBusy: "interrupt" });
      await expect(first).rejects.toMatchObject({ code: "ABORTED" });
      await Promise.all([urgent, patient]);
      expect(await saidIn(store, "s")).toEqual(["first", "q3", "a3", "q2", "a2"]);
      expect(await phasesIn(store, "s")).toEqual([
        "started",
        "cancelled",
        "started",
        "finished",
        "started",
        "finished",
      ]);
    },
  },
  {
    name: "waits for a run that it cannot stop, because it is in another process",
    async run({ store, manager }) {
      let refused = gate();
      const watched = new Proxy(store, {
        get(target, key) {
          const value: unknown = Reflect.get(target, key, target);
          if (typeof value !== "function") return value;
          if (key !== "lease") return value.bind(target);
          return (...args: Parameters<SessionStore["lease"]>) =>
            target.lease(...args).catch((error: unknown) => {
              refused.open();
              throw error;
            });
        },
      });
      const desk = manager({ store: watched });
      await desk.create({ userId: "ann", id: "s" });
      for (const ifBusy of ["enqueue", "interrupt"] as const) {
        const lease = await store.lease("s", "elsewhere", 60_000);
        expect((await refusal(store, () => desk.run("s", agentOf("x"), "no"))).code).toBe("SESSION_BUSY");
        const short = desk.run("s", agentOf("x"), "no", { ifBusy, waitMs: 30 });
        await expect(short).rejects.toMatchObject({ code: "SESSION_BUSY" });
        refused = gate();
        const run = desk.run("s", agentOf(ifBusy), "yes", { ifBusy });
        await refused.opened;
        await lease.release();
        expect((await run).text()).toBe(ifBusy);
      }
      expect(await saidIn(store, "s")).toEqual(["yes", "enqueue", "yes", "interrupt"]);
    },
  },
  {
    name: "refuses an invalid run before it starts",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      const before = await contentsOf(store);
      const start =
        (options: object, agent: unknown = agentOf("x")) =>
        () =>
          desk.run("s", agent as Agent, "x", options);
      for (const call of [
        ...[start({ ifBusy: "wait" }), start({ waitMs: -1 }), start({ waitMs: Number.NaN }), start({}, null)],
        ...[start({}, {}), start({ maxToolRounds: 0 }), start({ actor: undefined })],
      ]) {
        expect(call).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
      }
      expect(await contentsOf(store)).toEqual(before);
    },
  },
];
