import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { SessionTurn } from "../../session/state/state.ts";
import { PriorityTurnManager } from "./priority-turn-manager.ts";
import { RoundRobinTurnManager } from "./round-robin-turn-manager.ts";
import { TopicBasedTurnManager } from "./topic-based-turn-manager.ts";
import type { GroupMember, TurnManager } from "./turn-manager.ts";
import { RECORDED_SESSIONS_MAX } from "./turn-roster.ts";

let turns = 0;
function turn(role: SessionTurn["role"], content: string, extras: Partial<SessionTurn> = {}): SessionTurn {
  const timestamp = "2024-01-01T00:00:00.000Z";
  return { turnId: `t${turns++}`, role, content, timestamp, metadata: {}, tokensUsed: 0, cost: 0, ...extras };
}

const said = (agent: string, text = "…"): SessionTurn => turn("assistant", text, { agent });
const members = (...names: readonly string[]): GroupMember[] => names.map((name) => ({ name, role: "participant" }));

function registered<T extends TurnManager>(manager: T, ...names: readonly string[]): T {
  for (const name of names) manager.register(name, "participant");
  return manager;
}

/** Selects until the manager ends the conversation, or `most` were selected. */
async function selections(manager: TurnManager, sessionId: string, most = 100): Promise<(string | null)[]> {
  const chosen: (string | null)[] = [];
  while (chosen.length < most && chosen.at(-1) !== null) chosen.push(await manager.selectNext(sessionId));
  return chosen;
}

/** The choices of a manager if each choice becomes a move in an otherwise empty view. */
async function movesBy(manager: TurnManager, agents: readonly GroupMember[], most: number): Promise<string[]> {
  const moves: string[] = [];
  while (moves.length < most) {
    const next = await manager.selectNext("s", { turns: [], agents, moves });
    if (next === null) break;
    moves.push(next);
  }
  return moves;
}

describe("round robin", () => {
  test("goes through the agents in the order of registration and ends after its rounds", async () => {
    const manager = registered(new RoundRobinTurnManager(2), "c", "a", "b");
    expect(await selections(manager, "s")).toEqual(["c", "a", "b", "c", "a", "b", null]);
    expect(await manager.isComplete("s")).toBe(true);
    expect(await manager.isComplete("other")).toBe(false);
  });

  test("has ten rounds by default, and none without agents", async () => {
    const manager = registered(new RoundRobinTurnManager(), "a", "b");
    expect((await selections(manager, "s")).length).toBe(21);
    expect(await new RoundRobinTurnManager().selectNext("s")).toBeNull();
  });

  test("keeps sessions apart", async () => {
    const manager = registered(new RoundRobinTurnManager(), "a", "b");
    expect([await manager.selectNext("x"), await manager.selectNext("y"), await manager.selectNext("x")]).toEqual([
      "a",
      "a",
      "b",
    ]);
  });

  test("continues from the recorded turns, and starts again with the next question", async () => {
    const manager = registered(new RoundRobinTurnManager(1), "a", "b", "c");
    const question = turn("user", "hello");
    manager.recordTurns("s", [question, said("a"), said("b")]);
    expect(await manager.selectNext("s")).toBe("c");
    manager.recordTurns("s", [question, said("a"), said("b"), said("c")]);
    expect([await manager.selectNext("s"), await manager.isComplete("s")]).toEqual([null, true]);
    manager.recordTurns("s", [question, said("a"), said("b"), said("c"), turn("user", "and now?")]);
    expect([await manager.isComplete("s"), await manager.selectNext("s")]).toEqual([false, "a"]);
  });

  test("counts no answer that calls tools, failed or was broken off", async () => {
    const manager = registered(new RoundRobinTurnManager(), "a", "b");
    const calls = [{ id: "1", name: "look", arguments: "{}" }];
    const rows = [
      turn("assistant", "", { agent: "a", toolCalls: calls }),
      turn("tool", "seen", { agent: "a" }),
      turn("assistant", "", { agent: "a", stopReason: "error" }),
      turn("assistant", "I th", { agent: "a", stopReason: "aborted" }),
    ];
    expect(await manager.selectNext("s", { turns: [turn("user", "?"), ...rows], agents: members("a", "b") })).toBe("a");
    const done = [turn("user", "?"), ...rows, said("a")];
    expect(await manager.selectNext("s", { turns: done, agents: members("a", "b") })).toBe("b");
  });

  test("remembers selections if the turns have no agents, up to the next question", async () => {
    const manager = registered(new RoundRobinTurnManager(1), "a", "b");
    const question = turn("user", "hello");
    manager.recordTurns("s", [question]);
    expect(await manager.selectNext("s")).toBe("a");
    manager.recordTurns("s", [question, turn("assistant", "hi")]);
    expect([await manager.selectNext("s"), await manager.selectNext("s")]).toEqual(["b", null]);
    manager.recordTurns("s", [question, turn("user", "again")]);
    expect(await manager.selectNext("s")).toBe("a");
  });

  test("drops the oldest recorded session when there are too many", async () => {
    const manager = registered(new RoundRobinTurnManager(), "a", "b");
    for (let i = 0; i <= RECORDED_SESSIONS_MAX; i++) await manager.selectNext(`s${i}`);
    expect([await manager.selectNext("s0"), await manager.selectNext("s2")]).toEqual(["a", "b"]);
  });

  test("uses the lower one of its own limit and the run's", async () => {
    const agents = members("a", "b");
    const view = (moves: readonly string[], maxRounds: number) => ({ turns: [], agents, moves, maxRounds });
    const manager = new RoundRobinTurnManager(2);
    expect(await manager.selectNext("s", view(["a", "b"], 1))).toBeNull();
    expect(await manager.selectNext("s", view(["a", "b"], 9))).toBe("a");
    expect(await manager.selectNext("s", view(["a", "b", "a", "b"], 9))).toBeNull();
  });

  test("skips former members, and gives new members a turn in the same round", async () => {
    const manager = new RoundRobinTurnManager();
    expect(await manager.selectNext("s", { turns: [], agents: members("b", "c"), moves: ["a", "b"] })).toBe("c");
    expect(await manager.selectNext("s", { turns: [], agents: members("a", "b", "new"), moves: ["a", "b"] })).toBe(
      "new",
    );
  });
});

