import { describe, expect, test } from "vitest";
import { assistant, calls, result, SampleLog, usage, user } from "../../../test/sample-log.ts";
import type { EntryDraft } from "../log/entry.ts";
import { type Message, textOf } from "../message.ts";
import { contextTokens, prepareCompaction } from "./compaction.ts";
import { buildContext } from "./context.ts";

const omitted = (targetId: string, id = `omit-${targetId}`): EntryDraft => ({
  type: "context_edit",
  id,
  targetId,
  message: null,
});
const replaced = (targetId: string, message: Message, id = `replace-${targetId}`): EntryDraft => ({
  type: "context_edit",
  id,
  targetId,
  message,
});
const undone = (undo: string, id = `undo-${undo}`): EntryDraft => ({ type: "context_edit", id, undo });

function textsIn(log: SampleLog, leafId?: string): string[] {
  return buildContext(log.entries, leafId).messages.map((message) => textOf(message.content));
}

function abc(): SampleLog {
  return new SampleLog().say({ a: user("a"), b: assistant("b"), c: user("c") });
}

describe("an edit of the context", () => {
  test("leaves an entry out, or replaces its content", () => {
    const log = abc();
    log.append([omitted("a"), replaced("c", user("short"))]);
    expect(textsIn(log)).toEqual(["b", "short"]);
  });

  test("applies until the next edit of the same entry, and again when that one is undone", () => {
    const log = abc();
    log.append([replaced("a", user("one"), "e1"), omitted("a", "e2")]);
    expect(textsIn(log)).toEqual(["b", "c"]);
    log.append([undone("e2", "u1")]);
    expect(textsIn(log)).toEqual(["one", "b", "c"]);
    log.append([undone("e1", "u2")]);
    expect(textsIn(log)).toEqual(["a", "b", "c"]);
    log.append([undone("u2", "u3")]);
    expect(textsIn(log)).toEqual(["one", "b", "c"]);
  });

  test("applies on its path only", () => {
    const log = abc();
    log.append([omitted("a")]);
    log.append([{ type: "leaf", targetId: "c" }]);
    log.say({ d: user("d") });
    expect(textsIn(log)).toEqual(["a", "b", "c", "d"]);
    expect(textsIn(log, "omit-a")).toEqual(["b", "c"]);
  });

  test("changes messages of extensions and summaries of branches, too", () => {
    const log = abc();
    log.append([
      { type: "custom_message", id: "note", customType: "n", content: "long", display: false, details: { kept: true } },
      { type: "branch_summary", id: "summary", summary: "tried", fromId: "a" },
      replaced("note", user("short note")),
      replaced("summary", user("short summary")),
    ]);
    expect(textsIn(log)).toEqual(["a", "b", "c", "short note", "short summary"]);
    log.append([omitted("note"), omitted("summary")]);
    expect(textsIn(log)).toEqual(["a", "b", "c"]);
  });

  test("of a call or of one of its results leaves out the call with all of its results", () => {
    for (const target of ["ask", "one", "two"]) {
      const log = new SampleLog().say({
        a: user("a"),
        ask: calls("t", "s"),
        one: result("t", "1"),
        two: result("s", "2"),
        later: calls("t"),
        three: result("t", "3"),
      });
      log.append([omitted(target)]);
      expect(buildContext(log.entries).messages, target).toEqual([user("a"), calls("t"), result("t", "3")]);
    }
  });

  test("shortens a result, which keeps its call", () => {
    const log = new SampleLog().say({ a: user("a"), ask: calls("t"), one: result("t", "x".repeat(1000)) });
    log.append([replaced("one", result("t", "x…"))]);
    expect(buildContext(log.entries).messages).toEqual([user("a"), calls("t"), result("t", "x…")]);
  });

  test("that replaces an answer without its calls also leaves out their results", () => {
    const log = new SampleLog().say({
      a: user("a"),
      old: calls("t"),
      ask: calls("t", "s"),
      one: result("t"),
      two: result("s"),
    });
    log.append([replaced("ask", assistant("I looked."))]);
    const { messages } = buildContext(log.entries);
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
    expect(JSON.stringify(messages)).not.toContain("done");
  });

  test("drops what a provider signed with the answer, and keeps the visibility of its target", () => {
    const log = new SampleLog().say({
      a: user("a"),
      b: assistant([{ type: "thinking", text: "hm", signature: "s" }], {
        providerData: { blocks: [1] },
        usage: usage(10),
        agent: "ann",
        metadata: { visibility: "private" },
        provider: "p",
        model: "m",
      }),
    });
    const thinking = { type: "thinking", text: "hm", signature: "s" } as const;
    log.append([replaced("b", assistant([thinking, { type: "text", text: "b" }], { agent: "bob", metadata: {} }))]);
    expect(buildContext(log.entries).messages[1]).toEqual({
      role: "assistant",
      content: [{ type: "text", text: "b" }],
      agent: "ann",
      metadata: { visibility: "private" },
      provider: "p",
      model: "m",
    });
  });

  test("is what a compaction summarises, and applies to what the compaction kept", () => {
    const log = new SampleLog().say({ a: user("a".repeat(400)), b: assistant("b"), c: user("c"), d: assistant("d") });
    log.append([replaced("a", user("short"))]);
    const plan = prepareCompaction(log.entries, { keepRecentTokens: 1 });
    expect(plan?.summarize.concat(plan.turnPrefix)).toMatchObject([
      { id: "a", message: user("short") },
      { id: "b" },
      { id: "c" },
    ]);
    log.append([
      { type: "compaction", id: "k", summary: "s", firstKeptEntryId: "c", tokensBefore: 1 },
      replaced("c", user("later")),
      omitted("a"),
    ]);
    expect(textsIn(log).slice(1)).toEqual(["later", "d"]);
    log.append([{ type: "compaction_undone", targetId: "k" }]);
    expect(textsIn(log)).toEqual(["b", "later", "d"]);
  });

  test("invalidates earlier token counts", () => {
    const log = new SampleLog().say({ a: user("a".repeat(4000)), b: assistant("b", { usage: usage(5000) }) });
    expect(contextTokens(log.entries)).toBe(5000);
    log.append([omitted("a")]);
    expect(contextTokens(log.entries)).toBe(1);
    // The answer was requested before the edit, which was appended in the meantime.
    log.say({ c: assistant("c", { usage: usage(5001) }) });
    expect(contextTokens(log.entries)).toBe(2);
    log.say({ d: user("d"), e: assistant("e", { usage: usage(7) }) });
    expect(contextTokens(log.entries)).toBe(7);
  });
});

