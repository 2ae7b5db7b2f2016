import { expect, test } from "vitest";
import type { SessionTurn } from "../../../src/session/state/state.ts";
import { askedEdits } from "./asked-edits.ts";

const turn = (fields: Partial<SessionTurn>): SessionTurn => ({
  turnId: "t",
  role: "assistant",
  content: null,
  timestamp: "2026-01-01T00:00:00.000Z",
  metadata: {},
  tokensUsed: 0,
  cost: 0,
  ...fields,
});
const write = (id: string, path: string) => ({
  id,
  name: "write_file",
  arguments: JSON.stringify({ path, content: `${id}\n` }),
});

test("collects the changes of each file in order, without failed calls and calls that change nothing", () => {
  const files = askedEdits([
    turn({ toolCalls: [write("1", "b.txt"), write("2", "a.txt"), { id: "3", name: "read_file", arguments: "{}" }] }),
    turn({ role: "tool", toolCallId: "2", isError: true }),
    turn({ toolCalls: [write("4", "b.txt"), { id: "5", name: "write_file", arguments: "{" }] }),
  ]);
  expect(files.map(({ path, edits }) => [path, edits.map(({ newText }) => newText)])).toEqual([
    ["b.txt", ["1\n", "4\n"]],
  ]);
});
