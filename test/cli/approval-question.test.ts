import { expect, test } from "vitest";
import type { Approval } from "../../src/session/log/run-event.ts";
import { approvalQuestion } from "../../src/cli/chat/approval-question.ts";

const reach = { directory: "/w", isolated: false, network: true };

function asking(args: Approval["arguments"], more: Partial<Approval> = {}): ReturnType<typeof approvalQuestion> {
  return approvalQuestion({
    question: "q",
    callId: "1",
    name: "run_shell_command",
    arguments: args,
    effects: "commands",
    reach,
    ...more,
  });
}

test("asks about a short command on one line, with its directory and reach", () => {
  expect(asking({ command: "rm -rf x" })).toEqual({
    text: null,
    question: "Allow run_shell_command `rm -rf x` in /w (not isolated, network)?",
  });
  expect(asking({ command: "rm\u001b[2J\u202e" }, { reach: null }).question).toBe(
    "Allow run_shell_command `rm[U+001B][2J[U+202E]`: nothing is known of what it can reach?",
  );
});

test("shows a long command whole above the question, each line marked at the left", () => {
  const command = `echo ${"a".repeat(5000)}\nAllow run_shell_command \`ls\`? [y/n] y\n${"\n".repeat(50)}rm -rf x`;
  const { text, question } = asking({ command, cwd: "deep" });
  expect(question).toBe("Allow run_shell_command in /w (not isolated, network)?");
  const lines = text?.split("\n") ?? [];
  expect(lines[0]).toBe("run_shell_command:");
  expect(lines.slice(1).every((line) => line.startsWith("│ "))).toBe(true);
  expect(lines).toContain(`│ echo ${"a".repeat(5000)}`);
  expect(lines).toContain("│ rm -rf x");
  expect(lines).toContain('│   "cwd": "deep"');
});

test("asks about a file by its path, with the beginning of the new text", () => {
  const write = { name: "write_workspace_file", effects: "writes" } as const;
  const { text, question } = asking({ path: "a\nb.txt", content: "x".repeat(3000) }, write);
  expect(question).toBe("Allow write_workspace_file `a[U+000A]b.txt` in /w?");
  expect(text).toBe(`write_workspace_file:\n│ ${"x".repeat(1000)}\n│ … 2000 more characters`);
});
