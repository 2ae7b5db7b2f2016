import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { user } from "../../../test/sample-log.ts";
import { type Entry, type EntryDraft, isNode } from "./entry.ts";
import { answerIdOf, requestIdOf } from "./open-runs.ts";
import type { RecordedEvent } from "./run-event.ts";
import { newRun, QUEUED_KEY, RunsFold, type RunState, stepRun } from "./run-fold.ts";

const HEADER = { id: "s", forkedFrom: null };

/** The entries of drafts, each below the last node before it. */
function logOf(drafts: readonly EntryDraft[]): Entry[] {
  let parentId: string | null = null;
  return drafts.map((draft, seq) => {
    const entry = { id: `e${seq}`, parentId, timestamp: `t${seq}`, seq, ...draft } as Entry;
    if (isNode(entry)) parentId = entry.id;
    return entry;
  });
}

/** Run `r` after some entries, and the events that they record. */
function fold(drafts: readonly EntryDraft[]): { run: RunState; events: RecordedEvent[] } {
  let run = newRun("r");
  const events = logOf(drafts).flatMap((entry) => {
    const step = stepRun(run, entry, HEADER);
    run = step.state;
    return step.event ?? [];
  });
  return { run, events };
}

const request = (more: object = {}): EntryDraft =>
  ({ type: "run_request", id: requestIdOf("r"), runId: "r", input: "Hi.", ...more }) as EntryDraft;
const started = (claim = 1): EntryDraft => ({ type: "run", runId: "r", phase: "started", claim });
const ended = (phase: "finished" | "failed" | "cancelled", more: object = {}): EntryDraft =>
  ({ type: "run", runId: "r", phase, ...more }) as EntryDraft;
const said = (content: string, more: object = {}): EntryDraft =>
  ({ type: "message", message: { role: "assistant", content }, ...more }) as EntryDraft;
const ASKED = { name: "pay", arguments: { euros: 5 }, effects: "commands", reach: null };
const asks = (id: string): EntryDraft => ({ type: "approval", id, runId: "r", callId: "c", asked: ASKED });
const types = (events: readonly RecordedEvent[]): string[] => events.map(({ type }) => type);

describe("the fold of a run", () => {
  test("counts rounds over all claims, and records each start with its claim", () => {
    const { events } = fold([request(), started(1), said("a"), said("b"), started(7), said("c"), ended("finished")]);
    expect(events).toMatchObject([
      { type: "run-started", claim: 1, runId: "r" },
      { type: "round-finished", round: 1 },
      { type: "round-finished", round: 2 },
      { type: "run-started", claim: 7 },
      { type: "round-finished", round: 3 },
      { type: "run-finished", truncated: false, usage: null },
    ]);
  });

  test("ignores entries of users, inherited entries, other runs and everything after its end", () => {
    const other = { type: "run", runId: "x", phase: "failed" } as const;
    const late = { type: "message", message: { role: "assistant", content: "late" } } as const;
    const { events, run } = fold([
      said("before"),
      ...[request(), other, started(), said("by bob", { by: "bob" }), said("from a file", { inherited: true })],
      ...[said("mine"), ended("finished"), late, ended("failed")],
    ]);
    expect(types(events)).toEqual(["run-started", "round-finished", "run-finished"]);
    expect(run).toMatchObject({ end: "finished", startedAt: "t3", endedAt: "t7" });
  });

  test("does not count a second start with a sandbox as a takeover", () => {
    const noted = { ...started(), sandbox: { backend: "local", spec: {}, handleId: null } } as EntryDraft;
    expect(types(fold([request(), started(), noted]).events)).toEqual(["run-started"]);
  });

  test("lists its unanswered questions with their expiry, and again when it parks", () => {
    const parked = {
      type: "run_parked",
      runId: "r",
      questions: [{ callId: "c", question: "q" }],
      expiresAt: "x",
    } as const;
    const answer = {
      type: "approval",
      id: answerIdOf("q"),
      runId: "r",
      callId: "c",
      question: "q",
      decision: {},
    } as const;
    const { run, events } = fold([request(), started(), said("a"), asks("q"), parked]);
    const approval = { ...ASKED, callId: "c", question: "q" };
    expect(events.slice(2)).toEqual([
      { type: "approval-required", round: 1, approval, runId: "r" },
      { type: "run-parked", questions: [approval], expiresAt: "x", runId: "r" },
    ]);
    expect([run.open?.state, run.questions]).toEqual(["parked", [{ approval, askedAt: "t3", expiresAt: "x" }]]);
    const after = fold([request(), started(), said("a"), asks("q"), parked, answer as EntryDraft]).run;
    expect([after.open?.state, after.questions]).toEqual(["answered", []]);
  });

  test("ends with a cancel or the session's end while no process holds it, and not otherwise", () => {
    const cancel = { type: "cancel", runId: "r" } as const;
    const closed = { type: "status", status: "closed" } as const;
    for (const end of [cancel, closed]) {
      const { run, events } = fold([request(), end]);
      expect([run.end, types(events)]).toEqual(["cancelled", ["run-failed"]]);
      expect(fold([request(), started(), end]).run.end).toBe(null);
    }
  });

  test("has the error as it was recorded, with its code and details", () => {
    const last = (error: unknown) => fold([request(), started(), ended("failed", { error })]).events.at(-1);
    const known = { name: "ModelError", code: "MODEL_FAILED", message: "Too busy.", details: { kind: "overloaded" } };
    expect(last(known)).toMatchObject({
      error: { code: "MODEL_FAILED", message: "Too busy.", details: known.details },
    });
    expect(last({ name: "Error", message: "Broken." })).toMatchObject({ error: { code: null, message: "Broken." } });
    expect(last("The run was interrupted.")).toMatchObject({ error: { message: "The run was interrupted." } });
  });

  test("of a group records its agents' turns and its own end", () => {
    const marked = (kind: string, more: object = {}): EntryDraft =>
      ({
        type: "message",
        message: { role: "assistant", content: "Hm.", agent: "ann", metadata: { group: { kind } }, ...more },
      }) as EntryDraft;
    const custom = (data: object): EntryDraft => ({ type: "custom", customType: "group", data }) as EntryDraft;
    const metadata = { group: { kind: "message", maxRounds: 3 } };
    const question = marked("message", { role: "user", agent: undefined, metadata });
    const start = { ...started(), group: { messageId: "e1", agents: ["ann", "ben"] } } as EntryDraft;
    const { events } = fold([
      ...[request({ group: "crew" }), question, start, marked("work"), asks("q"), marked("turn")],
      ...[custom({ kind: "passed", agent: "ben" }), custom({ kind: "ended", reason: "all-passed" }), ended("finished")],
    ]);
    expect(events).toMatchObject([
      { type: "group-started", sessionId: "s", messageId: "e1", agents: ["ann", "ben"], resumed: false, claim: 1 },
      { type: "approval-required", agent: "ann" },
      { type: "agent-finished", agent: "ann", kind: "spoke", turnId: "e5", text: "Hm." },
      { type: "agent-finished", agent: "ben", kind: "passed", turnId: null },
      { type: "group-finished", outcome: { reason: "all-passed" } },
    ]);
  });
});

