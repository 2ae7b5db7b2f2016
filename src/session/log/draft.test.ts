import { describe, expect, test } from "vitest";
import { message, user } from "../../../test/sample-log.ts";
import { type CheckedDraft, checkDrafts, giveDraft, type WholeDraft } from "./draft.ts";
import type { EntryDraft } from "./entry.ts";
import { APPEND_ENTRIES_MAX, ENTRY_BYTES_MAX } from "../limits.ts";

const plain = { verbatim: false };
const verbatim = { verbatim: true };

describe("checkDrafts", () => {
  test("keeps the caller's id and time, and marks the id as not generated", () => {
    const timestamp = "2024-01-01T00:00:00.000Z";
    expect(checkOne({ ...message("mine", user("hi")), timestamp })).toEqual({
      id: "mine",
      fresh: false,
      timestamp,
      parentId: undefined,
      body: { type: "message", message: user("hi") },
    });
  });

  test("generates a new id for each draft without one", () => {
    const [a, b] = checkDrafts([said("a"), said("b")], plain);
    expect([a?.fresh, b?.fresh]).toEqual([true, true]);
    expect(a?.id).toMatch(/^[0-9a-f-]{36}$/);
    expect(a?.id).not.toBe(b?.id);
    expect(a?.timestamp).toBe(null);
  });

  test("returns frozen copies, which later changes by the caller do not affect", () => {
    const part = { type: "text" as const, text: "before" };
    const draft = checkOne({ type: "message", message: { role: "user", content: [part] } });
    part.text = "after";
    expect(draft.body).toEqual({
      type: "message",
      message: { role: "user", content: [{ type: "text", text: "before" }] },
    });
    expect(() => Object.assign(draft.body, { type: "leaf" })).toThrow(TypeError);
  });

  test("drops a position, and a parent unless the draft is a copy of another log's entry", () => {
    const copied = { ...message("b", user("hi")), parentId: "a", seq: 7 };
    expect(checkOne(copied).parentId).toBe(undefined);
    expect(checkOne(copied).body).toEqual({ type: "message", message: user("hi") });
    expect(checkOne(copied, verbatim).parentId).toBe("a");
    expect(checkOne({ ...copied, parentId: null }, verbatim).parentId).toBe(null);
  });

  test("refuses an unknown type in a plain append and names it", () => {
    const draft = { type: "hologram", data: 1 } as unknown as EntryDraft;
    expect(() => checkOne(draft)).toThrow(expect.objectContaining({ code: "INVALID_ENTRY" }));
    expect(() => checkOne(draft)).toThrow('the unknown type "hologram"; use "custom"');
  });

  test("keeps an unknown type as it is in a copy of another log", () => {
    const draft = { type: "hologram", node: true, data: { deep: [1] } } as unknown as EntryDraft;
    expect(checkOne(draft, verbatim).body).toEqual(draft);
  });

  test.for([plain, verbatim])("never stores the placeholder of a salvaged file (%j)", (options) => {
    expect(() => checkOne({ type: "lost", reason: "r" }, options)).toThrow(
      expect.objectContaining({ code: "INVALID_ENTRY" }),
    );
  });

  test.for<[string, Record<string, unknown>, string]>([
    ["a hostile id", { id: "a\nb" }, "INVALID_ID"],
    ["an empty id", { id: "" }, "INVALID_ID"],
    ["a null id", { id: null }, "INVALID_ID"],
    ["a time that is none", { timestamp: "2024-02-30T00:00:00.000Z" }, "INVALID_ENTRY"],
    ["a Date as time", { timestamp: new Date() }, "INVALID_ENTRY"],
    ["no type", { type: undefined }, "INVALID_ENTRY"],
    ["a value that is not JSON", { extra: new Map() }, "INVALID_VALUE"],
    ["a key __proto__", JSON.parse('{"extra":{"__proto__":1}}'), "INVALID_VALUE"],
    ["an own __proto__", JSON.parse('{"__proto__":1}'), "INVALID_VALUE"],
  ])("refuses a draft with %s", ([, change, code]) => {
    expect(() =>
      checkOne(Object.defineProperties({ ...said("hi") }, Object.getOwnPropertyDescriptors(change))),
    ).toThrow(expect.objectContaining({ name: "SessionError", code }));
  });

  test("refuses a hostile parent of a copied entry", () => {
    expect(() => checkOne({ ...said("hi"), parentId: "a\nb" }, verbatim)).toThrow(
      expect.objectContaining({ code: "INVALID_ID" }),
    );
  });

  test("refuses a draft that throws when it is read, and keeps the reason", () => {
    const reason = new Error("gone");
    const draft = Object.defineProperty(said("hi"), "message", {
      enumerable: true,
      get: () => {
        throw reason;
      },
    });
    expect(() => checkOne(draft)).toThrow(expect.objectContaining({ code: "INVALID_VALUE", cause: reason }));
  });

  test.for([null, undefined, "text", 1, []])("refuses %j, which is no draft", (draft) => {
    expect(() => checkOne(draft as unknown as EntryDraft)).toThrow(expect.objectContaining({ code: "INVALID_ENTRY" }));
  });

  test("refuses a list with a hole", () => {
    const drafts: EntryDraft[] = [said("a")];
    drafts[2] = said("c");
    expect(() => checkDrafts(drafts, plain)).toThrow("Entry 1 is not an object");
  });

  test("refuses a value that is not a list", () => {
    expect(() => checkDrafts(said("a") as unknown as EntryDraft[], plain)).toThrow("not a list");
  });

  test("names the draft that is wrong among several", () => {
    const drafts = [said("a"), said("b"), { type: "leaf", targetId: "" } as EntryDraft];
    expect(() => checkDrafts(drafts, plain)).toThrow('Entry 2 ("leaf") is not valid: targetId');
  });

  test("accepts as many drafts as one append may have, and more only in a copy of a log", () => {
    const drafts = Array.from({ length: APPEND_ENTRIES_MAX + 1 }, () => said("x"));
    expect(checkDrafts(drafts.slice(1), plain)).toHaveLength(APPEND_ENTRIES_MAX);
    expect(() => checkDrafts(drafts, plain)).toThrow(expect.objectContaining({ code: "TOO_LARGE" }));
    expect(checkDrafts(drafts, verbatim)).toHaveLength(APPEND_ENTRIES_MAX + 1);
  });
});

