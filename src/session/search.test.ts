import { describe, expect, test } from "vitest";
import { entryAt, header, result, user } from "../../test/sample-log.ts";
import { emptyHead } from "./log/fold.ts";
import {
  entryText,
  findTerm,
  headTexts,
  matchOf,
  parseSearch,
  SEARCH_CHARACTERS_MAX,
  type SearchTerm,
} from "./search.ts";

const shown = (query: string) =>
  parseSearch(query).map((term) => (term.type === "text" ? term.text : String(term.pattern)));

describe("parseSearch", () => {
  test.for<[string, readonly string[]]>([
    ["refund", ["refund"]],
    ["  Refund \t ORDER\n4711 ", ["refund", "order", "4711"]],
    ['"exact phrase"', ["exact phrase"]],
    ['a "B  c" d', ["a", "b  c", "d"]],
    ['a"b c"d', ["a", "b c", "d"]],
    ['"unterminated phrase', ["unterminated", "phrase"]],
    ['a "', ["a"]],
    ['"" a', ["a"]],
    ['"  " a', ["a"]],
    ["re:^ab+c$", ["/^ab+c$/iu"]],
    ["word re:a b  c ", ["word", "/a b  c/iu"]],
    ['"a phrase" re:"quoted" x', ["a phrase", '/"quoted" x/iu']],
    ['"re:phrase"', ["re:phrase"]],
    ['"see re:x"', ["see re:x"]],
    ['"a"re:x', ["a", "re:x"]],
    ["more:x", ["more:x"]],
    ["a.re:x", ["a.re:x"]],
    ["RE:x", ["re:x"]],
    ["a\nre:b\nc", ["a", "/b\\nc/iu"]],
  ])("reads %j", ([query, terms]) => {
    expect(shown(query)).toEqual(terms);
  });

  test.for<[string, unknown]>([
    ["nothing", ""],
    ["white space", " \t\n"],
    ["an empty phrase", '""'],
    ["quotes only", '"'],
    ["a blank phrase", '"  "'],
    ["no text", undefined],
    ["a pattern of nothing, which would match everything", "re:"],
    ["a blank pattern", "a re:  "],
    ["a pattern that is none", "re:("],
    ["another pattern that is none", "word re:[z-a]"],
    ["too many characters", "x".repeat(SEARCH_CHARACTERS_MAX + 1)],
  ])("refuses %s", ([, query]) => {
    expect(() => parseSearch(query as string)).toThrow(
      expect.objectContaining({ name: "SessionError", code: "INVALID_QUERY" }),
    );
  });

  test("refuses an invalid pattern by name, with the reason as the cause", () => {
    expect(() => parseSearch("re:(ab")).toThrow('"(ab" is not a regular expression');
    expect(() => parseSearch("re:(ab")).toThrow(expect.objectContaining({ cause: expect.any(SyntaxError) }));
  });

  test("accepts as many characters as the limit", () => {
    expect(shown("x".repeat(SEARCH_CHARACTERS_MAX))).toHaveLength(1);
  });
});

describe("findTerm", () => {
  const found = (query: string, text: string) => {
    const term = parseSearch(query)[0] as SearchTerm;
    return findTerm(text, term);
  };

  test("finds a text in any case, anywhere", () => {
    expect(found("ORDER", "my Order")).toEqual({ index: 3, length: 5 });
    expect(found("der", "my Order")).toEqual({ index: 5, length: 3 });
    expect(found("ÄRGER", "kein ärger")).toEqual({ index: 5, length: 5 });
    expect(found("order", "none")).toBe(null);
  });

  test("treats a word as text, not as a pattern", () => {
    expect(found("a.c", "abc")).toBe(null);
    expect(found("(", "a ( b")).toEqual({ index: 2, length: 1 });
  });

  test("finds a phrase only verbatim", () => {
    expect(found('"two words"', "the two words here")).toEqual({ index: 4, length: 9 });
    expect(found('"two words"', "two  words")).toBe(null);
    expect(found('"two words"', "words two")).toBe(null);
  });

  test("finds a pattern in any case, the same way each time", () => {
    const term = parseSearch("re:o\\d+")[0] as SearchTerm;
    expect(findTerm("xx O42", term)).toEqual({ index: 3, length: 3 });
    expect(findTerm("xx O42", term)).toEqual({ index: 3, length: 3 });
    expect(findTerm("o", term)).toBe(null);
    expect(found("re:.😀", "a😀")).toEqual({ index: 0, length: 3 });
  });
});

describe("the texts that a search covers", () => {
  test("is the id, the name and the cwd of a session", () => {
    expect(headTexts(emptyHead(header()))).toEqual(["sample"]);
    expect(headTexts({ ...emptyHead(header({ cwd: "/home" })), name: "Refund" })).toEqual([
      "sample",
      "Refund",
      "/home",
    ]);
  });

  test("is the text of messages and custom messages, without other entries of the log", () => {
    const text = user([
      { type: "text", text: "a" },
      { type: "thinking", text: "hidden" },
      { type: "text", text: "b" },
    ]);
    expect(entryText(entryAt(0, "a", null, { type: "message", message: text }))).toBe("a\nb");
    expect(entryText(entryAt(0, "a", null, { type: "message", message: result("x", "found") }))).toBe("found");
    expect(
      entryText(entryAt(0, "a", null, { type: "custom_message", customType: "c", content: "shown", display: true })),
    ).toBe("shown");
    expect(entryText(entryAt(0, "a", null, { type: "session_info", name: "name" }))).toBe("");
    expect(
      entryText(entryAt(0, "a", null, { type: "compaction", summary: "s", firstKeptEntryId: "b", tokensBefore: 1 })),
    ).toBe("");
  });
});

describe("matchOf", () => {
  const entry = entryAt(7, "e", null, { type: "message", message: user("x") });
  const snippet = (text: string, word: string) =>
    matchOf(entry, text, { index: text.indexOf(word), length: word.length }).text;

  test("returns the id of the entry and its position", () => {
    expect(matchOf(entry, "a word", { index: 2, length: 4 })).toEqual({ entryId: "e", seq: 7, text: "a word" });
  });

  test("shows the text around the match on one line, with dots at cuts", () => {
    const text = `${"a ".repeat(100)}needle\n\tin${" b".repeat(100)}`;
    expect(snippet(text, "needle")).toMatch(/^…a a .* a needle in b .* b…$/);
    expect(snippet(text, "needle").length).toBeLessThanOrEqual(122);
    expect(snippet("needle in hay", "needle")).toBe("needle in hay");
  });

  test("does not cut an emoji in half on either side", () => {
    for (const [before, after] of [
      ["", ""],
      ["x", ""],
      ["", "y"],
      ["x", "y"],
    ]) {
      const text = `${"😀".repeat(100)}${before}needle${after}${"😀".repeat(100)}`;
      expect(snippet(text, "needle")).toMatch(/^…(?:😀)+x?needley?(?:😀)+…$/u);
    }
  });
});