/** An entry that came with a fork or an import, followed by entries of the run. */
const FORKED = { id: "s", forkedFrom: { sessionId: "x", entryId: "e0", version: 1, branchName: "b" } };
const IMPORTED = { id: "s", forkedFrom: null, inherited: { entries: 1, counts: true } };
const PLACE = { backend: "local", spec: {}, handleId: null };
const placed = (runId = "r"): EntryDraft =>
  ({ type: "run", runId, phase: "started", sandbox: PLACE, run: runId }) as EntryDraft;
const begins = (more: object = {}): EntryDraft => ({ ...started(), run: "r", ...more }) as EntryDraft;
const says = (content: string, more: object = {}): EntryDraft => said(content, { run: "r", ...more });
const calls = (more: object = {}): EntryDraft =>
  ({ ...said(""), run: "r", message: { role: "assistant", content: null, toolCalls: [CALL] }, ...more }) as EntryDraft;
const CALL = { id: "c", name: "pay", arguments: "{}" };
const hears = (content: string, more: object = {}): EntryDraft =>
  ({ type: "queued", runId: "r", kind: "steer", content, ...more }) as EntryDraft;
const answers = (question: string, approved: boolean): EntryDraft =>
  ({ type: "approval", runId: "r", callId: "c", question, decision: { approved } }) as EntryDraft;
const spending = { usage: { inputTokens: 2, outputTokens: 1, totalTokens: 3 }, cost: 1 };
const compacted = (more: object = {}): EntryDraft =>
  ({
    type: "compaction",
    summary: "s",
    firstKeptEntryId: "e0",
    tokensBefore: 1,
    run: "r",
    ...spending,
    ...more,
  }) as EntryDraft;
const answered = (more: object = {}): EntryDraft =>
  ({ type: "message", message: { role: "assistant", content: "x", ...spending }, run: "r", ...more }) as EntryDraft;
const userSays: EntryDraft = { type: "message", message: { role: "user", content: "No." } } as EntryDraft;

/** The last run that a log tells of, with what it took over from the one before. */
function lastOf(drafts: readonly EntryDraft[], header: ConstructorParameters<typeof RunsFold>[0] = HEADER): RunState {
  const runs = new RunsFold(header);
  for (const entry of logOf(drafts)) runs.take(entry);
  return runs.last;
}

