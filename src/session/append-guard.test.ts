import { describe, expect, test } from "vitest";
import { message, SampleLog, user } from "../../test/sample-log.ts";
import { statusError } from "./append-plan.ts";

function abc(): SampleLog {
  return new SampleLog().say({ a: user("1"), b: user("2"), c: user("3") });
}

describe("a guard", () => {
  const turn = [message("d", user("4"))];

  test("lets through the status it names, or one of several", () => {
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

  test("refuses an active session where another status is asked for", () => {
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

  test("does not count turns of other branches", () => {
    const log = abc();
    log.append([{ type: "leaf", targetId: "a" }]);
    expect(log.plan(turn, { guard: { maxTurns: 2 } }).added).toHaveLength(1);
  });

  test("lets facts through when the turns are used up", () => {
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

  test("does not stand in the way of an exact retry", () => {
    const log = abc();
    log.append([{ type: "status", status: "closed" }]);
    expect(
      log.plan([message("a", user("1"))], { guard: { status: "active", maxTurns: 0, leaseToken: 1 } }).added,
    ).toEqual([]);
  });
});
