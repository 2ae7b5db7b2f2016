import { expect, test } from "vitest";
import { SessionTree } from "../index.ts";
import { printTree } from "./print-tree.ts";
import { printable, type Terminal } from "./terminal.ts";

function recorder(): { terminal: Terminal; lines: string[] } {
  const lines: string[] = [];
  const plain = (text: string) => text;
  return { lines, terminal: { line: (text = "") => void lines.push(text), bold: plain, dim: plain, green: plain } };
}

test("prints a chain without indenting it, branches with lines, and several roots beside each other", async () => {
  const tree = await SessionTree.inMemory();
  await tree.appendMessage({ role: "user", content: "a" }, { id: "a" });
  await tree.appendMessage({ role: "assistant", content: "b" }, { id: "b" });
  await tree.appendMessage({ role: "user", content: "c" }, { id: "c" });
  await tree.setLabel("c", "here");
  await tree.branch("b");
  await tree.appendThinkingLevelChange("high");
  await tree.branch(null);
  await tree.appendModelChange("offline", "offline");
  const { lines, terminal } = recorder();
  printTree(terminal, await tree.getTree(), { leafId: tree.leafId, path: new Set() });
  expect(lines).toEqual([
    "├─ user: a",
    "│  assistant: b",
    "│  ├─ user: c [here]",
    "│  └─ thinking: high",
    "└─ model: offline/offline ← leaf",
  ]);
});

test("never lets a transcript steer the terminal", async () => {
  const tree = await SessionTree.inMemory();
  await tree.appendMessage({ role: "user", content: "\u001b[2Jgone\u0007 \u202ereversed\u009b31m" }, { id: "x" });
  await tree.setLabel("x", "\u001b]0;title\u0007");
  const { lines, terminal } = recorder();
  printTree(terminal, await tree.getTree(), { leafId: null, path: new Set() });
  expect(lines.join("\n")).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u);
  expect(lines[0]).toContain("gone");
});

test("cuts a long text and keeps it on one line", () => {
  expect(printable("one\ntwo\tthree")).toBe("one two three");
  expect(printable("x".repeat(50), 10)).toBe("xxxxxxxxx…");
});
