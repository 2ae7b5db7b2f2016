import { describe, expect, test } from "vitest";
import { checkCwd, checkName, checkSessionId, isSessionId } from "./id.ts";
import { CWD_CHARACTERS_MAX, ID_CHARACTERS_MAX } from "./limits.ts";

describe("a session id", () => {
  test.for(["a", "7", "a-b", "A.b_c-9", "018f3c6e-7b1a-7c00-8000-000000000001", "a..b", "x".repeat(128)])(
    "may be %s",
    (id) => {
      expect(isSessionId(id)).toBe(true);
      expect(() => checkSessionId(id)).not.toThrow();
    },
  );

  test.for<[string, unknown]>([
    ["nothing", ""],
    ["129 characters", "x".repeat(129)],
    ["a dot", "."],
    ["the folder above", ".."],
    ["a hidden file", ".git"],
    ["a trailing dot", "a."],
    ["a leading dash, which programs take for an option", "-rf"],
    ["a leading underscore", "_a"],
    ["a trailing underscore", "a_"],
    ["a way out of the folder", "../a"],
    ["a path", "a/b"],
    ["a path of Windows", "a\\b"],
    ["a drive of Windows", "c:a"],
    ["a line break at the end", "a\n"],
    ["a NUL in the middle", "a\0b"],
    ["a space", "a b"],
    ["a quote", "a'b"],
    ["a semicolon", "a;b"],
    ["a percent sign", "a%2fb"],
    ["a wildcard", "a*"],
    ["a letter with an accent", "é"],
    ["letters of full width", "ａｂ"],
    ["a key of objects", "__proto__"],
    ["an emoji", "😀"],
    ["a number", 7],
    ["null", null],
    ["undefined", undefined],
    ["a list with an id in it", ["a"]],
    ["an object that turns into an id", { toString: () => "a" }],
  ])("is not %s", ([, id]) => {
    expect(isSessionId(id)).toBe(false);
    expect(() => checkSessionId(id)).toThrow(expect.objectContaining({ name: "SessionError", code: "INVALID_ID" }));
  });

  test("is shown in the refusal, cut and with its control characters escaped", () => {
    expect(() => checkSessionId("a\n\u001b[31m")).toThrow('"a\\n\\u001b[31m" is not a session id');
    const message = messageOf(() => checkSessionId("!".repeat(10_000)));
    expect(message).toContain(`"${"!".repeat(80)}…"`);
    expect(message.length).toBeLessThan(300);
    expect(messageOf(() => checkSessionId(null))).toContain('"null" is not');
  });
});

describe("the id of an entry, a user, a run or a checkpoint", () => {
  test.for([
    "a",
    "__proto__",
    "constructor",
    "../../etc/passwd",
    "a b",
    "ünïcode 😀",
    "'; drop table",
    "x".repeat(ID_CHARACTERS_MAX),
  ])("may be %s", (id) => {
    expect(() => checkName(id, "an entry")).not.toThrow();
  });

  test.for<[string, unknown]>([
    ["nothing", ""],
    ["513 characters", "x".repeat(513)],
    ["a line break", "a\nb"],
    ["a NUL", "\0"],
    ["a tab", "a\tb"],
    ["an escape", "\u001b[2J"],
    ["a delete", "a\u007f"],
    ["the first half of a surrogate pair", "a\ud83d"],
    ["the first half of a pair before a letter", "\ud83da"],
    ["the second half of a surrogate pair", "\ude00a"],
    ["a surrogate pair in the wrong order", "\ude00\ud83d"],
    ["two second halves", "\ude00\ude00"],
    ["a number", 1],
    ["null", null],
    ["an object", {}],
  ])("is not %s", ([, id]) => {
    expect(() => checkName(id, "an entry")).toThrow(expect.objectContaining({ code: "INVALID_ID" }));
    expect(() => checkName(id, "an entry")).toThrow("is not an entry id");
  });

  test("ends at 512 characters", () => {
    expect(ID_CHARACTERS_MAX).toBe(512);
  });
});

describe("a working directory", () => {
  test.for(["/", "/home/me/my project", "C:\\Users\\me", "/ü/😀", `/${"x".repeat(CWD_CHARACTERS_MAX - 1)}`])(
    "may be %s",
    (cwd) => {
      expect(() => checkCwd(cwd)).not.toThrow();
    },
  );

  test.for<[string, unknown]>([
    ["nothing", ""],
    ["a path with a line break", "/a\nb"],
    ["a path with a NUL", "/a\0b"],
    ["too long a path", `/${"x".repeat(CWD_CHARACTERS_MAX)}`],
    ["a number", 1],
    ["undefined", undefined],
  ])("is not %s", ([, cwd]) => {
    expect(() => checkCwd(cwd)).toThrow(expect.objectContaining({ code: "INVALID_HEADER" }));
  });
});

function messageOf(act: () => void): string {
  try {
    act();
  } catch (error) {
    return (error as Error).message;
  }
  return "";
}
