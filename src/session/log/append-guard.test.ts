import { describe, expect, test } from "vitest";
import { assistant, calls, message, result, SampleLog, user } from "../../../test/sample-log.ts";
import { statusError } from "./append-guard.ts";
import type { EntryDraft } from "./entry.ts";
import { OPEN_RUNS_MAX } from "../limits.ts";

function abc(): SampleLog {
  return new SampleLog().say({ a: user("1"), b: user("2"), c: user("3") });
}

describe("a guard", () => {
  const turn = [message("d", user("4"))];

  test("accepts a session with the required status, or with one of several", () => {
    const log = abc();
    log.append([{ type: "status", status: "suspended" }]);
    expect(log.plan(turn, { guard: { status: "suspended" } }).added).toHaveLength(1);
    expect(log.plan(turn, { guard: { status: ["active", "suspended"] } }).added).toHaveLength(1);
    expect(log.plan(turn, { guard: {} }).added).toHaveLength(1);
  });

  test.for([
    ["suspended", "SESSION_SUSPENDED"],
    ["expired", "SESSION_EXPIRED"],
    ["closed", "SESSION_CLOSED"],
  ] as const)("refuses a session that is %s with its own error", ([status, code]) => {
    const log = abc();
    log.append([{ type: "status", status }]);
    expect(() => log.plan(turn, { guard: { status: "active" } })).toThrow(
      expect.objectContaining({ code, sessionId: "sample" }),
    );
  });

  test("refuses an active session if another status is required", () => {
    expect(() => abc().plan(turn, { guard: { status: ["suspended", "closed"] } })).toThrow(
      expect.objectContaining({ code: "TRANSITION" }),
    );
    expect(statusError("s", "active").message).toContain("is active");
  });

  test("counts the turns of the active path after the append", () => {
    const log = abc();
    expect(log.plan(turn, { guard: { maxTurns: 4 } }).added).toHaveLength(1);
    expect(() => log.plan(turn, { guard: { maxTurns: 3 } })).toThrow(
      expect.objectContaining({ name: "SessionCapacityError", code: "CAPACITY", limit: 3 }),
    );
    expect(() => log.plan([...turn, message("e", user("5"))], { guard: { maxTurns: 4 } })).toThrow(
      expect.objectContaining({ code: "CAPACITY" }),
    );
  });

  test("does not refuse the turns of a started run, which had room when it began them, but refuses its input", () => {
    const log = abc();
    const guard = { maxTurns: 3 };
    const started = { type: "run", runId: "r", phase: "started" } as const;
    const refused = expect.objectContaining({ code: "CAPACITY" });
    expect(() => log.plan([...turn, started], { guard, run: "r" })).toThrow(refused);
    log.append([started]);
    expect(log.plan(turn, { guard, run: "r" }).added).toHaveLength(1);
    for (const run of [undefined, "another"])
      expect(() => log.plan(turn, { guard, ...(run !== undefined && { run }) })).toThrow(refused);
    log.append([{ type: "run_parked", runId: "r", questions: [] }]);
    expect(() => log.plan(turn, { guard, run: "r" })).toThrow(refused);
  });

  test("does not count turns of other branches", () => {
    const log = abc();
    log.append([{ type: "leaf", targetId: "a" }]);
    expect(log.plan(turn, { guard: { maxTurns: 2 } }).added).toHaveLength(1);
  });

  test("accepts facts when the limit of turns is reached", () => {
    expect(
      abc().plan(
        [
          { type: "session_info", name: "n" },
          { type: "label", targetId: "a", label: "x" },
        ],
        { guard: { maxTurns: 1 } },
      ).added,
    ).toHaveLength(2);
  });

  test("on a lease holds only for the live token", () => {
    const log = abc();
    expect(log.plan(turn, { guard: { leaseToken: 7 } }, 7).added).toHaveLength(1);
    for (const live of [8, 6, null]) {
      expect(() => log.plan(turn, { guard: { leaseToken: 7 } }, live)).toThrow(
        expect.objectContaining({ name: "LeaseLostError", code: "LEASE_LOST", token: 7 }),
      );
    }
  });

  test("is not checked for an exact retry", () => {
    const log = abc();
    log.append([{ type: "status", status: "closed" }]);
    expect(
      log.plan([message("a", user("1"))], { guard: { status: "active", maxTurns: 0, leaseToken: 1 } }).added,
    ).toEqual([]);
  });
});

describe("while a run is open", () => {
  const started = (runId: string): EntryDraft => ({ type: "run", runId, phase: "started" });
  const ofTheRun: Readonly<Record<string, EntryDraft>> = {
    "a result of a call": message("x", result("c1")),
    "an answer with calls": message("x", calls("c2")),
    "a compaction": { type: "compaction", id: "x", summary: "s", firstKeptEntryId: "a", tokensBefore: 1 },
    "a prune": { type: "prune", id: "x", targetId: "a" },
  };

  test.each(Object.entries(ofTheRun))("%s is accepted from its holder only", (_, draft) => {
    const log = abc();
    expect(log.plan([draft]).added).toHaveLength(1);
    log.append([started("r1")]);
    expect(() => log.plan([draft])).toThrow(
      expect.objectContaining({
        code: "SESSION_BUSY",
        message: expect.stringMatching(/^Run r1 of session sample is open.*recover it, or record its end/),
      }),
    );
    expect(log.plan([draft], { guard: { leaseToken: 7 } }, 7).added).toHaveLength(1);
    expect(log.plan([draft], { guard: { holds: true } }).added).toHaveLength(1);
    expect(() => log.plan([draft], { guard: { leaseToken: 7 } }, 8)).toThrow(
      expect.objectContaining({ code: "LEASE_LOST" }),
    );
    // A copy of another log is that log's, and a repetition adds nothing.
    expect(log.plan([{ ...draft, parentId: null }], { verbatim: true }).added).toHaveLength(1);
    log.append([draft], { guard: { holds: true } });
    expect(log.plan([draft]).added).toEqual([]);
    log.append([{ type: "run", runId: "r1", phase: "failed" }]);
    expect(log.plan([{ ...draft, id: "y" }]).added).toHaveLength(1);
  });

  test("other writers can still append user messages, set variables, move the leaf and end the run", () => {
    const log = abc();
    log.append([started("r1")]);
    log.append([message("d", user("4")), message("e", assistant("5"))]);
    log.append([{ type: "variables", set: { a: 1 }, unset: [] }]);
    log.append([
      { type: "leaf", targetId: "a" },
      { type: "run", runId: "r1", phase: "failed" },
    ]);
    expect(log.head.openRuns).toEqual([]);
  });

  test("a run beyond the limit is refused, and no open run is dropped", () => {
    const log = abc();
    const runs = Array.from({ length: OPEN_RUNS_MAX }, (_, index) => `r${index}`);
    log.append(runs.map(started));
    expect(() => log.plan([started("one more")])).toThrow(
      expect.objectContaining({ code: "CAPACITY", limit: OPEN_RUNS_MAX }),
    );
    // One that is open already may say where its tools act.
    expect(log.plan([started("r3")]).added).toHaveLength(1);
    expect(log.head.openRuns.map(({ runId }) => runId)).toEqual(runs);
    log.append([{ type: "run", runId: "r0", phase: "failed" }, started("one more")]);
    expect(log.head.openRuns.map(({ runId }) => runId)).toEqual([...runs.slice(1), "one more"]);
  });
});
