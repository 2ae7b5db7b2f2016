import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import "../sandboxes/register-built-in.ts";
import "../tools/register-built-in.ts";
import { runSessionCompress } from "../agent/run-session-compress.ts";
import { runSessionLoop } from "../agent/run-session-loop.ts";
import { textOf } from "../session/message.ts";
import { Session } from "../session/value/session.ts";
import { offline } from "./offline.ts";

const agent = Session.fromAgentPrompt("You work on files.");

async function run(text: string, workingDir: string): Promise<{ session: Session; kinds: string[]; answer: string }> {
  const user = Session.fromUserMessage(text);
  user.to("local", workingDir);
  const session = await runSessionLoop(user, agent, { model: offline() });
  const messages = session.transcript.toMessages();
  return { session, kinds: messages.map(({ role }) => role), answer: textOf(messages.at(-1)?.content ?? "") };
}

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "skein-offline-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

test("really writes, edits, lists, runs and reads in a sandbox", async () => {
  const directory = await temporaryDirectory();
  const steps = [
    'write "hello\\nworld" to notes/a.txt',
    "replace world with moon in notes/a.txt",
    "list the files in notes",
    "run cat notes/a.txt | tr a-z A-Z",
    "does notes/b.txt exist?",
    "run this javascript: console.log(6 * 7)",
    "append bye to notes/a.txt",
    "read notes/a.txt",
  ];
  const { session, kinds, answer } = await run(steps.join("\n"), directory);
  await session.closeSandbox();
  expect(kinds).toEqual(["user", ...steps.flatMap(() => ["assistant", "tool"]), "assistant"]);
  expect(answer.split("\n")).toEqual([
    "I wrote notes/a.txt.",
    "I edited notes/a.txt.",
    "The files: notes/a.txt",
    "`cat notes/a.txt | tr a-z A-Z` printed: HELLO MOON",
    "notes/b.txt does not exist.",
    "The javascript code printed: 42",
    "`printf '%s\\n' 'bye' >> 'notes/a.txt'` printed nothing.",
    "notes/a.txt says: hello moonbye",
  ]);
  expect(await readFile(join(directory, "notes/a.txt"), "utf8")).toBe("hello\nmoonbye\n");
});

test("reports a failed call, and can summarize the session", async () => {
  const { session, answer } = await run("read nowhere.txt, then run ls", await temporaryDirectory());
  expect(answer).toMatch(/^Reading nowhere\.txt failed: .+\(file_not_found\)\nSo I did not go on to: "run ls"\.$/);
  const compressed = await runSessionCompress(session, agent, { model: offline() });
  await session.closeSandbox();
  await compressed.closeSandbox();
  expect(textOf(compressed.transcript.toMessages()[0]?.content ?? "")).toMatch(
    /^- \[user\] read nowhere\.txt, then run ls\n- \[tool\] .+\n- \[assistant\] Reading nowhere\.txt failed/,
  );
});
