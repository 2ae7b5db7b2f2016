import { describe, expect, test } from "vitest";
import { assistant, entryAt, user } from "../../test/sample-log.ts";
import { summaryMessages } from "../agent/summary-prompt.ts";
import type { Entry } from "../session/entry.ts";
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

  test("summarises a conversation by the beginnings of what was said", async () => {
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

  test("puts an earlier summary first", async () => {
    const summary = await ask(
      summaryMessages({ kind: "history", entries: entriesOf(user("new")), previousSummary: "- old" }),
    );
    expect(summary).toBe("- old\n- [user] new");
  });

  test("cuts no emoji in half", async () => {
    expect(await ask([user(`${"x".repeat(159)}😀😀`)])).toBe(`I am offline. You said: ${"x".repeat(159)}…`);
  });

  test("has a window, and rejects when it is aborted", async () => {
    expect(offline().contextWindow).toBe(128_000);
    expect(offline({ contextWindow: 10 }).contextWindow).toBe(10);
    await expect(offline().complete({ messages: [] }, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: "AbortError",
    });
  });
});
