import { describe, expect, test } from "vitest";
import { message, SampleLog, user } from "../../../test/sample-log.ts";
import type { EntryDraft } from "./entry.ts";
import { answerIdOf, matchesRuns, type OpenRun, requestIdOf, runsIndexOf } from "./open-runs.ts";
import { nextRun } from "./run-fold.ts";

const NOW = "2030-01-01T00:00:00.000Z";
const request = (runId: string, notBefore?: string): EntryDraft => ({
  type: "run_request",
  id: requestIdOf(runId),
  runId,
  input: "hi",
  ...(notBefore === undefined ? {} : { notBefore }),
});
const started = (runId: string, claim = 1): EntryDraft => ({ type: "run", runId, phase: "started", claim });
const asks = (question: string): EntryDraft => ({ type: "approval", id: question, runId: "r", callId: "c" });
const parked = (...questions: string[]): EntryDraft => ({
  type: "run_parked",
  runId: "r",
  questions: questions.map((question) => ({ callId: "c", question })),
});
const answer = (question: string): EntryDraft => ({
  type: "approval",
  id: answerIdOf(question),
  runId: "r",
  callId: "c",
  question,
  decision: { approved: true },
});

function openAfter(...drafts: readonly EntryDraft[]): readonly OpenRun[] {
  const log = new SampleLog();
  log.append(drafts);
  return log.head.openRuns;
}

describe("claims", () => {
  test("are counted until a new message resets the count", () => {
    expect(openAfter(started("r"), started("r"), started("r"))).toMatchObject([{ claims: 3 }]);
    expect(openAfter(started("r"), started("r"), message("m", user("x")))).toEqual([{ runId: "r", state: "started" }]);
    const place: EntryDraft = {
      type: "run",
      runId: "r",
      phase: "started",
      sandbox: { backend: "b", spec: 1, handleId: null },
    };
    expect(openAfter(started("r"), place)).toEqual([{ runId: "r", state: "started" }]);
  });

  test("after a request or an answer are counted from one", () => {
    expect(openAfter(request("r"), started("r"))).toEqual([{ runId: "r", state: "started", first: 0 }]);
    expect(openAfter(started("r"), asks("q"), parked("q"), answer("q"), started("r"))).toEqual([
      { runId: "r", state: "started" },
    ]);
  });
});

test("a run that is cancelled while it waits for an answer, or to continue, has ended", () => {
  const waits = [started("r"), asks("q"), parked("q")];
  const cancel: EntryDraft = { type: "cancel", runId: "r" };
  expect(openAfter(...waits, cancel)).toEqual([]);
  expect(openAfter(...waits, answer("q"), cancel)).toEqual([]);
  expect(openAfter(...waits, cancel, started("r"))).toEqual([{ runId: "r", state: "started" }]);
});

test("a parked run does not wait for a question that its `parked` entry does not list", () => {
  expect(openAfter(started("r"), asks("q"), answer("q"), parked())).toEqual([{ runId: "r", state: "answered" }]);
});

describe("the questions of a started run", () => {
  const calls: EntryDraft = message("a", {
    role: "assistant",
    content: null,
    toolCalls: [{ id: "c", name: "pay", arguments: "{}" }],
  });
  const asksInside = (question: string): EntryDraft =>
    ({ ...asks(question), asked: { innerRunId: "i" } }) as EntryDraft;
  const isAsking = (...drafts: readonly EntryDraft[]): boolean =>
    matchesRuns(openAfter(...drafts), { runs: "asking" }, () => false);

  test("is open until it is answered, before the run parks and after", () => {
    const both = [started("r"), asks("q"), asks("p")];
    expect(openAfter(...both)).toEqual([{ runId: "r", state: "started", questions: ["q", "p"] }]);
    expect(openAfter(...both, answer("q"))).toEqual([{ runId: "r", state: "started", questions: ["p"] }]);
    expect(openAfter(...both, answer("q"), answer("p"))).toEqual([{ runId: "r", state: "started" }]);
    expect([isAsking(started("r")), isAsking(...both), isAsking(...both, parked("q", "p"))]).toEqual([
      false,
      true,
      true,
    ]);
    expect(isAsking(...both, answer("q"), answer("p"))).toBe(false);
  });

  test("survives the next claim of the run, unless it belongs to a run inside its tools", () => {
    const inside = [started("r"), asks("q"), asksInside("i")];
    expect(openAfter(...inside)).toEqual([{ runId: "r", state: "started", questions: ["q"], innerQuestions: ["i"] }]);
    expect(openAfter(...inside, answer("i"))).toEqual([{ runId: "r", state: "started", questions: ["q"] }]);
    expect(openAfter(...inside, started("r"))).toEqual([{ runId: "r", state: "started", claims: 2, questions: ["q"] }]);
    expect(openAfter(started("r"), asks("q"), asks("p"), parked("q", "p"), answer("p"), started("r"))).toEqual([
      { runId: "r", state: "started", questions: ["q"] },
    ]);
  });

  test("ends with the run, and with the run's next answer that calls tools", () => {
    expect(openAfter(started("r"), asks("q"), { type: "run", runId: "r", phase: "failed" })).toEqual([]);
    expect(openAfter(started("r"), asks("q"), message("m", user("x")))).toMatchObject([{ questions: ["q"] }]);
    expect(openAfter(started("r"), asks("q"), asksInside("i"), calls)).toEqual([{ runId: "r", state: "started" }]);
  });
});

describe("the next run", () => {
  const next = (...drafts: readonly EntryDraft[]): string | null => nextRun(openAfter(...drafts), NOW)?.runId ?? null;

  test("is the first requested one that is due", () => {
    expect(next(request("later", "2030-01-01T00:00:00.001Z"), request("a"), request("b"))).toBe("a");
    expect(next(request("now", NOW))).toBe("now");
    expect(next(request("later", "2030-01-01T00:00:00.001Z"))).toBe(null);
    expect(next()).toBe(null);
  });

  test("is the started run before all requested ones", () => {
    expect(next(request("a"), started("r"))).toBe("r");
    expect(next(request("a"), started("r"), asks("q"), parked("q"), answer("q"))).toBe("r");
  });

  test("is none while a run waits for an answer, until its question expires", () => {
    const waits = [request("a"), started("r"), asks("q")];
    expect(next(...waits, parked("q"))).toBe(null);
    expect(next(...waits, { ...parked("q"), expiresAt: "2030-01-01T00:00:00.001Z" } as EntryDraft)).toBe(null);
    expect(next(...waits, { ...parked("q"), expiresAt: NOW } as EntryDraft)).toBe("r");
  });
});

test("the index contains the earliest time at which something must be done", () => {
  expect(runsIndexOf(openAfter(started("r")))).toEqual({ requested: false, started: true, parked: false, due: null });
  expect(runsIndexOf(openAfter(request("a", NOW), request("b", "2029-01-01T00:00:00.000Z"))).due).toBe(
    "2029-01-01T00:00:00.000Z",
  );
  expect(runsIndexOf(openAfter(request("a", NOW), request("b"))).due).toBe("");
  expect(runsIndexOf(openAfter(started("r"), asks("q"), parked("q"))).due).toBe(null);
});
