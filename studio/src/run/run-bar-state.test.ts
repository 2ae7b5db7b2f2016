import { expect, test } from "vitest";
import { barOf } from "./run-bar-state.ts";

const quiet = { asks: false, mayApprove: true, who: "clerk" };
const active = { status: "active", running: null } as const;
const open = (state: "requested" | "started" | "parked" | "answered", more: object = {}) => ({
  ...active,
  openRuns: [{ runId: "r", state, ...more }],
});

test("names the working agent, and offers to stop it", () => {
  const working = { ...open("started"), running: { runId: "r" } };
  expect(barOf(working, "r", quiet)).toMatchObject({ text: "clerk is working …", cancels: "r", goesOn: false });
  expect(barOf(working, "r", { ...quiet, asks: true })?.text).toMatch(/waits for your approval/);
  expect(barOf(open("requested"), "r", quiet)?.text).toMatch(/waits for its turn/);
});

test("names what a waiting run waits for", () => {
  expect(barOf(open("parked"), null, quiet)).toMatchObject({ warns: true, cancels: "r", goesOn: false });
  expect(barOf(open("parked"), null, { ...quiet, mayApprove: false })?.text).toMatch(/someone's approval/);
  expect(barOf(open("answered"), null, quiet)).toMatchObject({ goesOn: true });
  expect(barOf(open("requested"), null, quiet)).toMatchObject({ text: "A run waits for its turn.", cancels: "r" });
  const later = open("requested", { notBefore: "2030-01-01T00:00:00.000Z" });
  expect(barOf(later, null, quiet)?.text).toMatch(/starts at .*20(29|30)/);
});

test("offers to continue an interrupted run, but not a cancelled one", () => {
  expect(barOf(open("started"), null, quiet)).toMatchObject({ warns: true, goesOn: true, cancels: "r" });
  expect(barOf({ ...open("started"), status: "suspended" }, null, quiet)).toMatchObject({ goesOn: false });
  expect(barOf(open("started", { cancelled: true }), null, quiet)).toMatchObject({ goesOn: false, cancels: null });
});

test("is null if no run is open, or the session is closed", () => {
  expect(barOf({ ...active, openRuns: [] }, null, quiet)).toBeNull();
  expect(barOf({ ...open("started"), status: "closed" }, null, quiet)).toBeNull();
});
