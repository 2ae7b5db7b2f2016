import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assistant, message, SampleLog, timeAt, user } from "../../../test/sample-log.ts";
import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { Entry, EntryOf } from "../log/entry.ts";
import { type SessionState, type SessionTurn, stateOf, turnOf } from "./state.ts";
import { NO_SETTINGS } from "../log/settings.ts";
import { StateDiff } from "./state-diff.ts";

describe("apply(old, compute(old, next))", () => {
  test("equals next for any two states, also through JSON, and does not change its inputs", () => {
    fc.assert(
      fc.property(anyState(), anyState(), (old, next) => {
        const [oldText, nextText] = [JSON.stringify(old), JSON.stringify(next)];
        const diff = StateDiff.compute(old, next);
        const diffText = JSON.stringify(diff);
        expect(StateDiff.apply(old, diff)).toEqual(next);
        expect(StateDiff.apply(old, JSON.parse(diffText) as StateDiff)).toEqual(next);
        expect([JSON.stringify(old), JSON.stringify(next), JSON.stringify(diff)]).toEqual([
          oldText,
          nextText,
          diffText,
        ]);
      }),
      { numRuns: 150 },
    );
  });

  test("equals next if next is an edited copy of old", () => {
    fc.assert(
      fc.property(
        anyState(),
        fc.array(fc.tuple(fc.nat(20), fc.nat(3), fc.array(turn(), { maxLength: 3 }))),
        (old, edits) => {
          const turns = [...old.turns];
          for (const [at, remove, insert] of edits) {
            // A removed turn is inserted at the beginning: a turn can also move.
            turns.unshift(...turns.splice(at, remove, ...insert));
          }
          const next = { ...old, turns };
          const diff = StateDiff.compute(old, next);
          expect(StateDiff.apply(old, JSON.parse(JSON.stringify(diff)) as StateDiff)).toEqual(next);
        },
      ),
      { numRuns: 200 },
    );
  });

  test("is deeply frozen", () => {
    fc.assert(
      fc.property(anyState(), anyState(), (old, next) => {
        const diff = StateDiff.compute(old, next);
        expectFrozen(diff);
        expectFrozen(StateDiff.apply(old, diff));
      }),
      { numRuns: 30 },
    );
  });
});

