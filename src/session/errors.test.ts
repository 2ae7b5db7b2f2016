import { describe, expect, test } from "vitest";
import * as errors from "./errors.ts";
import { SessionError, show } from "./errors.ts";

/** Of each class an example, its code, and the fields it must keep. */
const EXAMPLES: Record<string, [SessionError, string, object]> = {
  SessionError: [new SessionError("READ_ONLY", "No."), "READ_ONLY", { message: "No." }],
  SessionNotFoundError: [new errors.SessionNotFoundError("s-4711"), "SESSION_NOT_FOUND", { sessionId: "s-4711" }],
  SessionClosedError: [new errors.SessionClosedError("s-4711"), "SESSION_CLOSED", { sessionId: "s-4711" }],
  SessionExpiredError: [new errors.SessionExpiredError("s-4711"), "SESSION_EXPIRED", { sessionId: "s-4711" }],
  SessionSuspendedError: [new errors.SessionSuspendedError("s-4711"), "SESSION_SUSPENDED", { sessionId: "s-4711" }],
  SessionTransitionError: [
    new errors.SessionTransitionError("s-4711", "closed", "active"),
    "TRANSITION",
    { sessionId: "s-4711", from: "closed", to: "active" },
  ],
  SessionCapacityError: [new errors.SessionCapacityError("forks", 3), "CAPACITY", { what: "forks", limit: 3 }],
  BudgetExceededError: [
    new errors.BudgetExceededError("ann", {
      window: "1d",
      unit: "cost",
      limit: 2,
      spent: 2.5,
      reserved: 0,
      warnAt: null,
      movesOnAt: "2026-01-02T10:00:00.000Z",
    }),
    "BUDGET_EXCEEDED",
    { userId: "ann" },
  ],
  SessionConflictError: [
    new errors.SessionConflictError("s-4711", 1, 2),
    "CONFLICT",
    { sessionId: "s-4711", expected: 1, actual: 2 },
  ],
  SessionBusyError: [
    new errors.SessionBusyError("s-4711", "run r"),
    "SESSION_BUSY",
    { sessionId: "s-4711", holder: "run r" },
  ],
  LeaseLostError: [new errors.LeaseLostError("s-4711", 7), "LEASE_LOST", { sessionId: "s-4711", token: 7 }],
  SessionDamagedError: [
    new errors.SessionDamagedError({ path: "/f", line: 2, offset: 40, reason: "not JSON", cause: "why" }),
    "DAMAGED",
    { path: "/f", line: 2, offset: 40, reason: "not JSON", cause: "why" },
  ],
  StoreUnreachableError: [
    new errors.StoreUnreachableError("The server does not answer.", { cause: "why" }),
    "STORE_FAILED",
    { message: "The server does not answer.", cause: "why" },
  ],
  LineageError: [
    new errors.LineageError("s-4711", "Session s-4711 descends from itself."),
    "LINEAGE",
    { sessionId: "s-4711", message: "Session s-4711 descends from itself." },
  ],
  CheckpointNotFoundError: [new errors.CheckpointNotFoundError("c-6"), "CHECKPOINT_NOT_FOUND", { checkpointId: "c-6" }],
  UnknownEntryError: [
    new errors.UnknownEntryError("s-4711", "e-5"),
    "UNKNOWN_ENTRY",
    { sessionId: "s-4711", entryId: "e-5" },
  ],
};

describe("the errors", () => {
  test("each have an example in this file", () => {
    const classes = Object.entries(errors).filter(
      ([, value]) => value === SessionError || value.prototype instanceof SessionError,
    );
    expect(classes.map(([name]) => name).sort()).toEqual(Object.keys(EXAMPLES).sort());
  });

  test.for(Object.entries(EXAMPLES))(
    "%s has its own name and code, and keeps its fields",
    ([name, [error, code, fields]]) => {
      expect(error).toBeInstanceOf(SessionError);
      expect(error).toBeInstanceOf(Error);
      expect(error).toMatchObject({ name, code, ...fields });
      expect(String(error).startsWith(`${name}: `)).toBe(true);
      expect(error.stack).toContain("errors.test.ts");
    },
  );

  test.for(Object.entries(EXAMPLES))(
    "%s says in one sentence what is the matter, naming the thing",
    ([, [error, , fields]]) => {
      expect(error.message).toMatch(/^[^\n]+\.$/);
      for (const value of Object.values(fields)) {
        if (value !== 40 && value !== "why") expect(error.message).toContain(String(value));
      }
    },
  );

  test("keep the cause they are given", () => {
    const cause = new Error("disk full");
    expect(new SessionError("STORE_FAILED", "The store failed.", { cause }).cause).toBe(cause);
  });
});

describe("show", () => {
  test.for<[unknown, string]>([
    ["text", '"text"'],
    ["a\n\u001b", '"a\\n\\u001b"'],
    ["x".repeat(81), `"${"x".repeat(80)}…"`],
    ["x".repeat(80), `"${"x".repeat(80)}"`],
    [undefined, '"undefined"'],
    [null, '"null"'],
    [7, '"7"'],
    [{ toString: () => "secret" }, '"object"'],
    [[1, 2], '"object"'],
    [Symbol("s"), '"Symbol(s)"'],
    [10n, '"10"'],
  ])("quotes %s", ([value, text]) => {
    expect(show(value)).toBe(text);
  });
});