describe("priority", () => {
  test("lets the higher ones go first, each once a round, and equals in the order of registration", async () => {
    const manager = registered(
      new PriorityTurnManager({ low: -1, high: 5, also: 5 }, 2),
      "low",
      "none",
      "high",
      "also",
    );
    const round = ["high", "also", "none", "low"];
    expect(await selections(manager, "s")).toEqual([...round, ...round, null]);
    expect(await manager.isComplete("s")).toBe(true);
  });

  test("treats everyone alike without priorities", async () => {
    expect(await selections(registered(new PriorityTurnManager(undefined, 1), "b", "a"), "s")).toEqual([
      "b",
      "a",
      null,
    ]);
  });

  test("knows the priority of an agent that is named like a part of every object", async () => {
    const manager = registered(new PriorityTurnManager({ z: 1 }, 1), "constructor", "z");
    expect(await selections(manager, "s")).toEqual(["z", "constructor", null]);
  });

  test("refuses a priority that is no number", () => {
    for (const wrong of [Number.NaN, "3", null]) {
      expect(() => new PriorityTurnManager({ a: wrong as number })).toThrow(
        expect.objectContaining({ code: "INVALID_OPTION" }),
      );
    }
  });
});

test("every agent gets one turn in each round, for any agents, priorities and limits", async () => {
  const name = fc.string({ minLength: 1, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(name, { minLength: 1, maxLength: 6 }),
      fc.dictionary(name, fc.integer({ min: -2, max: 2 })),
      fc.integer({ min: 1, max: 4 }),
      async (names, priorities, maxRounds) => {
        const agents = members(...names);
        const priority = new PriorityTurnManager(priorities, maxRounds);
        for (const manager of [new RoundRobinTurnManager(maxRounds), priority]) {
          const moves = await movesBy(manager, agents, 1000);
          expect(moves.length).toBe(names.length * maxRounds);
          for (let round = 0; round < maxRounds; round++) {
            const spoke = moves.slice(round * names.length, (round + 1) * names.length);
            expect(spoke.toSorted()).toEqual(names.toSorted());
            if (manager !== priority) expect(spoke).toEqual(names);
          }
          expect(await manager.isComplete("s", { turns: [], agents, moves })).toBe(true);
          expect(await manager.isComplete("s", { turns: [], agents, moves: moves.slice(1) })).toBe(false);
        }
      },
    ),
    { numRuns: 200 },
  );
});

