import { expect, test } from "vitest";
import type { Entry } from "../../../../src/session/log/entry.ts";
import type { Message } from "../../../../src/session/message.ts";
import { isUnfinished, rowsOf } from "./rows.ts";
import { spentOn } from "./spent.ts";

let count = 0;
const say = (id: string, message: Message): Entry => ({
  type: "message",
  id,
  parentId: null,
  timestamp: new Date(Date.UTC(2026, 0, 1) + 1000 * count).toISOString(),
  seq: count++,
  message,
});
const call = { id: "c1", name: "find", arguments: "{}" };
const user = say("u", { role: "user", content: "Find it." });
const answer = say("a", { role: "assistant", content: null, toolCalls: [call, { ...call, id: "c2" }] });
const result = (id: string, toolCallId: string): Entry =>
  say(id, { role: "tool", toolCallId, name: "find", content: "Found." });

const other = (type: string, more: object = {}): Entry => ({ ...user, type, id: type, ...more }) as unknown as Entry;

test("shows calls and their results in one row, which ends with the last result", () => {
  const rows = rowsOf([user, answer, result("r1", "c1"), result("r2", "c2")], false);
  expect(rows.map(({ kind, id, endId }) => [kind, id, endId])).toEqual([
    ["turn", "u", "u"],
    ["answer", "a", "r2"],
  ]);
  expect(rows[1]).toMatchObject({ question: { id: "u" }, ids: ["a", "r1", "r2"] });
});

test("shows all rounds of an answer in one row, whatever entries are between them", () => {
  const entries = [user, answer, result("r1", "c1"), other("custom"), result("r2", "c2"), other("variables")];
  const last = say("end", { role: "assistant", content: "Done." });
  const rows = rowsOf([...entries, last, say("u2", { role: "user", content: "Thanks." })], false);
  expect(rows.map(({ kind, id, endId }) => [kind, id, endId])).toEqual([
    ["turn", "u", "u"],
    ["answer", "a", "end"],
    ["turn", "u2", "u2"],
  ]);
  expect(rows[1]).toMatchObject({ ids: ["a", "r1", "custom", "r2", "variables", "end"], entry: { id: "end" } });
  expect(isUnfinished(entries)).toBe(true);
  expect(isUnfinished([...entries, last])).toBe(false);
});

test("an answer ends with a message without calls, or before another agent's", () => {
  const said = (id: string, agent?: string, calls = true): Entry =>
    say(id, {
      role: "assistant",
      content: id,
      ...(agent && { agent }),
      ...(calls && { toolCalls: [{ ...call, id }] }),
    });
  const rows = rowsOf([said("x", "ann"), said("y", "ann", false), said("z", "ann"), said("w", "bob")], false);
  expect(rows.map(({ ids }) => ids)).toEqual([["x", "y"], ["z"], ["w"]]);
});

test("settings and records have separate rows if they are wanted, else they belong to the row before", () => {
  const hidden = other("custom_message", { display: false });
  const entries = [other("model_change"), user, other("custom"), hidden];
  expect(rowsOf(entries, false).map(({ ids }) => ids)).toEqual([["model_change", "u", "custom", "custom_message"]]);
  expect(rowsOf(entries, true).map(({ kind }) => kind)).toEqual(["note", "turn", "note", "custom"]);
});

test("sums up the usage and the duration of rounds, from the entry before to the last result", () => {
  const usage = { inputTokens: 10, outputTokens: 2, totalTokens: 12 };
  const asked = say("q", { role: "user", content: "Go." });
  const first = say("f", { role: "assistant", content: null, toolCalls: [call], usage, cost: 0.5 });
  const found = result("r", "c1");
  const end = say("e", { role: "assistant", content: "Done.", usage });
  const [, row] = rowsOf([asked, first, found, end], false);
  const rounds = row?.kind === "answer" ? row.rounds : [];
  expect(spentOn(rounds)).toMatchObject({ calls: 1, tokens: 24, tokensRead: 20, cost: 0.5, tookMs: 3000 });
  expect(spentOn(rounds.slice(0, 1))).toMatchObject({ calls: 1, tokens: 12, tookMs: 2000 });
  expect(spentOn(rounds.slice(1))).toMatchObject({ calls: 0, cost: null, tookMs: 1000 });
});

test("a result without a loaded call has a separate row", () => {
  expect(rowsOf([result("r1", "c1"), user], false).map(({ kind }) => kind)).toEqual(["result", "turn"]);
});

test("gives summaries, custom messages and unknown entries rows of their kinds", () => {
  const types = ["compaction", "branch_summary", "custom_message", "model_change", "from_the_future"];
  const rows = rowsOf(
    types.map((type) => other(type)),
    true,
  );
  expect(rows.map(({ kind }) => kind)).toEqual(["summary", "summary", "custom", "note", "note"]);
});