describe("the size of an entry", () => {
  const room = ENTRY_BYTES_MAX - JSON.stringify({ type: "message", message: user("") }).length;

  test("is 8 MiB", () => {
    expect(ENTRY_BYTES_MAX).toBe(8_388_608);
  });

  test.for<[string, string, number]>([
    ["plain letters", "x", 1],
    ["letters of two bytes", "é", 2],
    ["letters of three bytes", "€", 3],
    ["emoji of four bytes", "😀", 4],
    ["quotes, which JSON escapes", '"', 2],
    ["control characters, which JSON escapes", "\u0001", 6],
  ])("is counted in bytes of JSON, exactly at the edge, for %s", ([, letter, bytes]) => {
    const fill = letter.repeat(Math.floor(room / bytes)) + "x".repeat(room % bytes);
    expect(() => checkOne(said(fill))).not.toThrow();
    expect(() => checkOne(said(`${fill}x`))).toThrow(expect.objectContaining({ code: "TOO_LARGE" }));
    expect(() => checkOne(said(`${fill}x`))).toThrow(`takes ${ENTRY_BYTES_MAX + 1} bytes`);
  });

  test("is counted over many small values and keys as well", () => {
    const numbers = Array.from({ length: 3_000_000 }, () => 12);
    expect(() => checkOne({ type: "custom", customType: "c", data: numbers })).toThrow(
      expect.objectContaining({ code: "TOO_LARGE" }),
    );
    const keys = Object.fromEntries(Array.from({ length: 200_000 }, (_, i) => [`${i}`.padStart(40, "k"), 1]));
    expect(() => checkOne({ type: "custom", customType: "c", data: keys })).toThrow(
      expect.objectContaining({ code: "TOO_LARGE" }),
    );
    expect(() => checkOne({ type: "custom", customType: "c", data: numbers.slice(0, 1_000_000) })).not.toThrow();
  });
});

function said(text: string): EntryDraft {
  return { type: "message", message: user(text) };
}

function checkOne(draft: EntryDraft, options = plain): CheckedDraft {
  return checkDrafts([draft], options)[0] as CheckedDraft;
}

describe("giveDraft", () => {
  const stamp = { id: "a", parentId: null, timestamp: "2024-01-01T00:00:00.000Z" };

  test("uses a given draft directly in a copied log, and a copy of it otherwise", () => {
    const draft: WholeDraft = { ...stamp, type: "message", message: user("hi") };
    expect(giveDraft(draft)).toBe(true);
    const [taken] = checkDrafts([draft], verbatim);
    expect(taken).toMatchObject({ ...stamp, fresh: false, body: { type: "message", message: user("hi") } });
    expect(Object.values(taken?.body ?? {})).toContain(draft.message);
    const [copied] = checkDrafts([draft], plain);
    expect(Object.values(copied?.body ?? {})).not.toContain(draft.message);
  });

  test.for<[string, object]>([
    ["an id that is none", { id: "" }],
    ["a time that is none", { timestamp: "today" }],
    ["a field that is missing", { type: "custom" }],
    ["a name that is too long", { type: "session_info", name: "n".repeat(1001) }],
    ["more bytes than an entry may take", { data: "x".repeat(ENTRY_BYTES_MAX) }],
    ["a key that is not allowed", { data: JSON.parse('{"__proto__":{}}') }],
    ["too deep a nesting", { data: JSON.parse(`${"[".repeat(250)}${"]".repeat(250)}`) }],
  ])("refuses a draft with %s", ([, own]) => {
    const whole = { type: "custom", ...stamp, ...("type" in own ? {} : { customType: "note" }), ...own };
    expect(giveDraft(whole as WholeDraft)).toBe(false);
  });
});
