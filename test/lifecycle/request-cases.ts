import { expect } from "vitest";
import type { SessionRun } from "../../src/agent/session-run.ts";
import { inputIdOf, requestIdOf } from "../../src/session/log/open-runs.ts";
import { entriesOf, type LifecycleCase, outcomesOf, refusal } from "./lifecycle-case.ts";

import { agentOf, openIn, payingAgent, phasesIn, questionIn, saidIn, slowAgent } from "./requests-sample.ts";

/** Runs that are requested, cancelled, steered and answered. */
export const requestCases: readonly LifecycleCase[] = [
  {
    name: "records a request once, even if its state or the limits have changed, and refuses a different one under its id",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      const asked = { agent: "clerk", input: "Hello.", runId: "r" };
      const request = (): Promise<unknown> => desk.request("s", asked, { actor: "ann" });
      const head = { version: 1, openRuns: [{ runId: "r", state: "requested" }] };
      expect(await request()).toMatchObject({ runId: "r", sessionId: "s", head });
      const [entry, ...others] = await entriesOf(store, "s");
      expect(entry).toMatchObject({ type: "run_request", id: requestIdOf("r"), by: "ann", agent: "clerk" });
      expect(others).toEqual([]);
      for (const ifBusy of ["reject", "enqueue", "interrupt"] as const) {
        await desk.request("s", { ...asked, ifBusy });
        const changed = { ...asked, input: "Bye.", ifBusy };
        expect((await refusal(store, () => desk.request("s", changed))).code).toBe("CONFLICT");
      }
      const busy = await refusal(store, () => desk.request("s", { input: "x" }));
      expect(busy).toMatchObject({ code: "SESSION_BUSY", sessionId: "s" });
      await desk.recover("s", { clerk: agentOf("Hi.") });
      await expect.poll(() => openIn(store, "s")).toEqual([]);
      await request();
      await desk.close("s");
      await request();
      expect((await entriesOf(store, "s")).filter(({ type }) => type === "run_request")).toHaveLength(1);
      expect((await refusal(store, () => desk.request("s", { input: "x" }))).code).toBe("SESSION_CLOSED");
    },
  },
  {
    name: "makes one run of concurrent requests with the same id, and refuses different ones",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      const calls = Array.from({ length: 10 }, (_, i) =>
        manager().request("s", { input: "Hello.", runId: i < 5 ? "r" : `r${i}` }),
      );
      const counts = await outcomesOf(calls);
      expect((counts.ok ?? 0) + (counts.SESSION_BUSY ?? 0)).toBe(10);
      expect(await openIn(store, "s")).toHaveLength(1);
      expect((await entriesOf(store, "s")).filter(({ type }) => type === "run_request")).toHaveLength(1);
    },
  },
  {
    name: "continues from an entry if a request has from, with an empty input, and moves the leaf once or not at all",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      await desk.run("s", agentOf("First."), "Hello.", { runId: "a" });
      const again = { input: [], from: inputIdOf("a"), runId: "b" };
      await desk.request("s", again);
      await desk.request("s", again);
      await desk.request("s", { ...again, ifBusy: "interrupt" });
      const busy = { input: "x", from: null, runId: "c" };
      expect((await refusal(store, () => desk.request("s", busy))).code).toBe("SESSION_BUSY");
      expect((await refusal(store, () => desk.request("s", { ...again, from: null }))).code).toBe("CONFLICT");
      const found = await desk.recover("s", { clerk: agentOf("Second.") });
      await found?.run;
      expect((await desk.getState("s"))?.turns.map(({ content }) => content)).toEqual(["Hello.", "Second."]);
      expect(await saidIn(store, "s")).toEqual(["Hello.", "First.", "Second."]);
      expect((await entriesOf(store, "s")).filter(({ type }) => type === "leaf")).toHaveLength(1);
    },
  },
  {
    name: "refuses invalid requests: for a missing session, for an agent and a group, for a fork's source, or while suspended",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      const refused = async (request: object, options = {}, id = "s"): Promise<string> =>
        (await refusal(store, () => desk.request(id, { input: "x", ...request }, options))).code;
      expect(await refused({}, { actor: "bob" })).toBe("SESSION_NOT_FOUND");
      expect(await refused({}, {}, "nobody")).toBe("SESSION_NOT_FOUND");
      expect(await refused({ agent: "a", group: "b" })).toBe("INVALID_OPTION");
      expect(await refused({ ifBusy: "wait" })).toBe("INVALID_OPTION");
      for (const options of [{ persist: true }, { model: "x" }, { anything: 1 }, "x"])
        expect(await refused({ options })).toBe("INVALID_OPTION");
      expect(await refused({ notBefore: "tomorrow" })).toBe("INVALID_ENTRY");
      await desk.request("s", { input: "x", runId: "r" });
      const { sessionId } = await desk.fork("s", "branch");
      expect(await refused({ runId: "r" }, {}, sessionId)).toBe("CONFLICT");
      await desk.suspend("s");
      expect(await refused({ ifBusy: "enqueue" })).toBe("SESSION_SUSPENDED");
    },
  },
  {
    name: "cancels the running run for a request that interrupts, in the same append, and keeps waiting ones",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      const { agent, asked } = slowAgent();
      const run = desk.run("s", agent, "first");
      await asked;
      await desk.request("s", { input: "second", runId: "second", ifBusy: "enqueue" });
      await manager().request("s", { input: "third", runId: "third", ifBusy: "interrupt" }, { actor: "ann" });
      await expect(run).rejects.toMatchObject({ code: "ABORTED" });
      expect(run.status).toBe("aborted");
      const entries = await entriesOf(store, "s");
      const at = entries.findIndex(({ type }) => type === "cancel");
      expect(entries.slice(at, at + 2)).toMatchObject([
        { type: "cancel", runId: run.runId, by: "ann" },
        { type: "run_request", runId: "third" },
      ]);
      expect(await openIn(store, "s")).toEqual(["second requested", "third requested"]);
      for (const answer of ["a2", "a3"]) {
        const found = await desk.recover("s", { clerk: agentOf(answer) });
        await found?.run;
      }
      expect(await saidIn(store, "s")).toEqual(["first", "second", "a2", "third", "a3"]);
    },
  },
  {
    name: "cancels the named run, else the running one, else the first in the queue",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      expect(await desk.cancel("s")).toBe(false);
      for (const runId of ["a", "b", "c"]) await desk.request("s", { input: runId, runId, ifBusy: "enqueue" });
      expect(await desk.cancel("s", { runId: "nobody" })).toBe(false);
      expect(await desk.cancel("s", { runId: "b", reason: "No need." }, { actor: "ann" })).toBe(true);
      expect((await entriesOf(store, "s")).at(-1)).toMatchObject({ type: "cancel", reason: "No need.", by: "ann" });
      expect(await desk.cancel("s", { runId: "b" })).toBe(false);
      const { agent, asked } = slowAgent();
      const found = await desk.recover("s", { clerk: agent });
      await asked;
      expect(await openIn(store, "s")).toEqual(["c requested", "a started"]);
      expect(await manager().cancel("s")).toBe(true);
      await expect((found as { run: SessionRun }).run).rejects.toMatchObject({ code: "ABORTED" });
      expect(await phasesIn(store, "s")).toEqual(["a started", "a cancelled"]);
      expect(await desk.cancel("s")).toBe(true);
      expect(await openIn(store, "s")).toEqual([]);
      expect((await refusal(store, () => desk.cancel("s", {}, { actor: "bob" }))).code).toBe("SESSION_NOT_FOUND");
    },
  },
  {
    name: "steers the running run from another manager, and refuses that without one",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      await desk.request("s", { input: "Go.", runId: "r" });
      for (const say of ["steer", "followUp"] as const)
        expect((await refusal(store, () => desk[say]("s", "Quick."))).code).toBe("RUN_ENDED");
      const { agent, asked, answer } = slowAgent("One.", "Two.");
      const found = await desk.recover("s", { clerk: agent });
      await asked;
      await manager().steer("s", "Quick.", { actor: "ann" });
      await manager().followUp("s", "And then?");
      answer();
      await found?.run;
      const said = await saidIn(store, "s");
      expect([...said].sort()).toEqual(["And then?", "Go.", "One.", "Quick.", "Two."]);
      expect((await entriesOf(store, "s")).find(({ type }) => type === "queued")).toMatchObject({ by: "ann" });
    },
  },
  {
    name: "answers a question of a run in another manager, once: the first answer wins",
    async run({ store, manager }) {
      const [desk, other] = [manager(), manager()];
      await desk.create({ userId: "ann", id: "s" });
      const paid: string[] = [];
      const run = desk.run("s", payingAgent(paid), "Pay.", { park: false });
      const question = await questionIn(store, "s");
      const refused = async (call: () => Promise<unknown>): Promise<string> => (await refusal(store, call)).code;
      expect(await refused(() => other.approve("s", "unheard-of"))).toBe("QUESTION_NOT_FOUND");
      expect(await refused(() => other.approve("s", inputIdOf(run.runId)))).toBe("QUESTION_NOT_FOUND");
      expect(await refused(() => other.approve("s", question, {}, { actor: "bob" }))).toBe("SESSION_NOT_FOUND");
      const fork = await desk.fork("s", "branch");
      expect(await refused(() => other.approve(fork.sessionId, question))).toBe("QUESTION_NOT_FOUND");
      await other.approve("s", question, { note: "Fine." }, { actor: { userId: "boss", admin: true } });
      expect((await run).text()).toBe("Result: paid");
      expect(paid).toEqual(["paid"]);
      const answer = (await entriesOf(store, "s")).find(({ id }) => id === `answer:${question}`);
      expect(answer).toMatchObject({ question, note: "Fine.", by: "boss", decision: { approved: true } });
      await other.approve("s", question, { note: "Fine." });
      expect(await refused(() => other.deny("s", question))).toBe("CONFLICT");
      // A fork that inherited the question and its answer has no open question.
      const later = await desk.fork("s", "later");
      expect(await refused(() => other.approve(later.sessionId, question, { note: "Fine." }))).toBe(
        "QUESTION_NOT_FOUND",
      );
    },
  },
  {
    name: "accepts no answer to a question of an ended run",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      const run = desk.run("s", payingAgent(), "Pay.", { park: false });
      const question = await questionIn(store, "s");
      run.abort();
      await expect(run).rejects.toMatchObject({ code: "ABORTED" });
      expect((await refusal(store, () => desk.approve("s", question))).code).toBe("QUESTION_NOT_FOUND");
    },
  },
  {
    name: "denies a call by its question, with the reason for the model",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      const paid: string[] = [];
      const run = desk.run("s", payingAgent(paid), "Pay.", { park: false });
      await manager().deny("s", await questionIn(store, "s"), { reason: "Too much." });
      expect((await run).text()).toContain("Too much.");
      expect(paid).toEqual([]);
    },
  },
  {
    name: "run() with the runId of a request runs that request, and refuses the id while it runs and after its end",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      await desk.request("s", { input: "Hello.", runId: "r", agent: "clerk" });
      const { agent, asked, answer } = slowAgent("Hi.");
      const run = desk.run("s", agent, "Hello.", { runId: "r" });
      expect(run.runId).toBe("r");
      await run.admitted;
      await asked;
      const again = (): SessionRun => manager().run("s", agentOf("x"), "Hello.", { runId: "r" });
      expect((await refusal(store, again)).code).toBe("SESSION_BUSY");
      const refused = again();
      await expect(refused.admitted).rejects.toMatchObject({ code: "SESSION_BUSY" });
      answer();
      await run;
      expect((await refusal(store, again)).code).toBe("CONFLICT");
      const other = (): SessionRun => desk.run("s", agentOf("x"), "Bye.", { runId: "r" });
      expect((await refusal(store, other)).code).toBe("CONFLICT");
      expect(await saidIn(store, "s")).toEqual(["Hello.", "Hi."]);
    },
  },
  {
    name: "fails a run that was cancelled, or whose session was closed, while it waited",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      const { agent, asked, answer } = slowAgent();
      const first = desk.run("s", agent, "first");
      await asked;
      const [one, two] = ["one", "two"].map((runId) =>
        desk.run("s", agentOf("x"), runId, { runId, ifBusy: "enqueue" }),
      ) as [SessionRun, SessionRun];
      await expect.poll(() => openIn(store, "s")).toHaveLength(3);
      await manager().cancel("s", { runId: "one" });
      await expect(one).rejects.toMatchObject({ code: "ABORTED" });
      await desk.close("s");
      await expect(two).rejects.toMatchObject({ code: "SESSION_CLOSED" });
      answer();
      await expect(first).rejects.toMatchObject({ code: "SESSION_CLOSED" });
      expect(await openIn(store, "s")).toEqual([]);
    },
  },
  {
    name: "shows a user the open runs of their own sessions only, page by page",
    async run({ store, manager }) {
      const desk = manager();
      for (const [id, userId] of [
        ["a", "ann"],
        ["b", "ann"],
        ["c", "bob"],
      ] as const) {
        await desk.create({ userId, id });
        await desk.request(id, { input: "x", runId: `run-${id}` }, { actor: userId });
      }
      await desk.create({ userId: "ann", id: "idle" });
      const names = async (query: object, options = {}): Promise<string[]> =>
        (await desk.runs({ state: "requested", ...query }, options)).items.map(({ runId }) => runId).sort();
      expect(await names({})).toEqual(["run-a", "run-b", "run-c"]);
      expect(await names({ userId: "bob" })).toEqual(["run-c"]);
      expect(await names({}, { actor: "ann" })).toEqual(["run-a", "run-b"]);
      expect(await names({ userId: "bob" }, { actor: "ann" })).toEqual([]);
      const first = await desk.runs({ state: "requested", limit: 2 });
      expect(first.items).toHaveLength(2);
      const rest = await desk.runs({ state: "requested", limit: 2, cursor: first.next as string });
      expect(rest).toMatchObject({ items: [{}], next: null });
      expect((await refusal(store, () => desk.runs({ state: "open" as never }))).code).toBe("INVALID_OPTION");
      for (const state of ["running", "parked", "interrupted"] as const) expect(await names({ state })).toEqual([]);
    },
  },
  {
    name: "does not expire a session with a waiting run, and removes its requests when it is closed",
    async run({ store, manager, advance }) {
      const desk = manager({ config: { sessionTtl: 100 } });
      for (const id of ["asked", "idle"]) await desk.create({ userId: "ann", id });
      await desk.request("asked", { input: "x", runId: "r" });
      advance(1000);
      expect(await desk.sweep()).toBe(1);
      expect(await desk.sweep()).toBe(0);
      expect((await desk.getState("idle"))?.status).toBe("expired");
      expect((await desk.getState("asked"))?.status).toBe("active");
      expect((await desk.list({ status: "active" })).items.map(({ header }) => header.id)).toEqual(["asked"]);
      await desk.close("asked");
      expect(await openIn(store, "asked")).toEqual([]);
      expect(await desk.recover("asked", { clerk: agentOf("x") })).toBeNull();
    },
  },
];
