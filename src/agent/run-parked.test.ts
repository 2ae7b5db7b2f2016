import { mkdtemp, readdir, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { CountedBackend } from "../../test/counted-sandbox.ts";
import {
  asking,
  callOf,
  calling,
  eventsOf,
  nextEvent,
  resultsOf,
  shortly,
  someAgent,
  toolOf,
} from "../../test/sample-run.ts";
import { actingAfter, actingBefore, entriesOf } from "../../test/sample-run-log.ts";
import { scripted } from "../models/scripted.ts";
import type { EntryDraft } from "../session/log/entry.ts";
import { answerIdOf } from "../session/log/open-runs.ts";
import type { SandboxBackend } from "../session/sandbox/sandbox.ts";
import { localBackend } from "../sandboxes/local/index.ts";
import { registerSandboxBackend } from "../session/sandbox/sandbox-backends.ts";
import type { Session } from "../session/value/session.ts";
import type { SessionStore } from "../session/store.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { loadSession } from "../tree/persisted-session.ts";
import { createAgent } from "./agent.ts";
import type { LoopOptions } from "./loop-options.ts";
import { pollFollowers } from "./persist/log-follower.ts";
import { resumeSession } from "./persist/resume-session.ts";
import type { Approval, RecordedEvent } from "../session/log/run-event.ts";
import { newRun, stepRun } from "../session/log/run-fold.ts";
import { SessionManager } from "../lifecycle/session-manager.ts";
import { abandonRun } from "./active-runs.ts";
import type { RunEvent } from "./run-event.ts";
import { runSessionLoop } from "./run-session-loop.ts";
import type { SessionRun } from "./session-run.ts";
import type { Tool } from "./tools/tool.ts";

const asks: Partial<Tool> = { needsApproval: () => true };
const YES = { approved: true } as const;
const park = { afterMs: 0 };
const isParked = ({ type }: EntryDraft): boolean => type === "run_parked";

async function makeDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "skein-parked-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

function answerTo({ question, callId }: Approval, runId: string, decision: { approved: boolean }): EntryDraft {
  return { type: "approval", id: answerIdOf(question), runId, callId, question, decision };
}

interface Paying {
  readonly run: SessionRun;
  readonly paid: string[];
  /** Continues with the recorded placement; wrapped in an object, because a run can be awaited. */
  resume(options?: Partial<LoopOptions>): Promise<{ readonly on: SessionRun }>;
}

/** A run that asks before it pays, twice in its first answer. */
function paying(persist: SessionStore | string, options: Partial<LoopOptions> = {}, source?: Session): Paying {
  const paid: string[] = [];
  const tools = [
    ...(options.tools ?? [toolOf("look", () => "seen")]),
    toolOf("pay", (_args, { callId }) => `paid ${paid.push(callId)}`, asks),
  ];
  const calls = calling(callOf("0", "look"), callOf("1", "pay"), callOf("2", "pay"));
  const run = runSessionLoop(source ?? asking(), someAgent(), {
    model: scripted([calls, "Done."]),
    persist,
    park,
    ...options,
    tools,
  });
  const resume = async (more: Partial<LoopOptions> = {}): Promise<{ on: SessionRun }> => {
    const place = typeof persist === "string" ? persist : { store: persist, sessionId: run.id };
    const { user, agent } = await resumeSession(place);
    return { on: runSessionLoop(user, agent, { model: scripted(["Done."]), persist, tools, ...more }) };
  };
  return { run, paid, resume };
}

async function questionsOf(run: SessionRun): Promise<readonly Approval[]> {
  return (await nextEvent(run, "run-parked")).questions;
}

describe("a run that waits longer than its limit for an answer", () => {
  test("parks: awaiting it returns the messages, and no process holds the session", async () => {
    const store = openMemoryStore();
    const { run, paid } = paying(store);
    const session = await run;
    expect(shortly(session.transcript)).toEqual(["user: Do it.", "assistant: [look] [pay] [pay]", "tool: seen"]);
    expect([run.status, run.pending, run.pendingApprovals, paid]).toEqual(["parked", false, [], []]);
    expect(await store.leaseOf(run.id)).toBeNull();
    const events = await eventsOf(run);
    const [asked, last] = [events.filter(({ type }) => type === "approval-required"), events.at(-1)];
    expect(last).toMatchObject({ type: "run-parked", questions: [{ callId: "1" }, { callId: "2" }] });
    const { questions, expiresAt } = last as Extract<typeof last, { type: "run-parked" }>;
    expect(questions).toEqual(asked.map((event) => (event as { approval: Approval }).approval));
    expect((await store.head(run.id))?.openRuns).toEqual([
      { runId: run.runId, state: "parked", questions: questions.map(({ question }) => question), expiresAt, first: 1 },
    ]);
    await expect(run.approve("1")).rejects.toMatchObject({ code: "RUN_ENDED" });
    await expect(run.steer("More.")).rejects.toMatchObject({ code: "RUN_ENDED" });
  });

  test("continues under its id where it stopped once all questions are answered, and runs no call twice", async () => {
    const store = openMemoryStore();
    const { run, paid, resume } = paying(store);
    const [one, two] = (await questionsOf(run)) as [Approval, Approval];
    await run;
    await store.append(run.id, [answerTo(one, run.runId, YES)]);
    expect((await store.head(run.id))?.openRuns).toMatchObject([{ state: "parked", questions: [two.question] }]);
    await store.append(run.id, [answerTo(two, run.runId, { approved: false })]);
    expect((await store.head(run.id))?.openRuns).toEqual([{ runId: run.runId, state: "answered", first: 1 }]);
    const { on } = await resume();
    expect(on.runId).toBe(run.runId);
    expect(resultsOf((await on).transcript)).toMatchObject(["seen", "paid 1", { error_kind: "denied" }]);
    expect([paid, on.status, (await store.head(run.id))?.openRuns]).toEqual([["1"], "finished", []]);
  });

  test("parks again with the same questions if it is resumed too soon", async () => {
    const store = openMemoryStore();
    const { run, resume } = paying(store);
    const questions = await questionsOf(run);
    const { on: again } = await resume({ park });
    await again;
    expect([again.status, await questionsOf(again)]).toEqual(["parked", questions]);
    const asked = (await entriesOf(store, run.id)).filter(({ type }) => type === "approval");
    expect(asked.map(({ id }) => id)).toEqual(questions.map(({ question }) => question));
  });

  test("has no deadline for its questions by default", async () => {
    const store = openMemoryStore();
    const { run } = paying(store, { park: { afterMs: 0 } });
    expect(await nextEvent(run, "run-parked")).not.toHaveProperty("expiresAt");
    await run;
    expect((await store.head(run.id))?.openRuns).toMatchObject([{ state: "parked" }]);
    expect((await store.head(run.id))?.openRuns[0]).not.toHaveProperty("expiresAt");
  });

  test("counts an expired question as denied, and records that", async () => {
    const store = openMemoryStore();
    const { run, paid, resume } = paying(store, { park: { afterMs: 0, expireMs: 1 } });
    const [one] = (await questionsOf(run)) as [Approval];
    await run;
    await store.append(run.id, [answerTo(one, run.runId, YES)]);
    const { expiresAt = "" } = await nextEvent(run, "run-parked");
    await expect.poll(() => new Date().toISOString() > expiresAt).toBe(true);
    const { on } = await resume();
    const denied = { error_kind: "denied", message: "Nobody answered in time." };
    expect(resultsOf((await on).transcript)).toMatchObject(["seen", "paid 1", denied]);
    expect(paid).toEqual(["1"]);
    const answers = (await entriesOf(store, run.id)).filter((entry) => entry.type === "approval" && entry.decision);
    expect(answers).toMatchObject([{ decision: YES }, { decision: { approved: false } }]);
  });

  test("does not park when the answer comes at the same moment", async () => {
    const store = openMemoryStore();
    const answered: string[] = [];
    // The answers are already there when the run would record that it has none.
    const busy = actingBefore(store, isParked, async (sessionId, draft) => {
      if (answered.length === 2) return;
      const { questions, runId } = draft as Extract<EntryDraft, { type: "run_parked" }>;
      const [first] = questions as [Approval];
      answered.push(first.callId);
      await store.append(sessionId, [answerTo(first, runId, YES)]);
    });
    const { run, paid } = paying(busy);
    expect(resultsOf((await run).transcript)).toEqual(["seen", "paid 1", "paid 2"]);
    expect([answered, paid, run.status]).toEqual([["1", "2"], ["1", "2"], "finished"]);
    expect((await entriesOf(store, run.id)).some(({ type }) => type === "run_parked")).toBe(false);
  });

  test("accepts an answer that is given while it parks, and the process that continues has it", async () => {
    const store = openMemoryStore();
    let answer: Promise<void> | null = null;
    const parking = actingBefore(store, isParked, async () => {
      await null;
      answer = Promise.all(["1", "2"].map((callId) => run.approve(callId))).then(() => {});
    });
    const { run, paid, resume } = paying(parking);
    await run;
    await answer;
    expect([run.status, paid]).toEqual(["parked", []]);
    expect((await store.head(run.id))?.openRuns).toEqual([{ runId: run.runId, state: "answered", first: 1 }]);
    await expect(run.approve("1")).rejects.toMatchObject({ code: "RUN_ENDED", message: /is parked; answer/ });
    const { on } = await resume();
    expect(resultsOf((await on).transcript)).toEqual(["seen", "paid 1", "paid 2"]);
  });

  test("is cancelled by an abort that arrives while parking is recorded", async () => {
    const store = openMemoryStore();
    const parking = actingBefore(store, isParked, async () => run.abort());
    const { run, paid } = paying(parking);
    await expect(run.synchronize()).rejects.toMatchObject({ code: "ABORTED" });
    expect([run.status, paid, await store.leaseOf(run.id)]).toEqual(["aborted", [], null]);
    expect((await store.head(run.id))?.openRuns).toEqual([]);
    const last = (await entriesOf(store, run.id)).slice(-2);
    expect(last).toMatchObject([{ type: "run_parked" }, { type: "run", phase: "cancelled" }]);
  });

  test("leaves a file without an end, and continues there", async () => {
    const path = join(await makeDirectory(), "run.jsonl");
    const { run, resume } = paying(path);
    const questions = await questionsOf(run);
    await run;
    expect((await readdir(join(path, ".."))).filter((name) => name.startsWith("run"))).toEqual([
      "run.jsonl.__partial__",
    ]);
    const { on } = await resume();
    for (const { question } of questions) {
      await nextEvent(on, "approval-required", ({ approval }) => approval.question === question);
      await on.approve(question);
    }
    expect(resultsOf((await on).transcript)).toEqual(["seen", "paid 1", "paid 2"]);
    expect((await loadSession(path)).trailer).not.toBeNull();
  });
});

describe("the events of a run that parks", () => {
  /** What happens between the append of `run_parked` and its result, and the end of the run according to its process. */
  const cases: readonly {
    readonly name: string;
    readonly act: (run: SessionRun, store: SessionStore) => Promise<unknown>;
    readonly status: string;
    readonly last: readonly string[];
    /** The end that the process emits and the log does not record. */
    readonly repeated?: string;
  }[] = [
    {
      name: "another program cancels it",
      act: ({ id }, store) => new SessionManager({ store }).cancel(id, { reason: "Not now." }),
      status: "aborted",
      last: ["run-parked", "run-failed"],
    },
    {
      name: "another program closes its session",
      act: async ({ id }, store) => {
        await new SessionManager({ store }).close(id);
        await pollFollowers(store, id);
      },
      status: "aborted",
      last: ["run-parked", "run-failed"],
    },
    {
      name: "its program aborts it",
      act: async (run) => run.abort(),
      status: "aborted",
      last: ["run-parked", "run-failed"],
    },
    {
      name: "it is cancelled and aborted",
      act: async (run, store) => {
        await new SessionManager({ store }).cancel(run.id);
        run.abort();
      },
      status: "aborted",
      last: ["run-parked", "run-failed"],
    },
    {
      name: "its process abandons it",
      act: async ({ id }) => void abandonRun(id),
      status: "aborted",
      last: ["tool-finished", "run-parked"],
      repeated: "run-failed",
    },
    {
      name: "another program answers it",
      act: async ({ id }, store) => {
        const asked = (await entriesOf(store, id)).findLast(({ type }) => type === "approval");
        await new SessionManager({ store }).approve(id, asked?.id ?? "");
      },
      status: "parked",
      last: ["tool-finished", "run-parked"],
    },
  ];

  test.each(cases)(
    "are those of its log: $name before it knows that it has parked",
    async ({ act, status, last, repeated }) => {
      const memory = openMemoryStore();
      const acted: Promise<unknown>[] = [];
      const store: SessionStore = actingAfter(memory, isParked, () => {
        acted.push(act(run, store));
        return Promise.all(acted);
      });
      const { run } = paying(store);
      const emitted: { seq: number; event: RunEvent }[] = [];
      const others: RunEvent["type"][] = [];
      run.listen((event, seq, origin) => {
        if (origin === "recorded") emitted.push({ seq, event });
        if (origin === "repeated") others.push(event.type);
      });
      await run.synchronize().catch(() => {});
      expect(acted).toHaveLength(1);
      const entries = await entriesOf(memory, run.id);
      const recorded: { seq: number; event: RecordedEvent }[] = [];
      entries.reduce((state, entry) => {
        const step = stepRun(state, entry, { id: run.id, forkedFrom: null });
        if (step.event !== null) recorded.push({ seq: entry.seq, event: step.event });
        return step.state;
      }, newRun(run.runId));
      // `cause` holds the thrown value in this process only; it is not enumerable.
      expect(emitted).toEqual(recorded);
      expect(emitted.map(({ event }) => event.type).slice(-2)).toEqual(last);
      expect([run.status, others, await memory.leaseOf(run.id)]).toEqual([
        status,
        repeated === undefined ? [] : [repeated],
        null,
      ]);
      expect(entries.filter((entry) => entry.type === "run" && entry.phase !== "started").length).toBeLessThan(2);
    },
  );

  test("have the position of its entry if an answer is recorded while it parks", async () => {
    const store = openMemoryStore();
    const parking = actingBefore(store, isParked, async () => {
      await null;
      void run.approve("1");
    });
    const { run } = paying(parking);
    const positions: number[] = [];
    run.listen((event, seq) => void (event.type === "run-parked" && positions.push(seq)));
    await run;
    const entries = await entriesOf(store, run.id);
    expect(entries.at(-1)).toMatchObject({ type: "approval", decision: YES });
    expect(positions).toEqual([entries.find(({ type }) => type === "run_parked")?.seq]);
  });
});

describe("a run does not park", () => {
  const waits = async (run: SessionRun): Promise<void> => {
    await nextEvent(run, "approval-required", ({ approval }) => approval.callId === "2");
    // Long enough for a timer of no time at all to have been over several times.
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve, 1));
    expect(run.status).toBe("running");
    await run.approve("1");
    await run.approve("2");
    await run;
    expect(run.status).toBe("finished");
  };

  test("with park: false", async () => {
    const { run } = paying(openMemoryStore(), { park: false });
    await waits(run);
  });

  test("if its sandbox cannot be reattached", async () => {
    const backend = new CountedBackend();
    const lost: SandboxBackend = { open: (spec) => backend.open(spec) };
    registerSandboxBackend(backend.name, () => lost);
    const act = toolOf("look", async (_args, context) => void (await context.requireSandbox()));
    const source = asking().to(backend.name);
    const { run } = paying(openMemoryStore(), { tools: [act] }, source);
    await waits(run);
  });

  test("inside a tool, because the enclosing run waits for it", async () => {
    const store = openMemoryStore();
    const pay = toolOf("pay", () => "paid", asks);
    const ask = toolOf("ask", async () => {
      const model = scripted([calling(callOf("1", "pay")), "Asked."]);
      const run = createAgent({ prompt: "", model, tools: [pay], park }).run("Go.", { persist: store });
      return (await run).text();
    });
    const model = scripted([calling(callOf("1", "ask")), "Done."]);
    const run = runSessionLoop(asking(), someAgent(), { model, tools: [ask], persist: store, park });
    const { approval } = await nextEvent(run, "approval-required");
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve, 1));
    await run.approve(approval.question);
    expect(resultsOf((await run).transcript)).toEqual(["Asked."]);
  });
});

