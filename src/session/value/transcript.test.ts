import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { ContentPart, Message } from "../message.ts";
import { assistantRow, type RowInit, rowOf, systemRow, Transcript, toolResultRow, userRow } from "./transcript.ts";

const says = (content: string): Message => ({ role: "user", content });
const call = { id: "call-1", name: "read", arguments: "{}" };

describe("rows", () => {
  test("have their kind, and a message in a provider-independent form", () => {
    const transcript = Transcript.of([
      systemRow("Be brief."),
      userRow([{ type: "text", text: "Read it" }]),
      assistantRow([call]),
      toolResultRow("call-1", "read", { ok: true }),
      assistantRow([], "Done"),
    ]);
    expect(transcript.rows.map(({ kind }) => kind)).toEqual([
      "system",
      "user",
      "assistant",
      "tool_result",
      "assistant",
    ]);
    expect(transcript.toMessages()).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: [{ type: "text", text: "Read it" }] },
      { role: "assistant", content: null, toolCalls: [call] },
      { role: "tool", toolCallId: "call-1", name: "read", content: '{"ok":true}' },
      { role: "assistant", content: "Done" },
    ]);
    expect(new Set(transcript.rows.map(({ id }) => id)).size).toBe(5);
  });

  test.for<[string, unknown, unknown]>([
    ["a text as it is", "plain", "plain"],
    ["content parts as they are", [{ type: "image", mediaType: "image/png", data: "AAAA" }], undefined],
    ["a list that only looks like parts as JSON", [{ type: "text", title: "x" }], '[{"type":"text","title":"x"}]'],
    ["an empty list as JSON", [], "[]"],
    ["nothing as JSON", undefined, "null"],
    ["a number as JSON", 5, "5"],
  ])("of tools take %s", ([, body, content]) => {
    expect(toolResultRow("c", "tool", body).message.content).toEqual(content ?? body);
  });

  test("keep a given id, and get a new one otherwise", () => {
    const message: Message = { role: "user", content: "Hi" };
    expect(rowOf({ message, id: "entry-1" }).id).toBe("entry-1");
    expect(rowOf({ message }).id).not.toBe(rowOf({ message }).id);
    expect(() => rowOf({ message, id: "a\nb" })).toThrow(expect.objectContaining({ code: "INVALID_ID" }));
  });

  const getter = (key: string, read: () => unknown) => Object.defineProperty({}, key, { get: read, enumerable: true });
  test.for<[string, unknown, string]>([
    ["nothing", null, "INVALID_ENTRY"],
    ["a text", "hello", "INVALID_ENTRY"],
    ["no message", {}, "INVALID_ENTRY"],
    ["a role of Object.prototype", { message: { role: "constructor", content: "x" } }, "INVALID_ENTRY"],
    ["no content", { message: { role: "user" } }, "INVALID_ENTRY"],
    ["content that is a number", { message: { role: "user", content: 5 } }, "INVALID_ENTRY"],
    ["a part of no known type", { message: { role: "user", content: [{ type: "video" }] } }, "INVALID_ENTRY"],
    [
      "a call without arguments",
      { message: { role: "assistant", content: null, toolCalls: [{ id: "a", name: "b" }] } },
      "INVALID_ENTRY",
    ],
    ["a kind that is not its role's", { kind: "system", message: { role: "user", content: "x" } }, "INVALID_ENTRY"],
    ["a function", { message: { role: "user", content: "x", metadata: { run() {} } } }, "INVALID_VALUE"],
    ["a class instance", { message: new Date() }, "INVALID_VALUE"],
    [
      "a __proto__ key",
      { message: JSON.parse('{"role":"user","content":"x","metadata":{"__proto__":{}}}') },
      "INVALID_VALUE",
    ],
    [
      "a getter that throws",
      {
        message: getter("role", () => {
          throw new Error("boo");
        }),
      },
      "INVALID_VALUE",
    ],
  ])("with %s are refused, and the transcript stays as it was", ([, row, code]) => {
    const transcript = Transcript.of([userRow("Hi")]);
    expect(() => transcript.append(userRow("fine"), row as RowInit)).toThrow(expect.objectContaining({ code }));
    expect(transcript.length).toBe(1);
  });

  test("read each field once, so that no getter can pass the check with another value", () => {
    let reads = 0;
    const id = () => (reads++ === 0 ? "fine" : "not\nfine");
    const row = rowOf(Object.assign(getter("id", id), { message: { role: "user", content: "x" } }) as RowInit);
    expect([row.id, reads]).toEqual(["fine", 1]);
  });
});