describe("compute", () => {
  test("returns an empty diff for equal states", () => {
    fc.assert(
      fc.property(anyState(), (state) => {
        expect(StateDiff.compute(state, state)).toEqual({});
        expect(StateDiff.compute(state, structuredClone(state))).toEqual({});
      }),
      { numRuns: 50 },
    );
  });

  test("returns an empty diff for equal states with a repeated turn", () => {
    expect(StateDiff.compute(withTurns("a", "b", "a", "a"), withTurns("a", "b", "a", "a"))).toEqual({});
  });

  test("returns the keys that changed, and the keys that were removed, by name", () => {
    const old = { ...emptyState(), variables: { same: [1], other: 1, gone: 1 }, metadata: { constructor: "x" } };
    const next = { ...emptyState(), variables: { same: [1], other: 2, "": null }, metadata: {}, name: "refund" };
    expect(StateDiff.compute(old, next)).toEqual({
      fields: { set: { name: "refund" } },
      metadata: { unset: ["constructor"] },
      variables: { set: { other: 2, "": null }, unset: ["gone"] },
    });
  });

  test.for([
    { edit: "an append", next: ["a", "b", "c", "d", "e"], splices: [[4, "d", 0, ["e"]]] },
    { edit: "a truncation", next: ["a", "b"], splices: [[2, "b", 2, []]] },
    { edit: "a new beginning", next: ["x", "b", "c", "d"], splices: [[0, null, 1, ["x"]]] },
    { edit: "another branch", next: ["a", "x", "y"], splices: [[1, "a", 3, ["x", "y"]]] },
    {
      edit: "two places",
      next: ["a", "x", "c", "y"],
      splices: [
        [1, "a", 1, ["x"]],
        [3, "c", 1, ["y"]],
      ],
    },
    {
      edit: "a move to the front",
      next: ["d", "a"],
      splices: [
        [0, null, 3, []],
        [4, "d", 0, ["a"]],
      ],
    },
    { edit: "everything", next: [], splices: [[0, null, 4, []]] },
  ])("encodes $edit as the ranges of turns to replace", ({ next, splices }) => {
    const diff = StateDiff.compute(withTurns("a", "b", "c", "d"), withTurns(...next));
    expect(diff.turns?.from).toBe(4);
    expect(
      diff.turns?.splices.map(({ at, after, remove, insert }) => [at, after, remove, insert.map((one) => one.turnId)]),
    ).toEqual(splices);
  });

  test("replaces a turn with the same id and other content", () => {
    const old = withTurns("a", "b", "c");
    const [a, b, c] = old.turns as [SessionTurn, SessionTurn, SessionTurn];
    const next = { ...old, turns: [a, { ...b, content: "changed" }, c] };
    const diff = StateDiff.compute(old, next);
    expect(diff.turns?.splices).toHaveLength(1);
    expect(StateDiff.apply(old, diff).turns.map(({ content }) => content)).toEqual(["a", "changed", "c"]);
  });

  test("of 10,000 turns and one more contains one turn", () => {
    const log = new SampleLog();
    log.append(
      Array.from({ length: 9999 }, (_, index) =>
        message(`m${index}`, index % 2 === 0 ? user("x".repeat(1000)) : assistant("y".repeat(1000))),
      ),
    );
    const old = stateOfLog(log);
    log.say({ last: user("z".repeat(1000)) });
    const diff = StateDiff.compute(old, stateOfLog(log));
    expect(JSON.stringify(diff).length).toBeLessThan(1000 + 500);
    expect(StateDiff.apply(old, diff)).toEqual(stateOfLog(log));
  });

  test("does not read turns that both states share", () => {
    const turns = Array.from({ length: 100 }, (_, index) => unreadable(`t${index}`));
    const old = { ...emptyState(), turns };
    const next = { ...emptyState(), turns: [...turns, turnNamed("new")] };
    expect(StateDiff.compute(old, next).turns?.splices[0]?.insert.map(({ turnId }) => turnId)).toEqual(["new"]);
  });

  test("supports values as deep as an entry may have", () => {
    let deep: JsonValue = 1;
    for (let depth = 0; depth < 195; depth++) deep = [deep];
    const next = { ...emptyState(), variables: { deep } };
    expect(StateDiff.apply(emptyState(), StateDiff.compute(emptyState(), next))).toEqual(next);
  });

  test.for([{ value: Number.NaN }, { value: () => 1 }, { value: new Date(0) }])(
    "refuses a value that is not JSON: $value",
    ({ value }) => {
      const next = { ...emptyState(), variables: { broken: value as unknown as JsonValue } };
      expect(() => StateDiff.compute(emptyState(), next)).toThrow(
        expect.objectContaining({ code: "INVALID_VALUE", message: expect.stringMatching(/^broken is .*\.$/s) }),
      );
    },
  );
});

describe("apply", () => {
  test.for([
    { other: "fewer turns", turns: ["a"] },
    { other: "more turns", turns: ["a", "b", "c"] },
    { other: "another turn before the change", turns: ["a", "x"] },
  ])("refuses a base with $other", ({ turns }) => {
    const diff = StateDiff.compute(withTurns("a", "b"), withTurns("a", "b", "new"));
    expect(() => StateDiff.apply(withTurns(...turns), diff)).toThrow(expect.objectContaining({ code: "CONFLICT" }));
  });

  test.for<{ name: string; diff: unknown }>([
    { name: "not an object", diff: null },
    { name: "a list", diff: [] },
    { name: "an unknown part", diff: { turn: {} } },
    { name: "keys that are not an object", diff: { fields: 1 } },
    { name: "a set that is not an object", diff: { variables: { set: [] } } },
    { name: "an unset that is not a list of names", diff: { metadata: { unset: [1] } } },
    { name: "turns without ranges", diff: { turns: { from: 0 } } },
    {
      name: "a negative position",
      diff: { turns: { from: 0, splices: [{ at: -1, after: null, remove: 0, insert: [] }] } },
    },
    {
      name: "an invalid turn",
      diff: { turns: { from: 0, splices: [{ at: 0, after: null, remove: 0, insert: [1] }] } },
    },
  ])("refuses what is no diff: $name", ({ diff }) => {
    expect(() => StateDiff.apply(emptyState(), diff as StateDiff)).toThrow(
      expect.objectContaining({ code: "INVALID_VALUE" }),
    );
  });

  test("refuses ranges that overlap or reach past the end", () => {
    const splice = { after: "a", insert: [] };
    const overlapping = [
      { ...splice, at: 1, remove: 1 },
      { ...splice, at: 1, remove: 1 },
    ];
    for (const splices of [overlapping, [{ ...splice, at: 1, remove: 5 }]]) {
      expect(() => StateDiff.apply(withTurns("a", "b"), { turns: { from: 2, splices } })).toThrow(
        expect.objectContaining({ code: "CONFLICT" }),
      );
    }
  });

  test("treats names of inherited properties as ordinary keys", () => {
    const diff = JSON.parse('{"variables":{"set":{"constructor":1,"toString":2}}}') as StateDiff;
    const { variables } = StateDiff.apply(emptyState(), diff);
    expect(Object.entries(variables)).toEqual([
      ["constructor", 1],
      ["toString", 2],
    ]);
  });
});

