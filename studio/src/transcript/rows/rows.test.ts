import { expect, test } from "vitest";
import type { Entry } from "../../../../src/session/log/entry.ts";
import type { Message } from "../../../../src/session/message.ts";
import { rowsOf } from "./rows.ts";

let count = 0;
const say = (id: string, message: Message): Entry => ({
  type: "message",
  id,
  parentId: null,
  timestamp: "2026-01-01T00:00:00.000Z",
  seq: count++,
  message,
});
const call = { id: "c1", name: "find", arguments: "{}" };
const user = say("u", { role: "user", content: "Find it." });
const answer = say("a", { role: "assistant", content: null, toolCalls: [call, { ...call, id: "c2" }] });
const result = (id: string, toolCallId: string): Entry =>
  say(id, { role: "tool", toolCallId, name: "find", content: "Found." });

test("shows calls and what came of them in one row, which ends with the last result", () => {
  const rows = rowsOf([user, answer, result("r1", "c1"), result("r2", "c2")]);
  expect(rows.map(({ kind, id, endId }) => [kind, id, endId])).toEqual([
    ["turn", "u", "u"],
    ["answer", "a", "r2"],
  ]);
  expect(rows[1]).toMatchObject({ question: { id: "u" }, signature: "a r1 r2" });
});

test("a result whose call is not loaded is a row of its own", () => {
  expect(rowsOf([result("r1", "c1"), user]).map(({ kind }) => kind)).toEqual(["result", "turn"]);
});

test("a row changes its signature only when it shows something else", () => {
  const before = rowsOf([user, answer]);
  const after = rowsOf([user, answer, result("r1", "c1")]);
  expect(after[0]?.signature).toBe(before[0]?.signature);
  expect(after[1]?.signature).not.toBe(before[1]?.signature);
});

test("gives summaries, custom messages and everything unknown rows of their kinds", () => {
  const others = ["compaction", "branch_summary", "custom_message", "model_change", "from_the_future"];
  const entries = others.map((type) => ({ ...user, type, id: type }) as unknown as Entry);
  expect(rowsOf(entries).map(({ kind }) => kind)).toEqual(["summary", "summary", "custom", "note", "note"]);
});
