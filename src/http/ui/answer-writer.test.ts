import { readUIMessageStream, type UIMessage } from "ai";
import { expect, test } from "vitest";
import type { RunEvent } from "../../agent/run-event.ts";
import type { Approval } from "../../session/log/run-event.ts";
import type { AssistantMessage } from "../../session/message.ts";
import { AnswerWriter } from "./answer-writer.ts";

type Told = RunEvent extends infer Event ? (Event extends RunEvent ? Omit<Event, "runId"> : never) : never;

const told = (event: Told): RunEvent => ({ ...event, runId: "r" }) as RunEvent;

/** The message that the AI SDK makes of the chunks, in short. */
async function written(events: readonly Told[], after: readonly string[] = [], message?: UIMessage): Promise<string[]> {
  const writer = new AnswerWriter("m", after);
  const chunks = events.flatMap((event) => writer.take([told(event)], []));
  const stream = new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  let last: UIMessage = { id: "", role: "assistant", parts: [] };
  const given = message === undefined ? {} : { message };
  for await (const read of readUIMessageStream({ stream, ...given })) last = structuredClone(read);
  return last.parts.map((part) => {
    if (part.type === "text" || part.type === "reasoning") return `${part.type}: ${part.text}`;
    return "toolCallId" in part ? `${part.type} ${part.toolCallId}: ${part.state}` : part.type;
  });
}

const says = (text: string): Told => ({ type: "text-delta", round: 1, text });
const thinks = (text: string): Told => ({ type: "thinking-delta", round: 1, text });
const began: Told = { type: "run-started" };
const retried: Told = {
  type: "model-retry",
  round: 1,
  attempt: 1,
  delayMs: 0,
  error: { code: null, message: "It broke off." },
};
const missed: Told = { type: "events-dropped", count: 3 };
const ended: Told = { type: "run-finished", truncated: false, usage: null };
const whole = (content: AssistantMessage["content"], ...names: readonly string[]): Told => ({
  type: "round-finished",
  round: 1,
  message: {
    role: "assistant",
    content,
    toolCalls: names.map((name) => ({ id: `${name}-1`, name, arguments: "{}" })),
  },
  stopReason: "stop",
});
const started = (name: string): Told => ({
  type: "tool-started",
  round: 1,
  callId: `${name}-1`,
  name,
  arguments: {},
});
const result = (name: string): Told => ({
  type: "tool-finished",
  round: 1,
  callId: `${name}-1`,
  message: { role: "tool", toolCallId: `${name}-1`, name, content: "ok" },
});
const asks = (name: string, more: Partial<Approval> = {}): Told => ({
  type: "approval-required",
  round: 1,
  approval: {
    question: `about ${name}`,
    callId: `${name}-1`,
    name,
    arguments: {},
    effects: "commands",
    reach: null,
    ...more,
  },
});

test.for<[string, readonly Told[]]>([
  ["in pieces", [says("One "), says("two."), whole("One two.")]],
  ["only when it is whole", [whole("One two.")]],
  ["with some pieces missed", [says("One "), missed, says("."), whole("One two.")]],
  ["with all pieces but the last missed", [missed, says("two."), whole("One two.")]],
  ["again by a model that failed", [says("One "), retried, says("One "), says("two."), whole("One two.")]],
  ["again by another process", [began, says("One tw"), began, says("One "), says("two."), whole("One two.")]],
])("an answer that comes %s has every word once", async ([, events]) => {
  expect(await written([...events, ended])).toEqual(["step-start", "text: One two."]);
});

test("an answer that begins in another way after a retry follows whole, since nothing can be taken back", async () => {
  const events = [thinks("Hm."), says("One "), retried, says("Eins "), says("zwei."), whole("Eins zwei."), ended];
  expect(await written(events)).toEqual(["step-start", "reasoning: Hm.", "text: One ", "text: Eins zwei."]);
});

test("thoughts and texts keep their order, streamed or not", async () => {
  const content = [
    { type: "thinking", text: "A" },
    { type: "text", text: "B" },
    { type: "thinking", text: "C" },
    { type: "text", text: "D" },
  ] as const;
  const parts = ["step-start", "reasoning: A", "text: B", "reasoning: C", "text: D"];
  expect(await written([thinks("A"), says("B"), thinks("C"), says("D"), whole(content), ended])).toEqual(parts);
  expect(await written([whole(content), ended])).toEqual(parts);
});