test("a parked run whose tools act on this machine records the machine, and keeps its files for the process that continues", async () => {
  const directory = await makeDirectory();
  const store = openMemoryStore();
  const act = toolOf("look", async (_args, context) => {
    await (await context.requireSandbox()).writeFile("note.txt", "kept");
  });
  registerSandboxBackend("local", () => localBackend);
  const source = asking().to("local", { workingDir: directory });
  const { run, resume } = paying(store, { tools: [act] }, source);
  const session = await run;
  expect([run.status, session.sandbox]).toEqual(["parked", null]);
  const fact = (await entriesOf(store, run.id)).find(({ type }) => type === "run_parked");
  expect(fact).toMatchObject({ host: hostname() });
  const read = toolOf("look", async (_args, context) => {
    const file = await (await context.requireSandbox()).readFile("note.txt");
    return new TextDecoder().decode(file);
  });
  const { on } = await resume({
    model: scripted([calling(callOf("3", "look")), "Done."]),
    tools: [read, toolOf("pay")],
  });
  const answer = await on;
  expect(resultsOf(answer.transcript).at(-1)).toBe("kept");
  await answer.closeSandbox();
});

describe("the deadline of a run", () => {
  test("stops it, and its end records that", async () => {
    const store = openMemoryStore();
    const deadline = new Date(Date.now() + 50).toISOString();
    const { run } = paying(store, { park: false, deadline });
    await expect(run.synchronize()).rejects.toMatchObject({ code: "DEADLINE" });
    expect(run.status).toBe("failed");
    const end = (await entriesOf(store, run.id)).findLast(({ type }) => type === "run");
    expect(end).toMatchObject({ phase: "failed", error: { code: "DEADLINE" } });
  });

  test("applies to every claim: a recovery after the deadline ends the run", async () => {
    const store = openMemoryStore();
    const { run, paid, resume } = paying(store);
    await run;
    const { on } = await resume({ deadline: new Date(0).toISOString() });
    await expect(on.synchronize()).rejects.toMatchObject({ code: "DEADLINE" });
    expect([paid, (await store.head(run.id))?.openRuns, await store.leaseOf(run.id)]).toEqual([[], [], null]);
  });
});
