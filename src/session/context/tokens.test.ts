import { describe, expect, test } from "vitest";
import { assistant, call, entryAt, result, user } from "../../../test/sample-log.ts";
import { entryTokens, estimateTextTokens, IMAGE_TOKENS, messageTokens } from "./tokens.ts";

const letters = (text: string) => text.length;

describe("the estimate", () => {
  test.for<[string, number]>([
    ["", 0],
    ["a", 1],
    ["abcd", 1],
    ["abcde", 2],
    ["x".repeat(4000), 1000],
  ])("of %j is %i tokens, a quarter of its characters rounded up", ([text, tokens]) => {
    expect(estimateTextTokens(text)).toBe(tokens);
  });

  test("of an image or a file is 1,200 tokens", () => {
    const image = { type: "image" as const, mediaType: "image/png", data: "x".repeat(99_999) };
    expect(IMAGE_TOKENS).toBe(1200);
    expect(messageTokens(user([image, { ...image, type: "file" }, { type: "text", text: "abcd" }]))).toBe(2401);
  });
});

describe("the tokens of a message", () => {
  test("are those of its text and its thinking", () => {
    expect(
      messageTokens(
        assistant([
          { type: "thinking", text: "abc" },
          { type: "text", text: "de" },
        ]),
        letters,
      ),
    ).toBe(5);
    expect(messageTokens(result("x", "abc"), letters)).toBe(3);
    expect(messageTokens(assistant(null), letters)).toBe(0);
  });

  test("and those of its tool calls", () => {
    expect(messageTokens(assistant("ab", { toolCalls: [call("x", "read", "{}"), call("y", "go", "")] }), letters)).toBe(
      10,
    );
  });
});

describe("the tokens of an entry", () => {
  test("are those of its messages for a model", () => {
    expect(entryTokens(entryAt(0, "a", null, { type: "message", message: user("abc") }), letters)).toBe(3);
    expect(
      entryTokens(
        entryAt(0, "a", null, { type: "custom_message", customType: "c", content: "abc", display: false }),
        letters,
      ),
    ).toBe(3);
  });

  test("of a compaction are those of its summary with its frame", () => {
    const of = (summary: string) =>
      entryTokens(
        entryAt(0, "a", null, { type: "compaction", summary, firstKeptEntryId: "b", tokensBefore: 9 }),
        letters,
      );
    expect(of("abcdef") - of("abc")).toBe(3);
    expect(of("")).toBeGreaterThan(10);
  });

  test("are 0 for entries that a model never sees", () => {
    expect(entryTokens(entryAt(0, "a", null, { type: "custom", customType: "c", data: "x".repeat(100) }))).toBe(0);
    expect(entryTokens(entryAt(0, "a", null, { type: "branch_summary", summary: " ", fromId: null }))).toBe(0);
    expect(entryTokens(entryAt(0, "a", null, { type: "session_info", name: "n" }))).toBe(0);
  });
});
