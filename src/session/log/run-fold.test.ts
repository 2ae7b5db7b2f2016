import { describe, expect, test } from "vitest";
import type { Entry, EntryDraft } from "./entry.ts";
import { answerIdOf, requestIdOf } from "./open-runs.ts";
import type { RecordedEvent } from "./run-event.ts";
import { newRun, type RunState, stepRun } from "./run-fold.ts";

const HEADER = { id: "s", forkedFrom: null };

/** Run `r` after some entries, and the events that they record. */
function fold(drafts: readonly EntryDraft[]): { run: RunState; events: RecordedEvent[] } {
  let run = newRun("r");
  const events = drafts.flatMap((draft, seq) => {
    const entry = {
      id: `e${seq}`,
      parentId: seq === 0 ? null : `e${seq - 1}`,
      timestamp: `t${seq}`,
      seq,
      ...draft,
    } as Entry;
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

  test("records where tools act only once: a second start with a sandbox is no takeover", () => {
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
