import { expect, test } from "vitest";
import { composerState } from "./composer-state.ts";

const catalogue = { agents: [{ name: "a", model: "m", tools: [] }], models: [], groups: [], hasPlace: false };
const active = { status: "active", running: null, openRuns: [] } as const;
const idle = { id: null };

test("starts a run if none is active, and sends a message to an active one", () => {
  expect(composerState(active, idle, catalogue, false, true)).toEqual({ can: "start", note: null });
  expect(composerState(active, { id: "r" }, catalogue, false, true)).toEqual({ can: "say" });
});

test.for([
  [{ ...active, status: "suspended" }, idle, catalogue, /suspended/],
  [{ ...active, status: "closed" }, idle, catalogue, /closed/],
  [{ ...active, running: { runId: "r" } }, idle, catalogue, /has this session/],
  [active, idle, { agents: [], models: [], groups: [], hasPlace: false }, /no agent/],
] as const)("gives the reason why nothing can be sent: %#", ([session, run, offered, reason]) => {
  expect(composerState(session, run, offered, false, true)).toMatchObject({
    can: "nothing",
    reason: expect.stringMatching(reason),
  });
});

test("sends nothing to an active group", () => {
  expect(composerState(active, { id: "r" }, catalogue, true, true)).toMatchObject({ can: "nothing" });
});

test("gives the reason if the user may not run agents", () => {
  for (const run of [idle, { id: "r" }]) {
    const state = composerState(active, run, catalogue, false, false);
    expect(state).toMatchObject({ can: "nothing", reason: expect.stringMatching(/not run agents/) });
  }
});

test("notes an open question, and leaves it to the server to refuse a message before its answer", () => {
  const parked = { ...active, openRuns: [{ runId: "r", state: "parked" }] } as const;
  expect(composerState(parked, idle, catalogue, false, true)).toEqual({
    can: "start",
    note: expect.stringMatching(/question waits/),
  });
});
