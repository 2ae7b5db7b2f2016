import { expect } from "vitest";
import type { Agent } from "../../src/agent/agent.ts";
import type { LogOpener } from "../../src/agent/persist/persist-option.ts";
import { resumeSession } from "../../src/agent/persist/resume-session.ts";
import type { SessionRun } from "../../src/agent/session-run.ts";
import type { RecoverOptions } from "../../src/lifecycle/runs/recover-run.ts";
import { scripted } from "../../src/models/scripted.ts";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import { inputIdOf, requestIdOf } from "../../src/session/log/open-runs.ts";
import { entriesOf, eventsOf, type LifecycleCase, refusal } from "./lifecycle-case.ts";

import {
  agentOf,
  goingOnAgent,
  openIn,
  payingAgent,
  phasesIn,
  questionIn,
  saidIn,
  withDeadRun,
} from "./requests-sample.ts";

/** Runs that park, and are recovered by any process. */
export const recoverCases: readonly LifecycleCase[] = [
  {
    name: "lists the questions of a parked run, and continues it under its id when they are answered, in any manager",
    async run({ store, manager }) {
      const desk = manager();
      const events = eventsOf(desk);
      await desk.create({ userId: "ann", id: "s" });
      const paid: string[] = [];
      const run = desk.run("s", payingAgent(paid), "Pay.", { park: { afterMs: 0 }, actor: "ann", runId: "r" });
      await run;
      expect(run.status).toBe("parked");
      expect(await store.leaseOf("s")).toBeNull();
      const { items } = await manager().runs({ state: "parked" });
      expect(items).toMatchObject([
        {
          sessionId: "s",
          userId: "ann",
          runId: "r",
          state: "parked",
          agent: "clerk",
          group: null,
          by: "ann",
          questions: [{ callId: "c1", name: "pay", arguments: { euros: 5 }, effects: "commands", reach: null }],
        },
      ]);
      const question = items[0]?.questions[0]?.question as string;
      expect(events.filter(({ type }) => type === "parked")).toMatchObject([
        { runId: "r", sessionId: "s", questions: [{ callId: "c1", question }] },
      ]);
      const agents = { clerk: goingOnAgent(paid) };
      expect(await manager().recover("s", agents)).toBeNull();
      const busy = await refusal(store, () => desk.run("s", agentOf("x"), "Next."));
      expect(busy).toMatchObject({ code: "SESSION_BUSY" });
      expect(busy.message).toContain(question);
      await manager().approve("s", question, {}, { actor: "ann" });
      expect((await manager().runs({ state: "requested" })).items).toMatchObject([{ runId: "r", questions: [] }]);
      const found = (await manager().recover("s", agents)) as { run: SessionRun };
      expect(found.run.runId).toBe("r");
      expect((await found.run).text()).toBe("Result: paid");
      expect(paid).toEqual(["paid"]);
      expect(await phasesIn(store, "s")).toEqual(["r started", "r started", "r finished"]);
    },
  },
  {
    name: "treats an expired question as denied, and accepts no later answer",
    async run({ store, manager, advance }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      const paid: string[] = [];
      const agents = { clerk: goingOnAgent(paid) };
      await desk.run("s", payingAgent(paid), "Pay.", { park: { afterMs: 0, expireMs: 1000_000 } });
      const question = await questionIn(store, "s");
      expect(await desk.recover("s", agents)).toBeNull();
      advance(1001);
      expect((await refusal(store, () => desk.approve("s", question))).code).toBe("CONFLICT");
      const found = (await desk.recover("s", agents)) as { run: SessionRun };
      expect((await found.run).text()).toContain("Nobody answered in time.");
      expect(paid).toEqual([]);
      expect(await openIn(store, "s")).toEqual([]);
    },
  },
  {
    name: "fails a request with invalid options, with the reason, and leaves it if only the local ones are invalid",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      await desk.request("s", { input: "one", runId: "a", options: { maxToolRounds: -1 } });
      await desk.request("s", { input: "two", runId: "b", options: { maxToolRounds: 1 }, ifBusy: "enqueue" });
      const recover = (options: RecoverOptions = {}) => desk.recover("s", { clerk: agentOf("Done.") }, options);
      await expect(recover()).rejects.toMatchObject({ code: "INVALID_OPTION" });
      const end = (await entriesOf(store, "s")).at(-1);
      expect(end).toMatchObject({ type: "run", runId: "a", phase: "failed", error: { code: "INVALID_OPTION" } });
      expect(end).toMatchObject({ error: { message: expect.stringContaining('maxToolRounds is "-1"') } });
      await expect(recover({ leaseMs: -1 })).rejects.toMatchObject({ code: "INVALID_OPTION" });
      expect(await openIn(store, "s")).toEqual(["b requested"]);
      await (await recover())?.run;
      expect(await saidIn(store, "s")).toEqual(["two", "Done."]);
    },
  },
  {
    name: "does not recover a run whose tools are on another machine",
    async run({ store, manager }) {
      const desk = manager();
      const question: EntryDraft = { type: "approval", id: "q", runId: "r", callId: "c" };
      const parked: EntryDraft = {
        type: "run_parked",
        runId: "r",
        questions: [{ callId: "c", question: "q" }],
        host: "elsewhere",
      };
      await withDeadRun(desk, store, question, parked);
      await desk.approve("s", "q");
      expect(await openIn(store, "s")).toEqual(["r answered"]);
      expect(await desk.recover("s", { clerk: agentOf("x") })).toBeNull();
      const { user } = await resumeSession({ store, sessionId: "s" });
      await expect(agentOf("x").run(user, { persist: store })).rejects.toMatchObject({
        code: "NO_SANDBOX",
        message: expect.stringContaining('on the machine "elsewhere"'),
      });
      expect([await openIn(store, "s"), await store.leaseOf("s")]).toEqual([["r answered"], null]);
    },
  },
  {
    name: "starts a requested run with its input under its id, the requester as author, and in the order of the log",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      expect(await desk.recover("s", {})).toBeNull();
      await desk.request("s", { input: "one", runId: "a" }, { actor: "ann" });
      const options = { maxOutputTokens: 7, temperature: 1 };
      await desk.request("s", { input: "two", runId: "b", options, ifBusy: "enqueue" });
      const model = scripted(["two!"]);
      const models = (id: string) => (id === "other/model" ? model : null);
      await desk.request("s", { input: "three", runId: "c", model: "other/model", ifBusy: "enqueue" });
      const found = (await desk.recover("s", new Map([["clerk", agentOf("one!")]]))) as { run: SessionRun };
      expect(found.run.runId).toBe("a");
      await found.run;
      const input = await store.getEntry("s", inputIdOf("a"));
      expect(input).toMatchObject({ type: "message", by: "ann", message: { role: "user", content: "one" } });
      const rows = (await entriesOf(store, "s")).filter(({ by }) => by !== undefined);
      expect(rows.map(({ id }) => id)).toEqual([requestIdOf("a"), inputIdOf("a")]);
      const second = scripted(["two!"]);
      await (await desk.recover("s", () => agentOf(), { model: second, temperature: 0 }))?.run;
      expect(second.requests).toMatchObject([{ maxOutputTokens: 7, temperature: 0 }]);
      const unknown = await refusal(store, () => desk.recover("s", { clerk: agentOf("x") }) as Promise<unknown>);
      expect(unknown.code).toBe("MODEL_NOT_FOUND");
      await (await desk.recover("s", { clerk: agentOf() }, { models }))?.run;
      expect(model.requests).toHaveLength(1);
      expect(await saidIn(store, "s")).toEqual(["one", "one!", "two", "two!", "three", "two!"]);
      expect(await desk.recover("s", { clerk: agentOf("x") })).toBeNull();
    },
  },
  {
    name: "leaves a run whose agent is missing here, and names the agent",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      await desk.request("s", { input: "x", agent: "cook" });
      const agents = { clerk: agentOf("x") };
      const error = await refusal(store, () => desk.recover("s", agents) as Promise<unknown>);
      expect(error.code).toBe("AGENT_NOT_FOUND");
      expect(error.message).toContain('"cook"');
      await desk.cancel("s");
      await desk.request("s", { input: "x" });
      const two = await refusal(store, () => desk.recover("s", { ...agents, cook: agentOf("x") }) as Promise<unknown>);
      expect(two.code).toBe("AGENT_NOT_FOUND");
      await desk.cancel("s");
      await desk.request("s", { input: "x", group: "panel" });
      const group = await refusal(store, () => desk.recover("s", agents) as Promise<unknown>);
      expect(group.message).toContain('"panel"');
      expect(await desk.due("s")).toMatchObject({ request: { group: "panel" }, run: { state: "requested" } });
    },
  },
  {
    name: "waits for a request's notBefore, and holds it while the session is suspended",
    async run({ store, manager, advance }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      const notBefore = new Date(Date.now() + 60_000).toISOString();
      await desk.request("s", { input: "later", runId: "later", notBefore });
      const agents = { clerk: agentOf("Done.") };
      expect(await desk.recover("s", agents)).toBeNull();
      expect((await desk.runs({ state: "requested" })).items).toMatchObject([{ runId: "later", notBefore }]);
      advance(61);
      await desk.suspend("s");
      expect(await desk.recover("s", agents)).toBeNull();
      await desk.resume("s");
      await (await desk.recover("s", agents))?.run;
      expect(await saidIn(store, "s")).toEqual(["later", "Done."]);
    },
  },
  {
    name: "recovers a run whose process has died, under its id, and leaves one with a live lease",
    async run({ store, manager }) {
      const desk = manager();
      await withDeadRun(desk, store);
      const agents = { clerk: agentOf("Hi.") };
      const lease = await store.lease("s", "elsewhere", 60_000);
      expect(await desk.recover("s", agents)).toBeNull();
      expect((await desk.runs({ state: "running" })).items).toMatchObject([{ runId: "r", agent: null }]);
      await lease.release();
      expect((await desk.runs({ state: "interrupted" })).items).toMatchObject([{ runId: "r", requestedAt: null }]);
      const found = await Promise.all([desk, manager(), manager()].map((each) => each.recover("s", agents)));
      const taken = found.filter((each) => each !== null);
      expect(taken).toHaveLength(1);
      await taken[0]?.run;
      expect(await saidIn(store, "s")).toEqual(["Hello.", "Hi."]);
      expect(await phasesIn(store, "s")).toEqual(["r started", "r started", "r finished"]);
    },
  },
  {
    name: "leaves the end of a cancelled run to its holder, and records it if there is none, without its agent",
    async run({ store, manager }) {
      const desk = manager();
      await withDeadRun(desk, store);
      const lease = await store.lease("s", "elsewhere", 60_000);
      await desk.cancel("s");
      expect(await desk.recover("s", {})).toBeNull();
      expect(await phasesIn(store, "s")).toEqual(["r started"]);
      await lease.release();
      expect(await desk.recover("s", {})).toBeNull();
      expect(await phasesIn(store, "s")).toEqual(["r started", "r cancelled"]);
    },
  },
  {
    name: "records the end of a run whose process has died when it is cancelled, so that nobody waits for its agent",
    async run({ store, manager }) {
      const desk = manager();
      await withDeadRun(desk, store);
      expect(await desk.cancel("s")).toBe(true);
      expect(await phasesIn(store, "s")).toEqual(["r started", "r cancelled"]);
      expect((await desk.runs({ state: "interrupted" })).items).toEqual([]);
      expect(await desk.cancel("s")).toBe(false);
    },
  },
  {
    name: "starts no run that was cancelled after it was found",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      await desk.request("s", { input: "Hello.", runId: "r" });
      const agent = agentOf("Hi.");
      const late: Agent = {
        ...agent,
        run(input, options) {
          const opener = options?.persist as LogOpener;
          const openLog: LogOpener["openLog"] = async (request) => {
            await manager().cancel("s");
            return opener.openLog(request);
          };
          return agent.run(input, { ...options, persist: { openLog } });
        },
      };
      expect(await desk.recover("s", { clerk: late })).toBeNull();
      expect(await saidIn(store, "s")).toEqual([]);
      expect(await openIn(store, "s")).toEqual([]);
    },
  },
  {
    name: "ends a cancelled run whose process has died, and starts the next",
    async run({ store, manager }) {
      const desk = manager();
      await withDeadRun(desk, store);
      await desk.request("s", { input: "next", runId: "next", ifBusy: "interrupt" });
      await (await desk.recover("s", { clerk: agentOf("Done.") }))?.run;
      expect(await phasesIn(store, "s")).toEqual(["r started", "r cancelled", "next started", "next finished"]);
      expect(await saidIn(store, "s")).toEqual(["Hello.", "next", "Done."]);
    },
  },
  {
    name: "ends a request for which the session has no room, so that others do not wait for it",
    async run({ store, manager }) {
      const desk = manager({ config: { maxTurnsPerSession: 2 } });
      await desk.create({ userId: "ann", id: "s" });
      for (const content of ["one", "two"]) await desk.addTurn("s", { role: "user", content });
      await desk.request("s", { input: "three", runId: "r" });
      await expect(desk.recover("s", { clerk: agentOf("x") })).rejects.toMatchObject({ code: "CAPACITY" });
      expect(await openIn(store, "s")).toEqual([]);
      expect(await phasesIn(store, "s")).toEqual(["r failed"]);
    },
  },
  {
    name: "records the end of a run whose process has died in a closed session",
    async run({ store, manager }) {
      const desk = manager();
      await withDeadRun(desk, store);
      await desk.close("s");
      expect(await desk.recover("s", { clerk: agentOf("x") })).toBeNull();
      expect(await phasesIn(store, "s")).toEqual(["r started", "r failed"]);
      expect((await desk.runs({ state: "interrupted" })).items).toEqual([]);
    },
  },
];
