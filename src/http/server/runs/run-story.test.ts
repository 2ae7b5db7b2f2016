import { describe, expect, test } from "vitest";
import type { Entry, EntryDraft } from "../../../session/log/entry.ts";
import { answerIdOf, requestIdOf } from "../../../session/log/open-runs.ts";
import type { WireRunEvent } from "../../run-wire.ts";
import { RunStory } from "./run-story.ts";

const ABOUT = { sessionId: "s", agentsOf: (group: string) => (group === "crew" ? ["ann", "ben"] : []) };

/** The story of run `r`, and the events that the entries made. */
function tell(drafts: readonly EntryDraft[]): { story: RunStory; events: WireRunEvent[] } {
  const story = new RunStory("r", ABOUT);
  const events = drafts.flatMap((draft, seq) => {
    const entry = { id: `e${seq}`, parentId: null, timestamp: `t${seq}`, seq, ...draft } as Entry;
    return story.take(entry) ?? [];
  });
  return { story, events };
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
const types = (events: readonly WireRunEvent[]): string[] => events.map(({ type }) => type);

describe("the story of a run", () => {
  test("counts rounds from each claim on, and tells each start with its claim", () => {
    const { events } = tell([request(), started(1), said("a"), said("b"), started(7), said("c"), ended("finished")]);
    expect(events).toMatchObject([
      { type: "run-started", claim: 1, runId: "r" },
      { type: "round-finished", round: 1 },
      { type: "round-finished", round: 2 },
      { type: "run-started", claim: 7 },
      { type: "round-finished", round: 1 },
      { type: "run-finished", truncated: false, usage: null },
    ]);
  });

  test("is nobody else's: what others say, what came from outside, other runs and what follows its end make no event", () => {
    const other = { type: "run", runId: "x", phase: "failed" } as const;
    const late = { type: "message", message: { role: "assistant", content: "late" } } as const;
    const { events, story } = tell([
      said("before"),
      ...[request(), other, started(), said("by bob", { by: "bob" }), said("from a file", { inherited: true })],
      ...[said("mine"), ended("finished"), late, ended("failed")],
    ]);
    expect(types(events)).toEqual(["run-started", "round-finished", "run-finished"]);
    expect(story).toMatchObject({ end: "finished", startedAt: "t3", endedAt: "t7" });
  });

  test("says where tools act only once: a second start with a sandbox is no takeover", () => {
    const noted = { ...started(), sandbox: { backend: "local", spec: {}, handleId: null } } as EntryDraft;
    expect(types(tell([request(), started(), noted]).events)).toEqual(["run-started"]);
  });

  test("has the questions without an answer, says when they expire, and shows them again where it parks", () => {
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
    const { story, events } = tell([request(), started(), said("a"), asks("q"), parked]);
    const approval = { ...ASKED, callId: "c", question: "q" };
    expect(events.slice(2)).toEqual([
      { type: "approval-required", round: 1, approval, runId: "r" },
      { type: "run-parked", questions: [approval], expiresAt: "x", runId: "r" },
    ]);
    expect([story.state, story.questions]).toEqual(["parked", [{ ...approval, askedAt: "t3", expiresAt: "x" }]]);
    const after = tell([request(), started(), said("a"), asks("q"), parked, answer as EntryDraft]).story;
    expect([after.state, after.questions]).toEqual(["answered", []]);
  });

  test("ends with a cancel or the session's end while nobody has it, and not while someone has", () => {
    const cancel = { type: "cancel", runId: "r" } as const;
    const closed = { type: "status", status: "closed" } as const;
    for (const end of [cancel, closed]) {
      const { story, events } = tell([request(), end]);
      expect([story.end, types(events)]).toEqual(["cancelled", ["run-failed"]]);
      expect(tell([request(), started(), end]).story.end).toBe(null);
    }
  });

  test("tells how it failed by the rules of problems, with details where all of it is told", () => {
    const last = (error: unknown) => tell([request(), started(), ended("failed", { error })]).events.at(-1);
    const known = { name: "ModelError", code: "MODEL_FAILED", message: "Too busy.", details: { kind: "overloaded" } };
    expect(last(known)).toMatchObject({
      error: { code: "MODEL_FAILED", message: "Too busy.", details: known.details },
    });
    const store = { code: "STORE_FAILED", message: "Disk /srv is full.", details: { path: "/srv" } };
    expect(JSON.stringify(last(store))).not.toContain("/srv");
    expect(last({ name: "Error", message: "sk-123" })).toMatchObject({ error: { code: "INTERNAL" } });
    expect(last("The run was interrupted.")).toMatchObject({ error: { message: "The run was interrupted." } });
  });

  test("of a group tells its agents' turns and its own end", () => {
    const marked = (kind: string, more: object = {}): EntryDraft =>
      ({
        type: "message",
        message: { role: "assistant", content: "Hm.", agent: "ann", metadata: { group: { kind } }, ...more },
      }) as EntryDraft;
    const custom = (data: object): EntryDraft => ({ type: "custom", customType: "group", data }) as EntryDraft;
    const question = marked("message", { role: "user", agent: undefined });
    const { events } = tell([
      ...[request({ group: "crew" }), question, started(), marked("work"), asks("q"), marked("turn")],
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
