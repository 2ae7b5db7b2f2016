import { expect } from "vitest";
import { entriesOf, eventsOf, type LifecycleCase, outcomesOf, refusal } from "./lifecycle-case.ts";

const hostile = JSON.parse('{"a":{"__proto__":{"admin":true}}}') as object;

/** Creating sessions and adding turns. */
export const turnCases: readonly LifecycleCase[] = [
  {
    name: "accepts exactly as many sessions as a user may have, also for concurrent calls",
    async run({ store, manager }) {
      const desk = manager({ config: { maxSessionsPerUser: 3 } });
      const events = eventsOf(desk);
      const creates = Array.from({ length: 10 }, () => desk.create({ userId: "ann" }));
      expect(await outcomesOf(creates)).toEqual({ ok: 3, CAPACITY: 7 });
      expect(await store.count({ userId: "ann" })).toBe(3);
      expect(events.map(({ type }) => type)).toEqual(["created", "created", "created"]);
      await desk.create({ userId: "bob" });
      const [open] = (await desk.list({ userId: "ann" })).items;
      await desk.suspend(open?.header.id as string);
      await expect(desk.create({ userId: "ann" })).rejects.toMatchObject({ code: "CAPACITY", limit: 3 });
      await desk.close(open?.header.id as string);
      await desk.create({ userId: "ann" });
    },
  },
  {
    name: "does not count expired sessions against their user, whether or not the expiry is recorded",
    async run({ store, manager, advance }) {
      const desk = manager({ config: { maxSessionsPerUser: 3, sessionTtl: 60 } });
      for (const id of ["a", "b", "c"]) await desk.create({ userId: "ann", id });
      advance(61);
      const events = eventsOf(desk);
      await desk.create({ userId: "ann", id: "d" });
      expect(events.map(({ type }) => type)).toEqual([
        ...["expired", "closed", "expired", "closed", "expired", "closed"],
        "created",
      ]);
      expect(await store.count({ userId: "ann", status: "expired" })).toBe(3);
    },
  },
  {
    name: "creates an active, empty session with the given fields",
    async run({ manager }) {
      const desk = manager({ config: { defaultSystemPrompt: "Be kind." } });
      const state = await desk.create({ userId: "user:ann", id: "s-1", metadata: { plan: "pro" }, cwd: "/desk" });
      expect(state).toMatchObject({
        ...{ sessionId: "s-1", userId: "user:ann", status: "active", turns: [], turnCount: 0 },
        ...{ metadata: { plan: "pro" }, systemPrompt: "Be kind.", totalTokens: 0, checkpointId: null },
      });
      expect(await desk.getState("s-1")).toEqual(state);
      expect(Object.isFrozen(state)).toBe(true);
      expect(await desk.create({ userId: "ann", systemPrompt: null })).toMatchObject({
        systemPrompt: null,
        version: 0,
      });
    },
  },
  {
    name: "refuses an invalid session, and creates none",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "taken" });
      const code = async (init: object, options: object = {}) =>
        (await refusal(store, () => desk.create(init as { userId: string }, options))).code;
      expect(await code({})).toBe("INVALID_ID");
      expect(await code({ userId: "" })).toBe("INVALID_ID");
      expect(await code({ userId: "ann", id: "../x" })).toBe("INVALID_ID");
      expect(await code({ userId: "ann", id: "taken" })).toBe("SESSION_EXISTS");
      expect(await code({ userId: "ann", metadata: hostile })).toBe("INVALID_VALUE");
      expect(await code({ userId: "ann", metadata: { call: () => 1 } })).toBe("INVALID_VALUE");
      expect(await code({ userId: "ann", metadata: { text: "x".repeat(300_000) } })).toBe("TOO_LARGE");
      expect(await code({ userId: "ann" }, { actor: "bob" })).toBe("INVALID_OPTION");
      // A user cannot find out whether another user's session has an id.
      expect(await code({ userId: "bob", id: "taken" }, { actor: "bob" })).toBe("INVALID_OPTION");
      expect(await code({ userId: "bob", id: "free" }, { actor: "bob" })).toBe("INVALID_OPTION");
    },
  },
  {
    name: "keeps all of many concurrent turns, in one path, with exact totals",
    async run({ store, manager }) {
      const desk = manager({ config: { autoCheckpointInterval: 10 } });
      const events = eventsOf(desk);
      await desk.create({ userId: "ann", id: "s" });
      const turns = Array.from({ length: 50 }, (_, i) =>
        desk.addTurn("s", { role: "assistant", content: `turn ${i}`, tokensUsed: i, cost: 0.25, turnId: `t${i}` }),
      );
      expect(await outcomesOf(turns)).toEqual({ ok: 50 });
      const state = await desk.getState("s");
      expect(state).toMatchObject({ turnCount: 50, totalTokens: 1225, totalCost: 12.5, version: 50 });
      expect(state?.turns.map(({ turnId }) => turnId).sort()).toEqual(
        Array.from({ length: 50 }, (_, i) => `t${i}`).sort(),
      );
      const entries = await entriesOf(store, "s");
      expect(entries.map(({ parentId }) => parentId)).toEqual([null, ...entries.slice(0, -1).map(({ id }) => id)]);
      expect(events.filter(({ type }) => type === "turnAdded")).toHaveLength(50);
      const checkpoints = await store.listCheckpoints("s");
      expect(checkpoints.map(({ version }) => version).sort((a, b) => a - b)).toEqual([10, 20, 30, 40, 50]);
      for (const { version, leafId } of checkpoints) expect(leafId).toBe(entries[version - 1]?.id);
    },
  },
  {
    name: "stores all fields of a turn, and accepts a turn that was read from a session",
    async run({ manager }) {
      const desk = manager();
      const call = { id: "c1", name: "find_order", arguments: "{}" };
      for (const id of ["s", "copy"]) await desk.create({ userId: "ann", id });
      await desk.addTurn("s", { role: "system", content: "Be brief." });
      await desk.addTurn("s", {
        role: "user",
        content: [{ type: "text", text: "Where is it?" }],
        metadata: { channel: "mail" },
      });
      const usage = { inputTokens: 3, outputTokens: 4, totalTokens: 7 };
      await desk.addTurn("s", {
        ...{ role: "assistant", content: null, toolCalls: [call], provider: "p", model: "m", usage, cost: 0.5 },
        ...{ agent: "clerk", stopReason: "tool_calls", timestamp: "2030-01-02T03:04:05.678Z" },
      });
      await desk.addTurn("s", { role: "tool", content: "no", toolCallId: "c1", toolName: "find_order", isError: true });
      const turns = (await desk.getState("s"))?.turns ?? [];
      for (const turn of turns) await desk.addTurn("copy", turn);
      expect((await desk.getState("copy"))?.turns).toEqual(turns);
      expect(turns[1]).toMatchObject({
        content: [{ type: "text", text: "Where is it?" }],
        metadata: { channel: "mail" },
      });
      expect(turns[2]).toMatchObject({
        toolCalls: [call],
        usage,
        tokensUsed: 7,
        cost: 0.5,
        agent: "clerk",
        model: "m",
      });
      expect(turns[2]?.timestamp).toBe("2030-01-02T03:04:05.678Z");
      expect(turns[3]).toMatchObject({ toolCallId: "c1", toolName: "find_order", isError: true });
    },
  },
  {
    name: "treats a repeated turn id as the same turn, also if the session was closed in between",
    async run({ manager }) {
      const desk = manager({ config: { autoCheckpointInterval: 1 } });
      const remembered: string[] = [];
      const noting = manager({ memory: { add: ({ turn }) => remembered.push(turn.turnId) } });
      await desk.create({ userId: "ann", id: "s" });
      const turn = { role: "user", content: "hello", turnId: "t" } as const;
      await noting.addTurn("s", turn);
      const events = eventsOf(desk);
      await desk.addTurn("s", turn);
      await noting.addTurn("s", turn);
      await expect(desk.addTurn("s", { ...turn, content: "bye" })).rejects.toMatchObject({ code: "ENTRY_EXISTS" });
      await desk.close("s");
      await desk.addTurn("s", turn);
      expect(events.map(({ type }) => type)).toEqual(["closed"]);
      expect(remembered).toEqual(["t"]);
      expect((await desk.getState("s"))?.turnCount).toBe(1);
    },
  },
  {
    name: "refuses a turn beyond the limit, also for concurrent calls",
    async run({ store, manager }) {
      const desk = manager({ config: { maxTurnsPerSession: 5 } });
      await desk.create({ userId: "ann", id: "s" });
      const turns = Array.from({ length: 9 }, () => desk.addTurn("s", { role: "user", content: "x" }));
      expect(await outcomesOf(turns)).toEqual({ ok: 5, CAPACITY: 4 });
      const error = await refusal(store, () => desk.addTurn("s", { role: "user", content: "x" }));
      expect(error).toMatchObject({ code: "CAPACITY", limit: 5 });
      const { sessionId: branchId } = await desk.fork("s", "shorter", { at: null });
      await desk.addTurn(branchId, { role: "user", content: "one more" });
      const merge = await refusal(store, () => desk.merge("s", branchId));
      expect(merge).toMatchObject({ code: "CAPACITY", limit: 5 });
    },
  },
  {
    name: "refuses an invalid turn with a typed error, and writes nothing",
    async run({ store, manager }) {
      const desk = manager();
      await desk.create({ userId: "ann", id: "s" });
      const code = async (turn: unknown) =>
        (await refusal(store, () => desk.addTurn("s", turn as { role: "user"; content: string }))).code;
      const said = { role: "user", content: "x" };
      const invalid: unknown[] = [
        ...[null, "hello", [], { role: "user" }, { content: "x" }, { role: "robot", content: "x" }],
        ...[
          { role: "constructor", content: "x" },
          { ...said, content: 7 },
          { ...said, content: null },
        ],
        ...[
          { ...said, metadata: "x" },
          { ...said, tokens: 5 },
          { ...said, tokensUsed: 5 },
          { ...said, cost: 1 },
        ],
        ...[
          { ...said, timestamp: "yesterday" },
          { ...said, toolCalls: [] },
          { role: "tool", content: "x" },
        ],
        ...[-1, Number.NaN, Number.POSITIVE_INFINITY, "5"].flatMap((amount) => [
          { role: "assistant", content: "x", tokensUsed: amount },
          { role: "assistant", content: "x", cost: amount },
        ]),
        { role: "assistant", content: "x", usage: { totalTokens: 5 } },
        { role: "assistant", content: "x", tokensUsed: 4, usage: { inputTokens: 1, outputTokens: 4, totalTokens: 5 } },
      ];
      for (const turn of invalid) expect({ turn, code: await code(turn) }).toEqual({ turn, code: "INVALID_ENTRY" });
      for (const metadata of [hostile, { at: new Date() }, { n: 1n }, { f: () => 1 }]) {
        expect(await code({ ...said, metadata })).toBe("INVALID_VALUE");
      }
      const typo = { ...said, tokens: 5 };
      expect((await refusal(store, () => desk.addTurn("s", typo as never))).message).toContain(
        "put your own in metadata",
      );
      expect(await code({ ...said, turnId: "" })).toBe("INVALID_ID");
      expect(await code({ ...said, content: "x".repeat(10 * 1024 * 1024) })).toBe("TOO_LARGE");
    },
  },
];
