import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { Session } from "./session.ts";
import { SessionRegistry, sessionRegistry } from "./session-registry.ts";
import { Transcript } from "./transcript.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Collects until a condition holds; the callbacks of a collection come some turns after it. */
async function collectUntil(holds: () => boolean): Promise<void> {
  for (let round = 0; round < 100 && !holds(); round++) {
    // A weak reference that was followed keeps its object until the turn ends.
    await turn();
    collectGarbage();
    await turn();
  }
}

/** Registers sessions that no other code refers to. */
function registerMany(registry: SessionRegistry, count: number, finish: boolean): void {
  for (let i = 0; i < count; i++) {
    const session = Session.of(Transcript.empty, { id: `session-${i}` });
    registry.register(session);
    if (finish) registry.finish(session.id);
  }
}

describe("a registry of sessions", () => {
  test("finds registered sessions, and lists the unfinished ones in the order of registration", () => {
    const registry = new SessionRegistry();
    const [a, b, c] = [Session.fromUserMessage("a"), Session.fromUserMessage("b"), Session.fromUserMessage("c")];
    for (const session of [b, a, c]) registry.register(session);
    expect(registry.active()).toEqual([b, a, c]);
    expect(registry.finish(a.id)).toBe(true);
    expect(registry.active()).toEqual([b, c]);
    expect([registry.get(a.id), registry.get(b.id), registry.get("nobody")]).toEqual([a, b, undefined]);
    expect([registry.finish(a.id), registry.finish("nobody")]).toEqual([false, false]);
  });

  test("holds running sessions, and drops finished ones without other references", async () => {
    const registry = new SessionRegistry();
    const kept = Session.fromUserMessage("kept");
    registry.register(kept);
    registry.finish(kept.id);
    registerMany(registry, 50, true);
    const running = new SessionRegistry();
    registerMany(running, 50, false);
    expect(registry.size).toBe(51);
    await collectUntil(() => registry.size === 1);
    expect(registry.size).toBe(1);
    expect(registry.get("session-0")).toBeUndefined();
    expect(registry.get(kept.id)).toBe(kept);
    expect(running.active()).toHaveLength(50);
    expect(running.get("session-7")?.id).toBe("session-7");
  });

  test("replaces a finished session by a new one with its id, and keeps the new one when the old is garbage collected", async () => {
    const registry = new SessionRegistry();
    registerMany(registry, 2, true);
    const resumed = Session.of(Transcript.empty, { id: "session-0" });
    registry.register(resumed);
    await collectUntil(() => registry.size === 1);
    expect([registry.get("session-0"), registry.active()]).toEqual([resumed, [resumed]]);
    expect(registry.finish("session-0")).toBe(true);
    expect(registry.get("session-0")).toBe(resumed);
  });

  test("is shared by the whole process", () => {
    const session = Session.fromUserMessage("x");
    sessionRegistry.register(session);
    expect(sessionRegistry.active()).toContain(session);
    sessionRegistry.finish(session.id);
    expect(sessionRegistry.active()).not.toContain(session);
  });
});