test("behind a call that waits, only those are shown that wait too or are done", async () => {
  const waiting = [
    whole(null, "look", "pay", "read", "send"),
    asks("pay", { following: 1 }),
    asks("send"),
    started("look"),
  ];
  const shown = ["step-start", "tool-look look-1: input-available", "tool-pay pay-1: approval-requested"];
  expect(await written(waiting)).toEqual([...shown, "tool-send send-1: approval-requested"]);
  const done = [...waiting, result("look"), started("pay"), result("pay"), started("read"), result("read")];
  expect((await written(done)).slice(-2)).toEqual([
    "tool-send send-1: approval-requested",
    "tool-read read-1: output-available",
  ]);
});

test("the answer ends once all questions are asked, all earlier calls have results and no question is answered", () => {
  const writer = new AnswerWriter("m");
  const endsWith = (event: Told, ...waiting: readonly string[]): boolean => {
    writer.take(
      [told(event)],
      waiting.map((callId) => ({ callId, question: `about ${callId}` })),
    );
    return writer.ended;
  };
  expect(endsWith(whole(null, "look", "pay", "read", "send"))).toBe(false);
  expect(endsWith(asks("pay", { following: 1 }), "pay-1")).toBe(false);
  expect(endsWith(asks("send"), "pay-1", "send-1")).toBe(false);
  expect(endsWith(result("look"), "send-1")).toBe(false);
  expect(endsWith(started("pay"), "send-1")).toBe(false);
  expect(endsWith(result("pay"), "send-1")).toBe(false);
  expect(endsWith(result("read"), "send-1")).toBe(true);
  const asking = new AnswerWriter("m");
  asking.take([whole(null, "pay", "send"), asks("pay", { following: 1 })].map(told), [
    { callId: "pay-1", question: "about pay" },
  ]);
  expect(asking.ended).toBe(false);
});

test("a call with the id of a finished one is another step, if an answer follows its calls", () => {
  const round = [started("look"), result("look"), whole(null, "look")];
  const chunks = new AnswerWriter("m").take([...round, ...round].map(told), []);
  const step = ["start-step", "tool-input-available", "tool-output-available"];
  expect(chunks.map(({ type }) => type).filter((type) => step.includes(type))).toEqual([...step, ...step]);
});

test("a client that answers a question gets the events after it, and the end of a finished run", async () => {
  const before = [says("First."), whole("First.", "pay"), asks("pay")];
  const message: UIMessage = {
    id: "m",
    role: "assistant",
    parts: [
      { type: "step-start" },
      {
        type: "tool-pay",
        toolCallId: "pay-1",
        state: "approval-responded",
        input: {},
        approval: { id: "x", approved: true },
      },
    ],
  };
  const after = [started("pay"), result("pay"), says("Done."), whole("Done."), ended];
  expect(await written([...before, ...after], ["about pay"], message)).toEqual([
    ...["step-start", "tool-pay pay-1: output-available", "step-start", "text: Done."],
  ]);
  const writer = new AnswerWriter("m", ["another"]);
  expect([...before, ended].flatMap((event) => writer.take([told(event)], [])).at(-1)).toEqual({
    type: "finish",
    finishReason: "stop",
  });
});

test("a question inside of a tool is shown with its own call, and waited for", async () => {
  const events = [whole(null, "ask"), started("ask"), asks("inner", { innerRunId: "i" })];
  const writer = new AnswerWriter("m");
  expect(writer.take(events.map(told), []).at(-1)).toEqual({ type: "finish", finishReason: "tool-calls" });
  const settled: Told = { type: "approval-settled", round: 1, callId: "inner-1", question: "about inner" };
  expect(await written([...events, settled, result("ask"), whole("Done."), ended])).toEqual([
    ...["step-start", "tool-ask ask-1: output-available", "tool-inner inner-1: output-available"],
    ...["step-start", "text: Done."],
  ]);
});

test("a client that answers a question of an inner run does not get it again before the worker has the answer", () => {
  const writer = new AnswerWriter("m", ["about inner"]);
  const events = [whole(null, "ask"), started("ask"), asks("inner", { innerRunId: "i" })];
  expect(writer.take(events.map(told), [])).toEqual([{ type: "start", messageId: "m" }]);
  expect(writer.ended).toBe(false);
});

test("a failure is an error of the stream, a stop is not", () => {
  const last = (code: string): unknown =>
    new AnswerWriter("m").take([told({ type: "run-failed", error: { code, message: "No." } })], []).at(-1);
  expect(last("MODEL_FAILED")).toEqual({ type: "error", errorText: "No." });
  expect(last("ABORTED")).toEqual({ type: "abort", reason: "No." });
});