const next = { ...started(), runId: "n", run: "n" } as EntryDraft;

/** Each row of the table above `stepRun`: what a field has, and what it does not. */
const rules: Readonly<Record<string, () => void>> = {
  "all fields": () => {
    const log = [
      { ...begins(), inherited: true },
      { ...says("a"), inherited: true },
    ] as EntryDraft[];
    expect(fold(log).run).toEqual(newRun("r"));
    const { run } = fold([begins(), ended("finished"), says("late"), hears("late")]);
    expect([run.round, run.queued]).toEqual([0, []]);
  },
  open: () => {
    expect(fold([request()]).run.open).toMatchObject({ state: "requested", first: 0 });
    expect(fold([request(), { type: "cancel", runId: "other" } as EntryDraft]).run.open).not.toBe(null);
  },
  request: () => {
    expect(fold([request({ agent: "a" })]).run.request?.agent).toBe("a");
    expect(fold([{ ...request(), id: requestIdOf("x"), runId: "x" } as EntryDraft]).run.request).toBe(null);
  },
  "claim, agent, model, tools, setup, startedAt": () => {
    const named = { agent: "a", model: "p/m", tools: ["pay"], setup: "e0" };
    const { run } = fold([begins({ claim: 1 }), begins({ claim: 4, ...named }), placed()]);
    expect(run).toMatchObject({ claim: 4, ...named, startedAt: "t0" });
  },
  "round, toolRounds, usage, cost": () => {
    const log = [begins(), calls(), answered(), begins({ claim: 2 }), compacted(), answered()];
    const { run } = fold([...log, answered({ run: undefined }), compacted({ run: "x" })]);
    expect(run).toMatchObject({ round: 3, toolRounds: 1, cost: 3, usage: { totalTokens: 9 } });
  },
  answer: () => {
    const failed = [begins(), calls(), ended("failed")];
    expect(lastOf([...failed, next]).answer?.calls).toEqual([CALL]);
    expect(lastOf([...failed, userSays, next]).answer).toBe(null);
    for (const phase of ["finished", "cancelled"] as const)
      expect(lastOf([begins(), calls(), ended(phase), next]).answer).toBe(null);
  },
  "answer.effects, answer.asked": () => {
    const effect = { type: "effect", runId: "r", callId: "c", index: 0, run: "r" } as EntryDraft;
    const other = { ...effect, callId: "d", index: 1 } as EntryDraft;
    const { answer } = fold([begins(), calls(), asks("q"), effect, other]).run;
    expect([answer?.effects, answer?.asked.map(({ question }) => question)]).toEqual([
      [
        { callId: "c", index: 0 },
        { callId: "d", index: 1 },
      ],
      ["q"],
    ]);
    const later = fold([begins(), calls(), asks("q"), effect, calls()]).run.answer;
    expect([later?.effects, later?.asked]).toEqual([[], []]);
  },
  "answers to questions": () => {
    const asked = [begins(), calls(), asks("q")];
    const decisionOf = (log: readonly EntryDraft[]) => fold(log).run.answer?.asked[0]?.answer?.decision;
    expect(decisionOf([...asked, answers("q", false), answers("q", true)])).toEqual({ approved: false });
    expect(decisionOf([...asked, { ...answers("q", true), runId: "x" } as EntryDraft])).toBe(undefined);
  },
  questions: () => {
    const inner = { ...asks("i"), asked: { ...ASKED, innerRunId: "in" } } as EntryDraft;
    const open = (log: readonly EntryDraft[]) => fold(log).run.questions.map(({ approval }) => approval.question);
    expect(open([begins(), calls(), asks("q"), inner])).toEqual(["q", "i"]);
    expect(open([begins(), calls(), asks("q"), inner, begins({ claim: 2 })])).toEqual(["q"]);
    expect(open([begins(), calls(), asks("q"), answers("q", true)])).toEqual([]);
    expect(open([begins(), calls(), asks("q"), inner, begins({ claim: 2 }), calls()])).toEqual([]);
  },
  queued: () => {
    const delivers = { ...userSays, run: "r", message: { ...user("Hi."), metadata: { [QUEUED_KEY]: "h" } } };
    const waiting = (log: readonly EntryDraft[]) => lastOf(log).queued.map(({ content }) => content);
    expect(waiting([begins(), hears("Hi."), hears("Ho."), hears("No.", { runId: "x" })])).toEqual(["Hi.", "Ho."]);
    expect(waiting([begins(), hears("Hi.", { id: "h" }), hears("Ho."), delivers as EntryDraft])).toEqual(["Ho."]);
    expect(waiting([begins(), hears("Hi."), ended("failed"), next])).toEqual(["Hi."]);
    expect(waiting([begins(), hears("Hi."), ended("finished"), next])).toEqual([]);
    expect(waiting([begins(), hears("Hi."), ended("failed"), userSays, next])).toEqual([]);
    expect(waiting([begins(), hears("Hi."), userSays, ended("failed"), next])).toEqual(["Hi."]);
  },
  sandbox: () => {
    expect(lastOf([begins(), placed(), ended("finished"), next]).sandbox).toEqual(PLACE);
    expect(lastOf([placed("x"), next], FORKED).sandbox).toEqual(PLACE);
    expect(lastOf([placed("x"), next], IMPORTED).sandbox).toBe(null);
  },
  group: () => {
    const marked = (kind: string, more: object = {}): EntryDraft =>
      ({
        type: "message",
        message: { role: "assistant", content: "x", agent: "ann", metadata: { group: { kind } } },
        ...more,
      }) as EntryDraft;
    const log = [userSays, begins({ group: { messageId: "e0", agents: ["ann"] } })];
    expect(fold([...log, marked("turn", { run: "r" })]).run.group?.moves).toEqual([{ agent: "ann", kind: "spoke" }]);
    expect(fold([...log, marked("turn", { by: "bob" })]).events.map(({ type }) => type)).toEqual(["group-started"]);
    const works = { ...marked("work"), run: "r" } as EntryDraft & { message: object };
    const work = { ...works, message: { ...works.message, toolCalls: [CALL], ...spending } } as EntryDraft;
    const turn = { agent: "ann", round: 2, toolRounds: 2, cost: 2, answer: { id: "e4", calls: [CALL] } };
    const { run } = fold([...log, work, begins({ claim: 2, group: { messageId: "e0", agents: ["ann"] } }), work]);
    expect(run).toMatchObject({ cost: 2, usage: { totalTokens: 6 }, group: { speaker: "ann", turn } });
    expect(fold([...log, work, marked("turn", { run: "r" })]).run.group?.turn).toBe(null);
  },
  agentSetups: () => {
    const message = { role: "assistant", content: "x", agent: "ann", metadata: { group: { kind: "turn" } } };
    const speaks = (setup: string, more: object): EntryDraft =>
      ({ type: "message", message, setup, ...more }) as EntryDraft;
    const log = [userSays, begins({ group: { messageId: "e0", agents: ["ann"] } }), speaks("one", { run: "r" })];
    expect([...fold([...log, speaks("two", { run: "x" })]).run.agentSetups]).toEqual([["ann", "one"]]);
  },
  stamped: () => {
    expect([fold([started()]).run.stamped, fold([begins()]).run.stamped]).toEqual([false, true]);
    expect(fold([begins(), started(2)]).run.stamped).toBe(false);
  },
  parked: () => {
    const parks = (runId: string): EntryDraft => ({ type: "run_parked", runId, questions: [] });
    expect(fold([begins(), parks("r"), begins({ claim: 2 })]).run.parked?.seq).toBe(1);
    expect(fold([begins(), parks("x")]).run.parked).toBe(null);
  },
  "end, endedAt": () => {
    expect(fold([begins(), ended("cancelled")]).run).toMatchObject({ end: "cancelled", endedAt: "t1" });
    expect(fold([begins(), { ...ended("failed"), runId: "x" } as EntryDraft]).run.end).toBe(null);
    const closed = { type: "status", status: "closed" } as EntryDraft;
    expect([fold([request(), closed]).run.end, fold([begins(), closed]).run.end]).toEqual(["cancelled", null]);
  },
  "output, error": () => {
    const results = (log: readonly EntryDraft[]) => (({ output, error }) => [output, error])(fold(log).run);
    expect(results([begins(), ended("finished", { output: { sum: 1 } })])).toEqual([{ sum: 1 }, null]);
    expect(results([begins(), ended("failed", { error: "No." })])).toEqual([
      undefined,
      { code: "ABORTED", message: "No." },
    ]);
    expect(results([begins(), says("a")])).toEqual([undefined, null]);
  },
};

describe("the table of rules above stepRun", () => {
  const source = readFileSync(new URL("./run-fold.ts", import.meta.url), "utf8");
  const rows = [...source.matchAll(/^ \* \| (?!field|-)([^|]+) \|/gm)].map(([, cell = ""]) => cell.replaceAll("`", ""));

  test("has a test for each row", () => {
    expect(Object.keys(rules)).toEqual(rows);
  });

  test("has a row for each field of the state", () => {
    const named = new Set(rows.flatMap((row) => row.split(", ").map((field) => field.split(".")[0])));
    expect(Object.keys(newRun("r")).filter((field) => field !== "runId" && !named.has(field))).toEqual([]);
  });

  test.each(Object.keys(rules))("holds for %s", (row) => rules[row]?.());
});
