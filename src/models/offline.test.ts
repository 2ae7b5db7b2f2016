import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { assistant, entryAt, user } from "../../test/sample-log.ts";
import type { Model, ModelDelta, ModelRequest } from "../agent/model/model.ts";
import { summaryMessages } from "../agent/context/summary-prompt.ts";
import type { Entry } from "../session/log/entry.ts";
import { type Message, textOf } from "../session/message.ts";
import { offline } from "./offline.ts";

const entriesOf = (...messages: Message[]) =>
  messages.map((message, index): Entry => entryAt(index, `e${index}`, null, { type: "message", message }));
const ask = async (messages: readonly Message[]) => textOf((await offline().complete({ messages })).content);

describe("offline", () => {
  test("says that it is offline and repeats the last question", async () => {
    expect(await ask([user("first"), assistant("x"), user("  Where\nis it? ")])).toBe(
      "I am offline. You said: Where is it?",
    );
    expect(await ask([])).toBe("I am offline. You said: ");
  });

  test("answers the same each time, as a whole reply with tokens and no cost", async () => {
    const model = offline();
    const first = await model.complete({ messages: [user("abcdefgh")] });
    expect(first).toMatchObject({
      role: "assistant",
      provider: "offline",
      model: "offline",
      stopReason: "stop",
      cost: 0,
    });
    expect(first.usage).toEqual({ inputTokens: 2, outputTokens: 8, totalTokens: 10 });
    expect(await model.complete({ messages: [user("abcdefgh")] })).toEqual(first);
  });

  test("summarises a conversation by the beginnings of its messages", async () => {
    const said = entriesOf(user("a question"), assistant("an answer\n\nin two paragraphs"), user("x".repeat(500)));
    const summary = await ask(summaryMessages({ kind: "history", entries: said }));
    expect(summary.split("\n")).toEqual([
      "- [user] a question",
      "- [assistant] an answer",
      `- [user] ${"x".repeat(153)}…`,
    ]);
  });

  test("lists at most twelve, and counts the rest", async () => {
    const said = entriesOf(...Array.from({ length: 15 }, (_, index) => user(`message ${index}`)));
    const summary = await ask(summaryMessages({ kind: "history", entries: said }));
    expect(summary.split("\n")).toHaveLength(13);
    expect(summary).toMatch(/- and 3 more messages$/);
  });

  test("summarises a conversation of any length, without parsing it for requests", { timeout: 10_000 }, async () => {
    const lines = Array.from({ length: 300_000 }, (_, index) => `line ${index}`).join("\n");
    const summary = await ask(summaryMessages({ kind: "history", entries: entriesOf(user(lines), assistant("done")) }));
    expect(summary).toMatch(/^- \[user\] line 0 line 1 .*…\n- \[assistant\] done$/);
  });

  test("puts an earlier summary first", async () => {
    const summary = await ask(
      summaryMessages({ kind: "history", entries: entriesOf(user("new")), previousSummary: "- old" }),
    );
    expect(summary).toBe("- old\n- [user] new");
  });

  test("does not split a surrogate pair", async () => {
    expect(await ask([user(`${"x".repeat(159)}😀😀`)])).toBe(`I am offline. You said: ${"x".repeat(159)}…`);
  });

  test("has a context window, and rejects after an abort", async () => {
    expect(offline().contextWindow).toBe(128_000);
    expect(offline({ contextWindow: 10 }).contextWindow).toBe(10);
    await expect(offline().complete({ messages: [] }, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: "AbortError",
    });
  });

  test("streams its answer word by word", async () => {
    const model = offline();
    const request = { messages: [user("hello there")] };
    const deltas = await collect(model, request);
    const reply = await model.complete(request);
    expect(deltas).toEqual([
      ...["I", " am", " offline.", " You", " said:", " hello", " there"].map((text) => ({ type: "text-delta", text })),
      { type: "finish", stopReason: "stop", usage: reply.usage, reply },
    ]);
  });

  test("waits for the delay before it answers, unless it is aborted", async () => {
    const slow = offline({ delayMs: 3_600_000 });
    const reason = new Error("enough");
    const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
    const timersBefore = timers();
    for (const ask of [
      (signal: AbortSignal) => slow.complete({ messages: [] }, { signal }),
      (signal: AbortSignal) => collect(slow, { messages: [] }, signal),
    ]) {
      const controller = new AbortController();
      const answer = ask(controller.signal);
      controller.abort(reason);
      await expect(answer).rejects.toBe(reason);
      expect(getEventListeners(controller.signal, "abort")).toEqual([]);
    }
    expect(timers()).toBe(timersBefore);
    expect(await offline({ delayMs: 1 }).complete({ messages: [] })).toMatchObject({ stopReason: "stop" });
  });

  test("stops streaming after an abort", async () => {
    const controller = new AbortController();
    const seen: unknown[] = [];
    const reading = async () => {
      for await (const delta of offline().stream?.({ messages: [] }, { signal: controller.signal }) ?? []) {
        seen.push(delta);
        controller.abort(new Error("enough"));
      }
    };
    await expect(reading()).rejects.toThrow("enough");
    expect(seen).toHaveLength(1);
  });
});

async function collect(model: Model, request: ModelRequest, signal?: AbortSignal): Promise<ModelDelta[]> {
  const deltas: ModelDelta[] = [];
  for await (const delta of model.stream?.(request, signal ? { signal } : {}) ?? []) deltas.push(delta);
  return deltas;
}
