import { expect, test } from "vitest";
import { collectWarnings } from "../../test/sample-run.ts";
import { type SessionEvent, SessionEvents } from "./session-events.ts";

const created: SessionEvent<"created"> = {
  type: "created",
  sessionId: "s",
  userId: "ann",
  at: "2030-01-01T00:00:00.000Z",
};

test("calls the listeners of a type, in order, until they unsubscribe", () => {
  const events = new SessionEvents();
  const heard: string[] = [];
  const first = events.on("created", ({ sessionId }) => heard.push(`first ${sessionId}`));
  events.on("created", () => heard.push("second"));
  events.on("resumed", () => heard.push("never"));
  events.emit(created);
  first();
  first();
  events.emit(created);
  expect(heard).toEqual(["first s", "second", "second"]);
});

test("lets the same function subscribe twice and unsubscribe once, also from inside", () => {
  const events = new SessionEvents();
  let heard = 0;
  const listener = (): void => {
    heard += 1;
    stop();
  };
  const stop = events.on("created", listener);
  events.on("created", listener);
  events.emit(created);
  expect(heard).toBe(2);
  events.emit(created);
  expect(heard).toBe(3);
});

test("emits a process warning for a failing listener, unless onError is given", async () => {
  const warnings = collectWarnings();
  const events = new SessionEvents();
  events.on("created", () => {
    throw new Error("no disk");
  });
  events.on("created", async () => Promise.reject(new Error("no network")));
  events.emit(created);
  await warnings.settled();
  expect(warnings.messages).toEqual([
    "The listener of session s failed: no disk",
    "The listener of session s failed: no network",
  ]);
  const failures: unknown[] = [];
  const quiet = new SessionEvents({ onError: (error, context) => failures.push([error, context]) });
  quiet.on("created", () => {
    throw "oops";
  });
  quiet.emit(created);
  expect(failures).toEqual([["oops", { during: "listener", sessionId: "s" }]]);
});
