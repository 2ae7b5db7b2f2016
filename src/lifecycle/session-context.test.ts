import { setImmediate } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import type { SessionState } from "../session/state/state.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { SessionContext } from "./session-context.ts";
import { SessionManager } from "./session-manager.ts";

let manager: SessionManager;
let context: SessionContext;
let state: SessionState;
beforeEach(async () => {
  manager = new SessionManager({ store: openMemoryStore(), config: { maxSessionsPerUser: 1000 } });
  context = new SessionContext(manager);
  state = await manager.create({ userId: "ann", id: "bound" });
});

const unbound = expect.objectContaining({ code: "NO_SESSION" });

test("has no session if none is bound, and the error says how to bind one", () => {
  expect(() => context.sessionId).toThrow(unbound);
  expect(() => context.state).toThrow(/SessionContext\.run/);
});

describe("run", () => {
  test("binds the session in all code that it runs, and not afterwards", async () => {
    const result = await context.run(state, async () => {
      await setImmediate();
      const later = new Promise<string>((resolve) => setTimeout(() => resolve(context.sessionId), 1));
      return [context.sessionId, context.state, await later];
    });
    expect(result).toEqual(["bound", state, "bound"]);
    expect(() => context.state).toThrow(unbound);
    expect(() =>
      context.run(state, () => {
        throw new Error("oops");
      }),
    ).toThrow("oops");
    expect(() => context.state).toThrow(unbound);
  });

  test("hides the outer session while another one is bound inside", async () => {
    const inner = await manager.create({ userId: "ann", id: "inner" });
    context.run(state, () => {
      expect(context.run(inner, () => context.sessionId)).toBe("inner");
      expect(context.sessionId).toBe("bound");
    });
  });
});

describe("bind", () => {
  test("binds from there on, and unbind restores the previous binding", async () => {
    const inner = await manager.create({ userId: "ann", id: "inner" });
    await context.run(null, async () => {
      const outer = context.bind(state);
      const token = context.bind(inner);
      expect(token.sessionId).toBe("inner");
      await setImmediate();
      expect(context.sessionId).toBe("inner");
      context.unbind(token);
      expect(context.sessionId).toBe("bound");
      context.unbind(outer);
      expect(() => context.sessionId).toThrow(unbound);
    });
  });

  test("ends everywhere with unbind, also in code that inherited it and in the surrounding code", async () => {
    let left: Promise<unknown> | undefined;
    const request = async (): Promise<void> => {
      const token = context.bind(state);
      await setImmediate();
      left = setImmediate()
        .then(setImmediate)
        .then(() => context.sessionId);
      context.unbind(token);
    };
    await request();
    expect(() => context.sessionId).toThrow(unbound);
    await expect(left).rejects.toMatchObject({ code: "NO_SESSION" });
  });
});

test("does not leak between 500 concurrent requests, bound either way", async () => {
  const states = await Promise.all(
    Array.from({ length: 500 }, (_, i) => manager.create({ userId: `user-${i % 7}`, id: `s${i}` })),
  );
  const request = async (own: SessionState, index: number): Promise<string[]> => {
    const seen: string[] = [];
    for (let step = 0; step < 5; step++) {
      await (index % (step + 2) === 0 ? setImmediate() : Promise.resolve());
      seen.push(context.sessionId);
      // Background code of the request, concurrent with the other requests.
      await Promise.all([setImmediate().then(() => seen.push(context.state.sessionId))]);
    }
    expect(context.state).toBe(own);
    return seen;
  };
  const results = await Promise.all(
    states.map((own, index) =>
      index % 2 === 0
        ? context.run(own, () => request(own, index))
        : setImmediate().then(async () => {
            const token = context.bind(own);
            try {
              return await request(own, index);
            } finally {
              context.unbind(token);
              expect(() => context.state).toThrow(unbound);
            }
          }),
    ),
  );
  for (const [index, seen] of results.entries()) expect(new Set(seen)).toEqual(new Set([`s${index}`]));
  expect(() => context.state).toThrow(unbound);
});

test("isolates two contexts", () => {
  const other = new SessionContext(manager);
  context.run(state, () => expect(() => other.sessionId).toThrow(unbound));
});

describe("getOrCreate", () => {
  test("returns the bound session, whatever user is given", async () => {
    expect(await context.run(state, () => context.getOrCreate("bob"))).toBe(state);
  });

  test("creates one session for a request, however often it is called, and binds it", async () => {
    await context.run(null, async () => {
      expect(() => context.state).toThrow(unbound);
      const [one, two] = await Promise.all([context.getOrCreate("bob"), context.getOrCreate("bob")]);
      expect(two).toBe(one);
      expect(one?.userId).toBe("bob");
      expect(context.state).toBe(one);
      expect(await context.getOrCreate("bob")).toBe(one);
    });
    expect(await manager.store.count({ userId: "bob" })).toBe(1);
  });

  test("creates a session outside of run, and can retry after a failure", async () => {
    expect((await context.getOrCreate("bob")).userId).toBe("bob");
    await context.run(null, async () => {
      await expect(context.getOrCreate("")).rejects.toMatchObject({ code: "INVALID_ID" });
      expect((await context.getOrCreate("bob")).userId).toBe("bob");
    });
    expect(await manager.store.count({ userId: "bob" })).toBe(2);
  });
});

describe("begin", () => {
  test("binds a session to all parts of a request, and unbinds it everywhere at its end", async () => {
    const request = context.begin(state, () => manager.create({ userId: "never" }));
    expect(() => context.sessionId).toThrow(unbound);
    const parts = [request.run(() => context.sessionId), await request.run(async () => context.sessionId)];
    expect(parts).toEqual(["bound", "bound"]);
    expect(await request.getOrCreate()).toBe(state);
    const left = request.run(() => setImmediate().then(() => context.sessionId));
    request.end();
    await expect(left).rejects.toMatchObject({ code: "NO_SESSION" });
    expect(() => request.run(() => context.sessionId)).toThrow(unbound);
    expect(await manager.store.count({ userId: "never" })).toBe(0);
  });

  test("creates one session with its own function, for every user and everywhere", async () => {
    const request = context.begin(null, () => manager.create({ userId: "caller" }));
    const inside = request.run(() => context.getOrCreate("bob"));
    const [one, two] = await Promise.all([inside, request.getOrCreate()]);
    expect(two).toBe(one);
    expect(one?.userId).toBe("caller");
    expect(request.run(() => context.state)).toBe(one);
    expect(await manager.store.count({ userId: "bob" })).toBe(0);
  });
});
