import fc from "fast-check";
import { expect, test } from "vitest";
import { ModelError } from "../../src/agent/model/model-error.ts";
import { runErrorOf } from "../../src/agent/run-error.ts";
import type { RunEvent } from "../../src/agent/run-event.ts";

import { type ChatOutput, chatJson } from "../../src/cli/chat/chat-output.ts";
import { ChatPrinter } from "../../src/cli/chat/chat-printer.ts";
import { createTerminal, printableText } from "../../src/cli/terminal.ts";
import type { JsonValue } from "../../src/internal/json.ts";
import { SessionBusyError, SessionError } from "../../src/session/errors.ts";
import { saying } from "../sample-run.ts";

/** The printed text for some outputs, and the printed errors. */
async function printed(outputs: readonly (ChatOutput | RunEvent)[], colours = false): Promise<[string, string[]]> {
  let text = "";
  const problems: string[] = [];
  const printer = new ChatPrinter({
    write: (part) => {
      text += part;
    },
    fail: (problem) => void problems.push(problem),
    dim: createTerminal(() => {}, colours).dim,
  });
  for (const output of outputs) await printer.print(isOutput(output) ? output : { type: "run-event", event: output });
  await printer.endLine();
  return [text, problems];
}

function isOutput(output: ChatOutput | RunEvent): output is ChatOutput {
  return ["notice", "problem", "session-opened", "chat-ended", "run-event"].includes(output.type);
}

const runId = "r";
const started: RunEvent = { runId, type: "round-started", round: 1 };
const finished: RunEvent = { runId, type: "run-finished", truncated: false, usage: null };
const roundFinished: RunEvent = {
  runId,
  type: "round-finished",
  round: 1,
  message: saying("whole"),
  stopReason: "stop",
};
const textDelta = (text: string): RunEvent => ({ runId, type: "text-delta", round: 1, text });
const thinking = (text: string): RunEvent => ({ runId, type: "thinking-delta", round: 1, text });
const asked = (index: number, id: string, args: string): RunEvent => ({
  runId,
  type: "tool-call-delta",
  round: 1,
  index,
  id,
  name: "look",
  arguments: args,
});
const callStarted = (callId: string, args: JsonValue = {}): RunEvent => ({
  runId,
  type: "tool-started",
  round: 1,
  callId,
  name: "look",
  arguments: args,
});
const callFinished = (toolCallId: string, content: string, isError = false): RunEvent => ({
  runId,
  type: "tool-finished",
  round: 1,
  callId: toolCallId,
  message: { role: "tool", toolCallId, name: "look", content, ...(isError ? { isError } : {}) },
});
const usage = (cost?: number): RunEvent => ({
  runId,
  type: "usage",
  round: 1,
  usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 },
  ...(cost === undefined ? {} : { cost }),
});

test("prints an answer as it streams, thinking on separate lines, and the usage of the turn", async () => {
  const events = [started, thinking("hm"), thinking("m"), textDelta("one\n"), textDelta("two"), roundFinished];
  expect(await printed([...events, usage(0.25), usage(0.25), finished])).toEqual([
    "hmm\none\ntwo\n20 tokens in, 10 out, $0.5000\n",
    [],
  ]);
  expect((await printed([started, textDelta("a"), usage(), finished]))[0]).toBe("a\n10 tokens in, 5 out\n");
});

test("dims thinking only if colours are shown", async () => {
  expect((await printed([thinking("hm"), textDelta("yes")], true))[0]).toBe("\u001b[2mhm\u001b[0m\nyes\n");
  expect((await printed([thinking("hm"), textDelta("yes")]))[0]).toBe("hm\nyes\n");
});

test("prints the answer of a model that does not stream", async () => {
  expect((await printed([started, roundFinished, finished]))[0]).toBe("whole\n");
});