describe("topics", () => {
  const topics = { refund: "billing", "credit card": "billing", crash: "support" };
  const chosen = async (manager: TopicBasedTurnManager, ...said: readonly SessionTurn[]) =>
    manager.selectNext("s", { turns: said, agents: members("billing", "support"), moves: [] });

  test("leads a keyword in the latest turn to its agent, in any case", async () => {
    const manager = new TopicBasedTurnManager(topics);
    expect(await chosen(manager, turn("user", "I want a REFUND!"))).toBe("billing");
    expect(await chosen(manager, turn("user", "my Credit Card"))).toBe("billing");
    expect(await chosen(manager, turn("user", "refund"), said("billing", "Did it crash?"))).toBe("support");
  });

  test("prefers the first keyword in the given order, not the first in the text", async () => {
    const manager = new TopicBasedTurnManager(topics);
    expect(await chosen(manager, turn("user", "it had a crash, so a refund please"))).toBe("billing");
    const numbers = new TopicBasedTurnManager([
      ["2", "two"],
      ["1", "one"],
    ]);
    expect(await chosen(numbers, turn("user", "1 or 2"))).toBe("two");
  });

  test("finds whole words only, by default", async () => {
    const text = turn("user", "refunded and crash_test and Précrash");
    expect(await chosen(new TopicBasedTurnManager(topics), text)).toBeNull();
    expect(await chosen(new TopicBasedTurnManager(topics, null, 10, { wholeWords: false }), text)).toBe("billing");
    expect(await chosen(new TopicBasedTurnManager({ über: "a" }), turn("user", "ÜBER alles"))).toBe("a");
    expect(await chosen(new TopicBasedTurnManager({ ber: "a" }), turn("user", "über"))).toBeNull();
    expect(await chosen(new TopicBasedTurnManager({ "c++": "a" }), turn("user", "in c++, please"))).toBe("a");
  });

  test("falls back to the given agent, and ends the conversation without one", async () => {
    expect(await chosen(new TopicBasedTurnManager(topics, "support"), turn("user", "hello"))).toBe("support");
    expect(await chosen(new TopicBasedTurnManager(topics), turn("user", "hello"))).toBeNull();
    expect(await chosen(new TopicBasedTurnManager(topics))).toBeNull();
  });

  test("ignores tools, calls and failures", async () => {
    const manager = new TopicBasedTurnManager(topics);
    const noise = [
      turn("tool", "crash"),
      turn("assistant", "crash", { toolCalls: [{ id: "1", name: "look", arguments: "{}" }] }),
      turn("assistant", "crash", { stopReason: "error" }),
    ];
    expect(await chosen(manager, turn("user", "refund"), ...noise)).toBe("billing");
  });

  test("ends after as many turns of agents as it has rounds", async () => {
    const manager = registered(new TopicBasedTurnManager(topics, "support", 3), "billing", "support");
    manager.recordTurns("s", [turn("user", "refund")]);
    expect(await selections(manager, "s")).toEqual(["billing", "billing", "billing", null]);
    expect(await manager.isComplete("s")).toBe(true);
    const view = { turns: [turn("user", "refund")], agents: members("billing"), moves: ["a", "b"] };
    expect(await manager.isComplete("s", view)).toBe(false);
    expect(await manager.selectNext("s", { ...view, maxRounds: 2 })).toBeNull();
  });

  test("refuses topics without a keyword or an agent", () => {
    for (const wrong of [null, { " ": "a" }, { a: 1 }, [["a"]]]) {
      expect(() => new TopicBasedTurnManager(wrong as never)).toThrow(
        expect.objectContaining({ code: "INVALID_OPTION" }),
      );
    }
    expect(() => new TopicBasedTurnManager({}, 3 as never)).toThrow(
      expect.objectContaining({ code: "INVALID_OPTION" }),
    );
  });
});

describe.each([
  ["round robin", (maxRounds?: number) => new RoundRobinTurnManager(maxRounds)],
  ["priority", (maxRounds?: number) => new PriorityTurnManager({}, maxRounds)],
  ["topics", (maxRounds?: number) => new TopicBasedTurnManager({}, "a", maxRounds)],
])("a turn manager by %s", (_name, make) => {
  test("shows everyone everything", () => {
    const said = [turn("user", "a"), turn("assistant", "b")];
    expect(make().filterVisible(said, { agentName: "a" })).toEqual(said);
  });

  test("refuses limits that are not positive whole numbers, and invalid names", () => {
    for (const wrong of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "2", null]) {
      expect(() => make(wrong as number)).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
    }
    expect(() => make().register("", "x")).toThrow(expect.objectContaining({ code: "INVALID_ID" }));
    expect(() => make().register("a", 1 as never)).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
  });

  test("lets a name be registered again without giving it a second go", async () => {
    const manager = registered(make(1), "a", "a");
    expect(await selections(manager, "s")).toEqual(["a", null]);
  });
});