const KEYS = ["constructor", "toString", "hasOwnProperty", "length", "", "0", "ключ", "\u2028", "😀", "a", "b"];

function json(): fc.Arbitrary<JsonValue> {
  const leaf = fc.oneof(fc.constant(null), fc.boolean(), fc.integer(), fc.constant(0.1), fc.string({ unit: "binary" }));
  const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      leaf,
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...KEYS), tie("value"), { maxKeys: 3 }),
    ),
  }));
  return value;
}

function object(): fc.Arbitrary<JsonObject> {
  return fc.dictionary(fc.constantFrom(...KEYS), json(), { maxKeys: 5 });
}

/** Few ids, so that lists share some, lack some, repeat some and have different turns with the same id. */
function turn(): fc.Arbitrary<SessionTurn> {
  return fc.record(
    {
      turnId: fc.constantFrom("a", "b", "c", "d", "e", "f", "constructor", ""),
      role: fc.constantFrom("system", "user", "assistant", "tool"),
      content: fc.constantFrom("", "x", null, [{ type: "text", text: "y" }] as const),
      timestamp: fc.constantFrom(timeAt(0), timeAt(1)),
      metadata: fc.oneof(fc.constant({}), object()),
      tokensUsed: fc.nat(2),
      cost: fc.nat(2),
      model: fc.constantFrom("m", "n"),
    },
    { requiredKeys: ["turnId", "role", "content", "timestamp", "metadata", "tokensUsed", "cost"] },
  );
}

function anyState(): fc.Arbitrary<SessionState> {
  const text = fc.constantFrom("a", "b", null);
  return fc.record({
    sessionId: fc.constantFrom("s", "t"),
    userId: text,
    status: fc.constantFrom("active", "suspended", "closed", "expired"),
    name: text,
    turns: fc.array(turn(), { maxLength: 12 }),
    turnCount: fc.nat(3),
    metadata: object(),
    variables: object(),
    systemPrompt: text,
    activeTools: fc.array(fc.constantFrom("x", "y"), { maxLength: 2 }),
    activeSkills: fc.array(fc.constantFrom("x", "y"), { maxLength: 2 }),
    createdAt: fc.constantFrom(timeAt(0), timeAt(1)),
    updatedAt: fc.constantFrom(timeAt(0), timeAt(1)),
    checkpointId: text,
    totalTokens: fc.nat(3),
    totalCost: fc.nat(3),
    spent: fc.record({ totalTokens: fc.nat(3), totalCost: fc.nat(3) }),
    parentSessionId: text,
    branchName: text,
    version: fc.nat(3),
    leafId: text,
  });
}

function emptyState(): SessionState {
  return stateOf(new SampleLog().head, NO_SETTINGS, [], { checkpointId: null });
}

function turnNamed(turnId: string): SessionTurn {
  return { turnId, role: "user", content: turnId, timestamp: timeAt(0), metadata: {}, tokensUsed: 0, cost: 0 };
}

function withTurns(...ids: readonly string[]): SessionState {
  return { ...emptyState(), turns: ids.map(turnNamed) };
}

function unreadable(turnId: string): SessionTurn {
  const refuse = (): never => expect.fail(`${turnId} was looked into`);
  return new Proxy(turnNamed(turnId), {
    ownKeys: refuse,
    get: (target, key) => (key === "turnId" ? target.turnId : refuse()),
  });
}

function stateOfLog(log: SampleLog): SessionState {
  const messages = log.entries.filter((entry: Entry): entry is EntryOf<"message"> => entry.type === "message");
  return stateOf(log.head, log.settings(), messages.map(turnOf), { checkpointId: null });
}

function expectFrozen(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  expect(Object.isFrozen(value)).toBe(true);
  for (const item of Object.values(value)) expectFrozen(item);
}
