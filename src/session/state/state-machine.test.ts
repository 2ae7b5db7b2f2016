import { describe, expect, test } from "vitest";
import type { SessionStatus } from "../log/entry.ts";
import { SessionTransitionError } from "../errors.ts";
import { SessionStateMachine } from "./state-machine.ts";

const statuses: readonly SessionStatus[] = ["active", "suspended", "closed", "expired"];
const allowed: readonly string[] = ["active→suspended", "active→closed", "suspended→active", "suspended→closed"];
const pairs = statuses.flatMap((from) => statuses.map((to) => ({ from, to })));

describe("the session state machine", () => {
  test.for(pairs)("allows $from → $to exactly as in the table", ({ from, to }) => {
    const may = allowed.includes(`${from}→${to}`);
    expect(SessionStateMachine.canTransition(from, to)).toBe(may);
    const validate = () => SessionStateMachine.validate("s", from, to);
    if (may) expect(validate()).toBeUndefined();
    else expect(validate).toThrow(SessionTransitionError);
  });

  test("refuses with an error that names the session and both statuses", () => {
    expect(() => SessionStateMachine.validate("refund", "closed", "active")).toThrow(
      expect.objectContaining({
        code: "TRANSITION",
        sessionId: "refund",
        from: "closed",
        to: "active",
        message: "Session refund cannot change its status from closed to active.",
      }),
    );
  });

  test("has closed and expired as its only final statuses", () => {
    expect(statuses.filter((status) => SessionStateMachine.isTerminal(status))).toEqual(["closed", "expired"]);
  });

  test.for(["", "paused", "constructor", "__proto__", "toString"])("allows no transition from or to %j", (text) => {
    const unknown = text as SessionStatus;
    expect(SessionStateMachine.isTerminal(unknown)).toBe(false);
    expect(SessionStateMachine.canTransition(unknown, "active")).toBe(false);
    expect(SessionStateMachine.canTransition("active", unknown)).toBe(false);
    expect(() => SessionStateMachine.validate("s", unknown, "active")).toThrow(SessionTransitionError);
  });
});
