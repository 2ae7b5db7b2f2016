import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assistant, call, calls, result, SampleLog, user } from "../../../test/sample-log.ts";
import { acceptable, buildContext } from "./context.ts";
import type { AssistantMessage, Message, ToolMessage } from "../message.ts";

/** A short form of a conversation: `u`, `a`, `a(ids)`, and `id=text` for a result, `id!` for an error put in its place. */
function brief(messages: readonly Message[]): string {
  return messages
    .map((message) => {
      if (message.role === "tool")
        return message.isError === true ? `${message.toolCallId}!` : `${message.toolCallId}=${message.content}`;
      if (message.role !== "assistant") return "u";
      return message.toolCalls === undefined ? "a" : `a(${message.toolCalls.map(({ id }) => id).join(" ")})`;
    })
    .join(" ");
}

describe("assistant messages", () => {
  test.for<[string, Partial<AssistantMessage>]>([
    ["nothing", { content: null }],
    ["an empty text", { content: "" }],
    ["white space", { content: " \n\t" }],
    ["no parts", { content: [] }],
    [
      "empty parts",
      {
        content: [
          { type: "text", text: "" },
          { type: "thinking", text: " " },
        ],
      },
    ],
    ["an empty list of calls", { content: "", toolCalls: [] }],
    ["an error", { content: "half of a", stopReason: "error" }],
  ])("with %s are left out", ([, fields]) => {
    expect(brief(acceptable([user("1"), assistant(null, fields), user("2")]))).toBe("u u");
  });

  test.for<[string, Partial<AssistantMessage>]>([
    ["text", { content: "x" }],
    [
      "a text part",
      {
        content: [
          { type: "text", text: "" },
          { type: "text", text: "x" },
        ],
      },
    ],
    ["thinking", { content: [{ type: "thinking", text: "hm" }] }],
    ["an image", { content: [{ type: "image", mediaType: "image/png", data: "" }] }],
    ["text that was cut short by an abort", { content: "half", stopReason: "aborted" }],
    ["text that was cut by length", { content: "half", stopReason: "length" }],
  ])("with %s stay", ([, fields]) => {
    expect(brief(acceptable([assistant(null, fields)]))).toBe("a");
  });

  test("empty messages of users and systems stay", () => {
    expect(acceptable([user(""), { role: "system", content: "" }])).toHaveLength(2);
  });
});

describe("calls and results", () => {
  test("that belong together are unchanged", () => {
    const messages = [user("1"), calls("x", "y"), result("x"), result("y"), assistant("done")];
    expect(acceptable(messages)).toEqual(messages);
  });

  test("a call without a result gets an error in its place", () => {
    const [, , missing] = acceptable([user("1"), assistant("on it", { toolCalls: [call("x", "write")] }), user("2")]);
    expect(missing).toMatchObject({ role: "tool", toolCallId: "x", name: "write", isError: true });
    expect(JSON.parse((missing as ToolMessage).content as string)).toMatchObject({
      ok: false,
      error_kind: "interrupted",
    });
  });

  test("each call of an answer gets a result", () => {
    expect(brief(acceptable([calls("x", "y", "z"), result("y", "1"), user("2")]))).toBe("a(x y z) x! y=1 z! u");
  });

  test("a call without text in its message is not an empty message", () => {
    expect(brief(acceptable([assistant("", { toolCalls: [call("x")] }), result("x", "1")]))).toBe("a(x) x=1");
  });

  test("results come directly after their call, in the order of the calls", () => {
    expect(brief(acceptable([calls("x", "y"), user("between"), result("y", "1"), result("x", "2")]))).toBe(
      "a(x y) x=2 y=1 u",
    );
  });

  test("a result without a call, or before it, is left out", () => {
    expect(brief(acceptable([result("x"), user("1"), result("y")]))).toBe("u");
    expect(brief(acceptable([result("x"), calls("x")]))).toBe("a(x) x!");
  });

  test("of two results of one call the first is used", () => {
    expect(brief(acceptable([calls("x"), result("x", "1"), user("2"), result("x", "2")]))).toBe("a(x) x=1 u");
  });

  test("a failed answer is left out with its calls and their results", () => {
    expect(
      brief(
        acceptable([user("1"), { ...(calls("x") as AssistantMessage), stopReason: "error" }, result("x"), user("2")]),
      ),
    ).toBe("u u");
  });

  test("a call that was cut short by an abort gets its error", () => {
    expect(brief(acceptable([{ ...(calls("x") as AssistantMessage), stopReason: "aborted" }]))).toBe("a(x) x!");
  });

  test("an id that later answers reuse refers to the latest call", () => {
    const messages = [calls("call_0"), result("call_0", "1"), calls("call_0"), result("call_0", "2")];
    expect(acceptable(messages)).toEqual(messages);
    expect(brief(acceptable([calls("call_0"), calls("call_0"), result("call_0", "2")]))).toBe(
      "a(call_0) call_0! a(call_0) call_0=2",
    );
  });

  test("an id that one answer uses twice gets its results in order", () => {
    expect(brief(acceptable([calls("x", "x"), result("x", "1"), result("x", "2")]))).toBe("a(x x) x=1 x=2");
    expect(brief(acceptable([calls("x", "x"), result("x", "1")]))).toBe("a(x x) x=1 x!");
  });

  test("an id like __proto__ works as any other", () => {
    expect(brief(acceptable([calls("__proto__", "constructor"), result("constructor", "1")]))).toBe(
      "a(__proto__ constructor) __proto__! constructor=1",
    );
  });

  test("a result whose call a compaction dropped is left out of the context", () => {
    const log = new SampleLog().say({ a: calls("x"), b: result("x"), c: user("1") });
    log.append([{ type: "compaction", summary: "s", firstKeptEntryId: "b", tokensBefore: 1 }]);
    expect(brief(buildContext(log.entries).messages)).toBe("u u");
  });

  test("a session that was interrupted during a tool call has a valid context, and its log does not change", () => {
    const log = new SampleLog().say({ a: user("1"), b: calls("x") });
    expect(brief(buildContext(log.entries).messages)).toBe("u a(x) x!");
    expect(log.entries).toHaveLength(2);
  });
});

test("for any messages, each call is followed by exactly its results, and no result is anywhere else", () => {
  const id = fc.constantFrom("x", "y", "z");
  const any: fc.Arbitrary<Message> = fc.oneof(
    fc.constant(user("u")),
    fc.array(id, { maxLength: 3 }).map((ids) => calls(...ids)),
    fc.constant(assistant("a")),
    fc.constant(assistant("bad", { stopReason: "error", toolCalls: [call("x")] })),
    id.map((callId) => result(callId)),
  );
  fc.assert(
    fc.property(fc.array(any, { maxLength: 20 }), (messages) => {
      const open: string[] = [];
      for (const message of acceptable(messages)) {
        if (message.role === "tool") expect(message.toolCallId).toBe(open.shift());
        else expect(open).toEqual([]);
        if (message.role === "assistant") open.push(...(message.toolCalls ?? []).map((each) => each.id));
      }
      expect(open).toEqual([]);
      expect(acceptable(acceptable(messages))).toEqual(acceptable(messages));
    }),
    { numRuns: 500 },
  );
});