test("prints each call on one line with its result, also for parallel calls", async () => {
  const alone = [
    started,
    asked(0, "a", '{"path":'),
    asked(0, "a", '"x"}'),
    callStarted("a"),
    callFinished("a", "found"),
  ];
  expect((await printed(alone))[0]).toBe('▸ look {"path":"x"} → found\n');
  const together = [started, asked(0, "a", "{}"), asked(1, "b", "[]"), callStarted("a"), callStarted("b")];
  const ended = [callFinished("b", '{"exit_code":2,"stdout":"","stderr":"no\\nway"}'), callFinished("a", "gone", true)];
  expect((await printed([...together, ...ended]))[0]).toBe("▸ look [] → exit 2: no way\n▸ look {} → failed: gone\n");
  const whole = [started, callStarted("a", { path: "x" }), callFinished("a", "found")];
  expect((await printed(whole))[0]).toBe('▸ look {"path":"x"} → found\n');
  const listing = '{"entries":[{"path":"a"},{"path":"b"}]}';
  expect((await printed([started, callStarted("a"), callFinished("a", listing)]))[0]).toBe("▸ look {} → 2 files\n");
});

test("prints that a turn was stopped, or why it failed", async () => {
  const failed = (error: unknown): RunEvent => ({ runId, type: "run-failed", error: runErrorOf(error) });
  expect(await printed([textDelta("half"), failed(new SessionError("ABORTED", "x"))])).toEqual([
    "half\nStopped.\n",
    [],
  ]);
  expect(await printed([textDelta("half"), failed(new Error("broken"))])).toEqual(["half\n", ["broken"]]);
  const error = new ModelError("overloaded", "Too busy.", { provider: "p" });
  const retry: RunEvent = {
    runId,
    type: "model-retry",
    round: 1,
    attempt: 1,
    delayMs: 10,
    error: runErrorOf(error),
  };
  expect((await printed([textDelta("ha"), retry, textDelta("yes")]))[0]).toBe("ha\nToo busy. Retrying.\nyes\n");
});

test("replaces control characters, also across pieces of a stream", async () => {
  const evil = fc.string({ unit: fc.constantFrom("a", "\n", "\r", "\u001b", "\u009b", "\u0007", "\u202e", "😀", "é") });
  await fc.assert(
    fc.asyncProperty(evil, fc.array(fc.nat(20)), async (said, cuts) => {
      const pieces: RunEvent[] = [];
      let rest = said;
      for (const cut of cuts) {
        pieces.push(textDelta(rest.slice(0, cut)));
        rest = rest.slice(cut);
      }
      const [text] = await printed([...pieces, textDelta(rest)]);
      expect(text).toBe(said === "" ? "" : `${printableText(said)}\n`);
      expect(text).not.toMatch(/[^\P{Cc}\n\t]|[\p{Bidi_Control}\p{Cs}]/u);
    }),
  );
  const bad = "\u001b[2J\u202e";
  const all: (ChatOutput | RunEvent)[] = [
    { type: "notice", text: bad },
    { type: "session-opened", sessionId: bad, model: bad },
    started,
    thinking(bad),
    asked(0, "a", bad),
    { runId, type: "tool-started", round: 1, callId: "a", name: bad, arguments: { bad } },
    callFinished("a", bad),
    callFinished("b", bad, true),
    callFinished("c", JSON.stringify({ exit_code: 0, stdout: bad })),
    { runId, type: "model-retry", round: 1, attempt: 1, delayMs: 1, error: runErrorOf(new Error(bad)) },
  ];
  expect((await printed(all))[0]).not.toMatch(/[^\P{Cc}\n\t]|\p{Bidi_Control}/u);
});

test("prints each event as JSON, and an error with its code and message", () => {
  const json = (output: ChatOutput): unknown => JSON.parse(JSON.stringify(chatJson(output)));
  expect(json({ type: "run-event", event: textDelta("a") })).toEqual(textDelta("a"));
  const error = runErrorOf(new SessionBusyError("s", "run 1"));
  expect(json({ type: "run-event", event: { runId, type: "run-failed", error } })).toEqual({
    runId,
    type: "run-failed",
    error: {
      code: "SESSION_BUSY",
      message: expect.stringMatching(/run 1/),
      details: { sessionId: "s", holder: "run 1" },
    },
  });
  expect(json({ type: "notice", text: "hello" })).toEqual({ type: "notice", text: "hello" });
});
