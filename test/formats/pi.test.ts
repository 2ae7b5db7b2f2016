import { expect, test } from "vitest";
import { readForeign } from "../../src/interop/formats/read-foreign.ts";
import { foreignFormat } from "../../src/interop/formats/formats.ts";

const lines = [
  { type: "session", version: 3, id: "0199a3", timestamp: "2026-01-02T03:04:05.000Z", cwd: "/tmp/work" },
  {
    type: "message",
    id: "a1",
    parentId: null,
    timestamp: "2026-01-02T03:04:06.000Z",
    message: { role: "user", content: [{ type: "text", text: "count the files" }], timestamp: 1767323046000 },
  },
  {
    type: "message",
    id: "a2",
    parentId: "a1",
    timestamp: "2026-01-02T03:04:07.000Z",
    message: {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "ls", thinkingSignature: "sig" },
        { type: "toolCall", id: "c1", name: "bash", arguments: { command: "ls" } },
      ],
      api: "anthropic-messages",
      provider: "anthropic",
      model: "m",
      usage: {
        input: 1,
        output: 2,
        cacheRead: 3,
        cacheWrite: 0,
        totalTokens: 6,
        cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0.5 },
      },
      stopReason: "toolUse",
      timestamp: 1767323047000,
      responseId: "r",
    },
  },
  { type: "unheard", id: "a3", parentId: "a2", timestamp: "2026-01-02T03:04:08.000Z" },
  { type: "label", id: "a4", parentId: "a3", timestamp: "2026-01-02T03:04:08.000Z", targetId: "a1", label: "start" },
  {
    type: "message",
    id: "a5",
    parentId: "a4",
    timestamp: "2026-01-02T03:04:09.000Z",
    message: {
      role: "toolResult",
      toolCallId: "c1",
      toolName: "bash",
      content: [{ type: "text", text: "a" }],
      isError: false,
      timestamp: 1767323049000,
    },
  },
  {
    type: "message",
    id: "a6",
    parentId: "a1",
    timestamp: "2026-01-02T03:04:10.000Z",
    message: { role: "user", content: "other", timestamp: 1767323050000 },
  },
];

test("reads a session of pi as a tree", async () => {
  const reading = await readForeign(foreignFormat("pi"), [Buffer.from(lines.map((l) => JSON.stringify(l)).join("\n"))]);
  expect(reading?.report).toMatchObject({ mapped: 6, kept: 1, lost: 0 });
});
