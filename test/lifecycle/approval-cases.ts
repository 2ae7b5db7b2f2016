import { expect } from "vitest";
import { type Agent, createAgent } from "../../src/agent/agent.ts";
import { resumeSession } from "../../src/agent/persist/resume-session.ts";
import { digestOfCall } from "../../src/agent/persist/resume-state.ts";
import type { SessionRun } from "../../src/agent/session-run.ts";
import { defineTool } from "../../src/agent/tools/define-tool.ts";
import type { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { type ScriptedReply, scripted } from "../../src/models/scripted.ts";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { answerIdOf, inputIdOf, moveIdOf, requestIdOf } from "../../src/session/log/open-runs.ts";
import type { Message, ToolCall } from "../../src/session/message.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { entriesOf, type LifecycleCase, refusal } from "./lifecycle-case.ts";
import { goingOnAgent, openIn, payingAgent, phasesIn, questionIn, withDeadRun } from "./requests-sample.ts";

const ANN = { actor: "ann" } as const;
const NO = { approved: false, reason: "Too much." } as const;
const YES = { approved: true } as const;

const pay = (id: string, euros: number): ToolCall => ({ id, name: "pay", arguments: JSON.stringify({ euros }) });
const calling = (...toolCalls: readonly ToolCall[]): Message => ({
  role: "assistant",
  content: null,
  toolCalls,
  stopReason: "tool_calls",
});
const said = (message: Message, id?: string): EntryDraft => ({
  type: "message",
  message,
  ...(id === undefined ? {} : { id }),
});
const answered = (question: string, decision: typeof YES | typeof NO): EntryDraft => ({
  type: "approval",
  id: answerIdOf(question),
  runId: "r",
  callId: "c",
  question,
  decision,
});

/** An agent that records its payments, each of which needs approval. */
function cashier(paid: unknown[], ...replies: readonly ScriptedReply[]): Agent {
  const tool = defineTool({
    name: "pay",
    description: "Pays.",
    parameters: { type: "object", properties: { euros: { type: "number" } } },
    needsApproval: true,
    execute: ({ euros }) => `paid ${paid.push(euros)}`,
  });
  const model = scripted(replies.length === 0 ? ["Done."] : replies);
  return createAgent({ name: "clerk", prompt: "Help.", model, tools: [tool], builtInTools: false });
}

/** A session whose log contains these entries, as a program without the checks would have written them. */
async function sessionWith(store: SessionStore, ...entries: readonly EntryDraft[]): Promise<void> {
  const header = createHeader({ id: "s", userId: "ann" });
  await store.create(header, {
    entries: [said({ role: "user", content: "Pay." }, "u"), { type: "run", runId: "r", phase: "started" }, ...entries],
  });
}

/** Recovers the run of the session until it ends or parks. */
async function goOn(desk: SessionManager, agent: Agent): Promise<SessionRun["status"]> {
  const { run } = (await desk.recover("s", { clerk: agent }, { park: { afterMs: 0 } })) as { run: SessionRun };
  await run;
  return run.status;
}

async function resultsIn(desk: SessionManager): Promise<unknown[]> {
  const { turns = [] } = (await desk.getState("s")) ?? {};
  return turns.flatMap(({ role, content }) => (role === "tool" ? [content] : []));
}

/** Which calls run, and which decision belongs to which call. */
export const approvalCases: readonly LifecycleCase[] = [
  {
    name: "lists a question as soon as it is asked, and accepts its answer while the run waits in the process",
    async run({ store, manager }) {
      const desk = manager();
      const asking = async (): Promise<unknown[]> =>
        (await manager().runs({ state: "asking" })).items.map(({ state, questions }) => [state, questions.length]);
      await desk.create({ userId: "ann", id: "s" });
      const run = desk.run("s", payingAgent(), "Pay.", { park: false, runId: "r" });
      const question = await questionIn(store, "s");
      expect(await asking()).toEqual([["running", 1]]);
      const { items } = await manager().runs({ state: "running" });
      expect(items).toMatchObject([{ sessionId: "s", questions: [{ question, name: "pay" }] }]);
      expect((await manager().runs({ state: "parked" })).items).toEqual([]);
      await manager().approve("s", { question }, {}, ANN);
      expect((await run).status).toBe("finished");
      expect(await asking()).toEqual([]);
    },
  },
  {
    name: "returns the questions of a run that parks without answers, and continues after they are answered",
    async run({ manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      const paid: string[] = [];
      const answer = await desk.run("s", payingAgent(paid), "Pay.", { runId: "r" });
      expect([answer.status, answer.questions.map(({ name }) => name)]).toEqual(["parked", ["pay"]]);
      for (const question of answer.questions) await manager().approve("s", question);
      const found = await manager().recover("s", { clerk: goingOnAgent(paid) });
      expect([(await found?.run)?.status, paid]).toEqual(["finished", ["paid"]]);
    },
  },
  {
    name: "runs no call appended by someone without the run's lease, wherever the leaf is when the run continues",
    async run({ store, manager }) {
      const desk = manager();
      const paid: unknown[] = [];
      await desk.create({ userId: "ann", id: "s" });
      const tree = await desk.open("s", ANN);
      await tree.appendMessage({ role: "user", content: "Hello." }, { id: "root" });
      await tree.appendMessage(calling(pay("c", 1), pay("d", 2)), { id: "forged" });
      await tree.branch("root");
      await desk.run("s", payingAgent(), "Pay.", { park: { afterMs: 0 }, runId: "r" });
      const question = await questionIn(store, "s");
      // The leaf moves to the other branch while the run waits.
      await tree.branch("forged");
      await desk.approve("s", question);
      await goOn(desk, cashier(paid));
      expect(paid).toEqual([]);
      expect(await resultsIn(desk)).toEqual([
        expect.stringContaining("interrupted"),
        expect.stringContaining("interrupted"),
      ]);
      expect(await openIn(store, "s")).toEqual([]);
    },
  },
  {
    name: "runs no call appended after the end of the last run, in any recovery",
    async run({ store, manager }) {
      const desk = manager();
      const paid: unknown[] = [];
      await desk.create({ userId: "ann", id: "s" });
      await desk.run("s", cashier([], "Hi."), "Hello.", { runId: "first" });
      await desk.addTurn("s", { role: "assistant", content: null, toolCalls: [pay("c", 1)] }, ANN);
      await store.append("s", [{ type: "run", runId: "r", phase: "started" }]);
      await goOn(desk, cashier(paid));
      expect(paid).toEqual([]);
      expect(await resultsIn(desk)).toEqual([expect.stringContaining("interrupted")]);
    },
  },
  {
    name: "runs the calls of its own answer after a crash, in the order of the answer",
    async run({ store, manager }) {
      const desk = manager();
      const paid: unknown[] = [];
      await withDeadRun(desk, store);
      await store.append("s", [said(calling(pay("c", 1), pay("d", 2)))], { guard: { holds: true } });
      const status = await goOn(desk, cashier(paid));
      expect(status).toBe("parked");
      for (const { question } of (await desk.runs({ state: "parked" })).items[0]?.questions ?? [])
        await desk.approve("s", question);
      await goOn(desk, cashier(paid));
      expect(paid).toEqual([1, 2]);
    },
  },
  {
    name: "keeps a denied call from running though another one with its id was approved, in a log with such an answer",
    async run({ store, manager }) {
      const desk = manager();
      const paid: unknown[] = [];
      const asked = (id: string): EntryDraft => ({ type: "approval", id, runId: "r", callId: "c" });
      await sessionWith(
        store,
        said(calling(pay("c", 1), pay("c", 2))),
        ...["q1", "q2"].map(asked),
        answered("q1", NO),
        answered("q2", YES),
      );
      const status = await goOn(desk, cashier(paid));
      expect([status, paid]).toEqual(["finished", []]);
      expect(await resultsIn(desk)).toEqual([expect.stringContaining("denied"), expect.stringContaining("denied")]);
    },
  },
  {
    name: "asks again about calls with the same id if the log does not say which of them was approved",
    async run({ store, manager }) {
      const desk = manager();
      const paid: unknown[] = [];
      await sessionWith(
        store,
        said(calling(pay("c", 1), pay("c", 2))),
        { type: "approval", id: "q1", runId: "r", callId: "c" },
        answered("q1", YES),
      );
      const status = await goOn(desk, cashier(paid));
      expect([status, paid]).toEqual(["parked", []]);
      const { questions = [] } = (await desk.runs({ state: "parked" })).items[0] ?? {};
      expect(questions.map((question) => question.arguments)).toEqual([{ euros: 1 }, { euros: 2 }]);
      expect(questions.some(({ question }) => question === "q1")).toBe(false);
    },
  },
  {
    name: "runs no call that a user has changed in the answer of a failed run",
    async run({ store, manager }) {
      const desk = manager();
      const paid: unknown[] = [];
      await withDeadRun(desk, store);
      const { runId = "" } = (await store.head("s"))?.openRuns[0] ?? {};
      const byRun = { guard: { holds: true }, run: runId } as const;
      await store.append("s", [said(calling(pay("c", 1), pay("d", 2)), "answer")], byRun);
      await store.append("s", [{ type: "run", runId, phase: "failed" }], byRun);
      const tree = await desk.open("s", ANN);
      await tree.append({ type: "context_edit", targetId: "answer", message: calling(pay("c", 900), pay("d", 2)) });
      const { user } = await resumeSession({ store, sessionId: "s" });
      await cashier(paid).run(user, { persist: store, ask: "never" });
      expect(paid).toEqual([]);
      expect(await resultsIn(desk)).toEqual([
        expect.stringContaining("interrupted"),
        expect.stringContaining("interrupted"),
      ]);
    },
  },
  {
    name: "applies a decision only to the call at its position, though another one has the same id",
    async run({ store, manager }) {
      const desk = manager();
      const paid: unknown[] = [];
      const calls = [pay("c", 1), pay("c", 2), pay("c", 3)];
      const asked = calls.map(
        (call, index): EntryDraft => ({
          type: "approval",
          id: `q${index}`,
          runId: "r",
          callId: "c",
          index,
          digest: digestOfCall(call),
        }),
      );
      const decisions = [answered("q2", NO), answered("q0", NO), answered("q1", YES)];
      await sessionWith(store, said(calling(...calls)), ...asked, ...decisions);
      await goOn(desk, cashier(paid));
      expect(paid).toEqual([2]);
      expect(await resultsIn(desk)).toEqual([
        expect.stringContaining("Too much."),
        "paid 1",
        expect.stringContaining("Too much."),
      ]);
    },
  },
  {
    name: "asks again if the arguments differ from those in the question",
    async run({ store, manager }) {
      const desk = manager();
      const paid: unknown[] = [];
      await sessionWith(
        store,
        said(calling(pay("c", 1000))),
        { type: "approval", id: "q", runId: "r", callId: "c", index: 0, digest: digestOfCall(pay("c", 1)) },
        answered("q", YES),
      );
      const status = await goOn(desk, cashier(paid));
      expect([status, paid]).toEqual(["parked", []]);
      const [asked] = (await desk.runs({ state: "parked" })).items;
      expect(asked?.questions).toMatchObject([{ arguments: { euros: 1000 } }]);
      expect(asked?.questions[0]?.question).not.toBe("q");
    },
  },
  {
    name: "does not apply a late answer of an earlier round to a call with the same id, and keeps its note",
    async run({ store, manager }) {
      const desk = manager();
      const paid: unknown[] = [];
      await desk.create({ userId: "ann", id: "s" });
      const replies = [calling(pay("c", 1)), calling(pay("c", 2)), "Done."] as readonly ScriptedReply[];
      await desk.run("s", cashier(paid, ...replies), "Pay.", { park: { afterMs: 0 }, runId: "r" });
      const first = await questionIn(store, "s");
      await desk.approve("s", first, { note: "Once." }, ANN);
      expect(await goOn(desk, cashier(paid, ...replies.slice(1)))).toBe("parked");
      await desk.approve("s", first, { note: "Once." }, ANN);
      expect((await refusal(store, () => desk.deny("s", first))).code).toBe("CONFLICT");
      expect(await openIn(store, "s")).toEqual(["r parked"]);
      const second = (await desk.runs({ state: "parked" })).items[0]?.questions[0]?.question as string;
      expect(second).not.toBe(first);
      await desk.deny("s", second, { reason: "Enough." });
      await goOn(desk, cashier(paid, "Done."));
      expect(paid).toEqual([1]);
      expect(await resultsIn(desk)).toEqual(["paid 1", expect.stringContaining("Enough.")]);
      const notes = (await entriesOf(store, "s")).flatMap((entry) => (entry.type === "approval" ? [entry.note] : []));
      expect(notes.filter((note) => note !== undefined)).toEqual(["Once."]);
    },
  },
  {
    name: "ignores approvals in a fork, whose calls have the same ids, and in merged turns",
    async run({ store, manager }) {
      const desk = manager();
      const paid: unknown[] = [];
      await desk.create({ userId: "ann", id: "s" });
      await desk.run("s", payingAgent(), "Pay.", { park: { afterMs: 0 }, runId: "r" });
      const question = await questionIn(store, "s");
      const { sessionId: fork } = await desk.fork("s", "other");
      expect((await refusal(store, () => desk.approve(fork, question))).code).toBe("QUESTION_NOT_FOUND");
      await desk.addTurn(fork, { role: "assistant", content: null, toolCalls: [pay("c1", 7)] }, ANN);
      expect((await refusal(store, () => desk.merge("s", fork))).code).toBe("SESSION_BUSY");
      await desk.deny("s", question);
      await goOn(desk, cashier(paid));
      await desk.merge("s", fork);
      await store.append("s", [{ type: "run", runId: "r2", phase: "started" }]);
      await goOn(desk, cashier(paid));
      expect(paid).toEqual([]);
    },
  },
  {
    name: "refuses reserved ids of runs and answers from everyone else, and accepts an administrator's answer",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      await desk.run("s", payingAgent(), "Pay.", { park: { afterMs: 0 }, runId: "r" });
      const question = await questionIn(store, "s");
      const tree = await desk.open("s", ANN);
      const reserved = [answerIdOf(question), requestIdOf("x"), inputIdOf("x"), moveIdOf("x"), "run:", "answer:"];
      for (const id of reserved) {
        const refused = [
          () => tree.append({ type: "custom", customType: "mine", id }),
          () => tree.append({ type: "label", targetId: question, label: "mine", id }),
          () => tree.append({ type: "leaf", targetId: tree.leafId, id }),
          () => tree.appendMessage({ role: "user", content: "Mine." }, { id }),
          () => tree.appendAll([said({ role: "user", content: "Mine." }), said({ role: "user", content: "x" }, id)]),
          () => desk.addTurn("s", { role: "user", content: "Mine.", turnId: id }, ANN),
          () => desk.addTurn("s", { role: "user", content: "Mine.", turnId: id }),
        ];
        for (const act of refused) expect((await refusal(store, act)).code).toBe("INVALID_ID");
      }
      for (const runId of ["x/input", "x/from"])
        expect((await refusal(store, () => desk.request("s", { input: "x", runId, ifBusy: "enqueue" }))).code).toBe(
          "INVALID_ENTRY",
        );
      await desk.deny("s", question, { reason: "No." }, { actor: { userId: "root", admin: true } });
      expect(await openIn(store, "s")).toEqual(["r answered"]);
    },
  },
  {
    name: "refuses two calls with the same id from a user, and keeps them in imports and in existing logs",
    async run({ store, manager }) {
      const desk = manager();
      await sessionWith(store, said(calling(pay("c", 1), pay("c", 2)), "old"), {
        type: "run",
        runId: "r",
        phase: "finished",
      });
      const twice = { role: "assistant", content: null, toolCalls: [pay("c", 1), pay("c", 2)] } as const;
      const tree = await desk.open("s", ANN);
      const acts = [
        () => tree.appendMessage(twice),
        () => desk.addTurn("s", twice, ANN),
        () => desk.addTurn("s", twice),
      ];
      for (const act of acts) {
        const error = await refusal(store, act);
        expect(error).toMatchObject({ code: "INVALID_ENTRY", message: expect.stringContaining('"c"') });
      }
      await desk.addTurn("s", { ...twice, toolCalls: [pay("c", 1), pay("d", 2)] }, ANN);
      expect(await tree.getEntry("old")).toMatchObject({ message: { toolCalls: [{ id: "c" }, { id: "c" }] } });
      const { sessionId: fork } = await desk.fork("s", "other");
      expect((await desk.getState(fork))?.turns).toHaveLength(3);
    },
  },
  {
    name: "opens a log in which a client has used reserved ids, reports that on an answer, and lets the run be cancelled",
    async run({ store, manager }) {
      const desk = manager();
      await sessionWith(
        store,
        said(calling(pay("c", 1))),
        { type: "approval", id: "q", runId: "r", callId: "c", index: 0, digest: digestOfCall(pay("c", 1)) },
        { type: "run_parked", runId: "r", questions: [{ callId: "c", question: "q" }] },
        { type: "custom", customType: "mine", id: answerIdOf("q") },
      );
      expect((await desk.runs({ state: "parked" })).items).toHaveLength(1);
      const error = await refusal(store, () => desk.approve("s", "q"));
      expect(error).toMatchObject({ code: "CONFLICT", message: expect.stringContaining("cancel") });
      expect(await desk.cancel("s")).toBe(true);
      expect(await openIn(store, "s")).toEqual([]);
      // A question that expires is over without an answer.
      await store.append("s", [
        { type: "run", runId: "r", phase: "started" },
        {
          type: "run_parked",
          runId: "r",
          questions: [{ callId: "c", question: "q" }],
          expiresAt: "2020-01-01T00:00:00.000Z",
        },
      ]);
      expect(await desk.recover("s", { clerk: cashier([]) })).toBeNull();
      expect(await openIn(store, "s")).toEqual([]);
    },
  },
  {
    name: "honours a cancel between a claim's read and its start, for a run in any state",
    async run({ store, manager }) {
      const desk = manager();
      const states: Readonly<Record<string, readonly EntryDraft[]>> = {
        requested: [{ type: "run_request", id: requestIdOf("r"), runId: "r", agent: "clerk", input: "Pay." }],
        interrupted: [{ type: "run", runId: "r", phase: "started", claim: 1 }],
        answered: [
          { type: "run", runId: "r", phase: "started", claim: 1 },
          { type: "run_parked", runId: "r", questions: [] },
        ],
      };
      for (const [state, entries] of Object.entries(states)) {
        await store.create(createHeader({ id: state, userId: "ann" }), {
          entries: [said({ role: "user", content: "Hi." }, "u"), ...entries],
        });
        const interposed = dyingAfterStart(store, () => desk.cancel(state, { runId: "r" }));
        // The process that claims it dies directly after its start, if the start is written at all.
        await manager({ store: interposed })
          .recover(state, { clerk: cashier([]) })
          .catch(() => {});
        const phases = await phasesIn(store, state);
        // It is not started again: a cancelled run is over.
        expect(await desk.recover(state, { clerk: cashier([]) })).toBeNull();
        expect(await openIn(store, state)).toEqual([]);
        expect((await phasesIn(store, state)).slice(phases.length)).not.toContain("r started");
      }
    },
  },
];

/** The store of a process that dies when it writes the start of a run; a task runs directly before. */
function dyingAfterStart(store: SessionStore, act: () => Promise<unknown>): SessionStore {
  let dead = false;
  const append: SessionStore["append"] = async (id, drafts, options) => {
    if (dead) throw new Error("The process is gone.");
    if (!drafts.some((draft) => draft.type === "run" && draft.phase === "started"))
      return store.append(id, drafts, options);
    await act();
    dead = true;
    return store.append(id, drafts, options);
  };
  return new Proxy(store, {
    get(target, key) {
      if (key === "append") return append;
      const value = Reflect.get(target, key) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