describe("a transcript", () => {
  test("does not change when the arguments or results change", () => {
    const part = { type: "text" as const, text: "one" };
    const content: ContentPart[] = [part];
    const init = { message: { role: "user" as const, content, metadata: { tags: ["a"] } } };
    const transcript = Transcript.of([init]);
    part.text = "two";
    content.push({ type: "text", text: "three" });
    init.message.metadata.tags.push("b");
    const expected = [{ role: "user", content: [{ type: "text", text: "one" }], metadata: { tags: ["a"] } }];
    expect(transcript.toMessages()).toEqual(expected);
    const [given] = transcript.toMessages() as unknown as [{ content: { text: string }[] }];
    expect(() => Object.assign(given, { content: "x" })).toThrow(TypeError);
    expect(() => given.content.push({ text: "x" })).toThrow(TypeError);
    expect(() => Object.assign(given.content[0] as object, { text: "x" })).toThrow(TypeError);
    expect(() => (transcript.rows as unknown[]).push(1)).toThrow(TypeError);
    expect(() => Object.assign(transcript.at(0) as object, { kind: "system" })).toThrow(TypeError);
    transcript.toMessages().pop();
    expect(transcript.toMessages()).toEqual(expected);
  });

  test("returns its rows by index, from both ends", () => {
    const transcript = Transcript.of([userRow("a"), userRow("b")]);
    expect([0, 1, -1, -2].map((index) => transcript.at(index)?.message.content)).toEqual(["a", "b", "b", "a"]);
    expect([2, -3, 0.5, Number.NaN].map((index) => transcript.at(index))).toEqual(Array(4).fill(undefined));
    expect([...transcript]).toEqual(transcript.rows);
  });

  test("shares its 100,000 rows with all that are appended to it", () => {
    const rows = Array.from({ length: 100_000 }, (_, index) => userRow(`turn ${index}`));
    const long = Transcript.of(rows);
    const [left, right] = [long.append(userRow("left")), long.append(userRow("right"))];
    expect([long.length, left.length, right.length]).toEqual([100_000, 100_001, 100_001]);
    for (const index of [0, 31, 32, 50_000, 99_999]) {
      expect(left.at(index)).toBe(rows[index]);
      expect(right.at(index)).toBe(rows[index]);
    }
    expect([left.at(-1)?.message.content, right.at(-1)?.message.content]).toEqual(["left", "right"]);
    expect(long.append()).toBe(long);
    expect(left.concat(Transcript.empty)).toBe(left);
  });

  test("concatenates another; a row that is in both gets a new id and keeps its message", () => {
    const shared = Transcript.of([userRow("shared")]);
    const [left, right] = [shared.append(userRow("left")), shared.append(userRow("right"))];
    const joined = left.concat(right);
    expect(joined.rows.map(({ message }) => message.content)).toEqual(["shared", "left", "shared", "right"]);
    expect(new Set(joined.rows.map(({ id }) => id)).size).toBe(4);
    expect(joined.at(2)?.message).toBe(shared.at(0)?.message);
    expect(joined.at(3)).toBe(right.at(1));
    expect(new Set(joined.concat(joined).rows.map(({ id }) => id)).size).toBe(8);
  });

  test("reads each id once, even if rows are added many times to it or its copies", () => {
    const adds = vi.spyOn(Set.prototype, "add");
    onTestFinished(() => adds.mockRestore());
    const countOf = (work: () => unknown): number => {
      const before = adds.mock.calls.length;
      work();
      return adds.mock.calls.length - before;
    };
    let rows = Transcript.of(Array.from({ length: 50_000 }, (_, index) => ({ id: `r${index}`, message: says("x") })));
    const other = Transcript.of([
      { id: "r7", message: says("again") },
      { id: "new", message: says("new") },
    ]);
    let joined = rows.concat(other);
    expect(joined.at(-1)?.id).toBe("new");
    expect(joined.at(-2)?.id).not.toBe("r7");
    expect(countOf(() => rows.concat(other))).toBe(0);
    expect(countOf(() => joined.concat(other))).toBeLessThan(100);
    rows = rows.append({ id: "later", message: says("later") });
    expect(
      countOf(() => (joined = rows.concat(Transcript.of([{ id: "later", message: says("twice") }])))),
    ).toBeLessThan(100);
    expect(joined.at(-1)?.id).not.toBe("later");
    // If as many rows are added as exist, one set is made of all.
    const many = countOf(() => (joined = rows.concat(rows)));
    expect([many, new Set(joined.rows.map(({ id }) => id)).size]).toEqual([rows.length, 2 * rows.length]);
  });

  test("has the stored position of its beginning, also after rows are appended", () => {
    const store = {};
    const kept = Transcript.withOrigin(Transcript.of([userRow("a")]), { store, sessionId: "s", entryId: "e" });
    const origin = { store, sessionId: "s", entryId: "e", length: 1 };
    expect(Transcript.originOf(kept)).toEqual(origin);
    expect(Transcript.originOf(kept.append(userRow("b")))).toEqual(origin);
    expect(Transcript.originOf(Transcript.of(kept))).toBeNull();
  });
});
