import { describe, expect, test } from "vitest";
import { acceptable } from "../session/context/context.ts";
import type { EntryOf } from "../session/log/entry.ts";
import type { Message } from "../session/message.ts";
import { type SessionTurn, turnOf } from "../session/state/state.ts";
import { type GroupItem, rowsFor, visibleTo, YOUR_TURN } from "./agent-view.ts";
import { RoleIsolation } from "./role-isolation.ts";
import { RoundRobinTurnManager } from "./turns/round-robin-turn-manager.ts";

function items(...messages: readonly Message[]): GroupItem[] {
  return messages.map((message, seq) => {
    const stamp = { id: `t${seq}`, parentId: null, timestamp: "2024-01-01T00:00:00.000Z", seq };
    return { turn: turnOf({ type: "message", message, ...stamp } as EntryOf<"message">), message };
  });
}

const told = (name: string, ...messages: readonly Message[]): Message[] =>
  rowsFor(name, items(...messages)).map(({ message }) => message);

const question: Message = { role: "user", content: "Well?" };
const calls = [{ id: "c1", name: "look", arguments: "{}" }];

describe("the messages of an agent with a model", () => {
  test("has its own turns as answers, those of others with their names, and people's as they are", () => {
    const own: Message = { role: "assistant", content: "Yes.", agent: "a", provider: "p", model: "m" };
    expect(
      told(
        "a",
        question,
        own,
        { role: "assistant", content: "No.", agent: "b" },
        { role: "assistant", content: "Hm." },
      ),
    ).toEqual([question, own, { role: "user", content: "b: No." }, { role: "user", content: "assistant: Hm." }]);
  });

  test("leaves out marks, failures, answers without a word, and the tools of others", () => {
    const metadata = { group: { kind: "turn" } };
    expect(
      told(
        "a",
        { ...question, metadata },
        { role: "assistant", content: null, toolCalls: calls, agent: "b" },
        { role: "tool", toolCallId: "c1", name: "look", content: "seen", agent: "b" },
        { role: "assistant", content: "boom", stopReason: "error", agent: "b" },
        { role: "assistant", content: null, stopReason: "error", agent: "a" },
        { role: "assistant", content: " ", agent: "a" },
        { role: "assistant", content: [{ type: "thinking", text: "hm" }], agent: "b" },
      ),
    ).toEqual([question]);
  });

  test("contain pictures of others and drop their thinking", () => {
    const image = { type: "image", mediaType: "image/png", data: "AAAA" } as const;
    const content = [{ type: "thinking", text: "hm" }, { type: "text", text: "See:" }, image] as const;
    expect(told("a", { role: "assistant", content, agent: "b" })).toEqual([
      { role: "user", content: [{ type: "text", text: "b: " }, { type: "text", text: "See:" }, image] },
    ]);
  });

  test("name each other speaker in a user message", () => {
    expect(told("a", { role: "user", content: "Hello.", agent: "b" })).toEqual([
      { role: "user", content: "b: Hello." },
    ]);
  });

  test("end with a message to answer, whatever came last", () => {
    const own: Message = { role: "assistant", content: "Yes.", agent: "a" };
    const yourTurn = { role: "user", content: YOUR_TURN };
    expect(told("a")).toEqual([yourTurn]);
    expect(told("a", question, own)).toEqual([question, own, yourTurn]);
    expect(told("a", { role: "system", content: "Be kind." }).at(-1)).toEqual(yourTurn);
  });

  test("continue where its tools were interrupted", () => {
    const calling: Message = { role: "assistant", content: null, toolCalls: calls, agent: "a" };
    const result: Message = { role: "tool", toolCallId: "c1", name: "look", content: "seen", agent: "a" };
    expect(told("a", question, calling, result).at(-1)).toEqual(result);
    expect(told("a", question, calling).at(-1)).toEqual(calling);
  });

  test("keeps the ids of the turns, and is what every provider accepts", () => {
    const messages: Message[] = [
      question,
      { role: "assistant", content: null, toolCalls: calls, agent: "a" },
      { role: "tool", toolCallId: "c1", name: "look", content: "seen", agent: "a" },
      { role: "assistant", content: "Yes.", agent: "a" },
      { role: "assistant", content: "No.", agent: "b" },
    ];
    const rows = rowsFor("a", items(...messages));
    expect(rows.map(({ id }) => id)).toEqual(["t0", "t1", "t2", "t3", "t4"]);
    const request = rows.map(({ message }) => message);
    expect(acceptable(request)).toEqual(request);
  });
});

describe("what an agent may see", () => {
  const all = items(
    question,
    { role: "assistant", content: "for b", agent: "c", metadata: { visibleTo: ["b"] } },
    { role: "assistant", content: "for all", agent: "c" },
  );
  const seen = (list: readonly GroupItem[]): (string | undefined)[] => list.map(({ turn }) => turn.turnId);

  test("must pass the isolation and the turn manager, both", () => {
    const manager = new RoundRobinTurnManager();
    expect(seen(visibleTo("a", all, new RoleIsolation(), manager))).toEqual(["t0", "t2"]);
    expect(seen(visibleTo("b", all, new RoleIsolation(), manager))).toEqual(["t0", "t1", "t2"]);
    const hidesLast = { filterVisible: (turns: readonly SessionTurn[]) => turns.slice(0, -1) };
    expect(seen(visibleTo("a", all, new RoleIsolation(), hidesLast))).toEqual(["t0"]);
  });

  test("are in log order and nothing else, whatever a filter invents", () => {
    const forged = { ...(all[0] as GroupItem).turn, turnId: "forged" };
    const inventive = {
      filterForAgent: (turns: readonly SessionTurn[]) => [forged, ...turns].reverse(),
      filterVisible: (turns: readonly SessionTurn[]) => [...turns.toReversed(), forged],
    };
    expect(seen(visibleTo("a", all, inventive, inventive))).toEqual(["t0", "t1", "t2"]);
  });
});