describe("an edit is refused", () => {
  const log = new SampleLog().say({ a: user("a"), b: calls("t"), c: result("t") });
  log.append([{ type: "custom", id: "data", customType: "x" }]);
  const cases: readonly [string, EntryDraft, string][] = [
    ["for an entry that models do not see", omitted("data"), "models do not see"],
    ["with another role", replaced("a", assistant("x")), "role"],
    ["with a result of another call", replaced("c", result("u")), "answers the call"],
    ["with a call that the answer does not have", replaced("b", calls("t", "u")), "no other call"],
    ["with one call twice", replaced("b", calls("t", "t")), "no other call"],
    ["with usage", replaced("b", assistant("x", { usage: usage(1) })), "usage"],
    ["with provider data", replaced("b", assistant("x", { providerData: {} })), "providerData"],
    ["if it undoes what is no edit", undone("a"), "not an edit"],
    [
      "if it undoes and edits at once",
      { type: "context_edit", undo: "a", targetId: "a", message: null },
      "other fields",
    ],
    ["without a target", { type: "context_edit", message: null }, "targetId is missing"],
    ["without a message", { type: "context_edit", targetId: "a" }, "give null"],
  ];
  test.each(cases)("%s", (_name, draft, words) => {
    expect(() => log.append([draft])).toThrow(words);
    expect(() => log.append([draft])).toThrow(expect.objectContaining({ code: "INVALID_ENTRY" }));
  });

  test("for an entry that does not exist", () => {
    expect(() => log.append([omitted("nowhere")])).toThrow(expect.objectContaining({ code: "UNKNOWN_ENTRY" }));
  });
});
