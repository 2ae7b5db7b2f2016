import { describe, expect, test } from "vitest";
import { asking, callOf, calling, inShort, isWhole, someAgent, toolOf } from "../../../test/sample-run.ts";
import { scripted } from "../../models/scripted.ts";
import type { ToolMessage } from "../../session/message.ts";
import { runSessionLoop } from "../run-session-loop.ts";
import { failureOf, resultMessage, TOOL_RESULT_CHARACTERS_MAX } from "./tool-result.ts";

const call = callOf("a", "look");
const contentOf = (value: unknown): unknown => resultMessage(call, value).content;
const image = { type: "image", mediaType: "image/png", data: "aGk=" } as const;

describe("the result of a tool is sent to the model", () => {
  test.each([
    ["a text as it is", "plain", "plain"],
    ["an empty text as it is", "", ""],
    ["nothing as having worked", undefined, '{"ok":true}'],
    ["an object as JSON", { a: [1, null] }, '{"a":[1,null]}'],
    ["a number as JSON", 7, "7"],
    ["null as JSON", null, "null"],
    ["a list as JSON", [1, "two"], '[1,"two"]'],
    ["an empty list as JSON", [], "[]"],
    [
      "a list that only looks like parts as JSON",
      [{ type: "file", name: "a.txt" }],
      '[{"type":"file","name":"a.txt"}]',
    ],
    ["content parts as they are", [image, { type: "text", text: "a dot" }], [image, { type: "text", text: "a dot" }]],
    ["content as it is", { content: [image] }, [image]],
    ["an object with more than content as JSON", { content: "x", path: "y" }, '{"content":"x","path":"y"}'],
  ])("%s", (_name, value, content) => {
    expect(resultMessage(call, value)).toEqual({ role: "tool", toolCallId: "a", name: "look", content });
  });

  test("as an error if the tool says so", () => {
    expect(resultMessage(call, { content: "no luck", isError: true })).toMatchObject({
      content: "no luck",
      isError: true,
    });
  });

  test("as a copy that the tool cannot change later", () => {
    const part = { type: "text", text: "before" };
    const message = resultMessage(call, { content: [part] });
    part.text = "after";
    expect(message.content).toEqual([{ type: "text", text: "before" }]);
  });
});

const cycle: Record<string, unknown> = {};
cycle.self = cycle;
const trap = new Proxy(
  {},
  {
    has() {
      throw new Error("Do not look.");
    },
  },
);

describe("a result that cannot be sent to a model becomes an error result, for", () => {
  test.each([
    ["a cycle", cycle, /circular/i],
    ["a bigint", 10n, /BigInt/i],
    ["a bigint inside", { n: 10n }, /BigInt/i],
    ["a function", () => 1, /a function is not JSON/],
    ["a symbol", Symbol("x"), /a symbol is not JSON/],
    ["a toJSON that throws", { toJSON: () => JSON.parse("{") }, /JSON/],
    ["something that cannot be looked at", trap, /Do not look/],
    ["parts of a type that is not known", { content: [{ type: "video", data: "" }] }, /unknown type/],
    ["parts that are none", { content: [null] }, /part 0 that is not an object|null/],
    ["parts that JSON cannot carry", { content: [{ type: "text", text: "x", when: new Date(0) }] }, /Date/],
    ["images of more than some megabytes", { content: [{ ...image, data: "a".repeat(7 * 1024 * 1024) }] }, /limit/],
  ])("%s", (_name, value, reason) => {
    const message = resultMessage(call, value);
    expect(message.isError).toBe(true);
    const body = JSON.parse(message.content as string);
    expect(body).toEqual({ ok: false, error_kind: "tool_execution_exception", message: expect.stringMatching(reason) });
    expect(body.message).toMatch(/^The tool ran, but/);
  });
});

describe("a result that is too long", () => {
  test("of a hundred megabytes is cut, with its beginning and its end kept", () => {
    const content = contentOf(`first ${"x".repeat(100 * 1024 * 1024)} last`) as string;
    expect(content.length).toBeLessThan(TOOL_RESULT_CHARACTERS_MAX + 100);
    expect(content.startsWith("first xxx")).toBe(true);
    expect(content.endsWith("xxx last")).toBe(true);
    expect(content).toMatch(/\n… \d+ characters left out …\n/);
  });

  test("is cut as JSON and as parts, too, and images are kept whole", () => {
    const long = "y".repeat(TOOL_RESULT_CHARACTERS_MAX * 2);
    expect((contentOf({ long }) as string).length).toBeLessThan(TOOL_RESULT_CHARACTERS_MAX + 100);
    const parts = contentOf([{ type: "text", text: long }, image, { type: "text", text: "short" }]) as {
      text?: string;
    }[];
    expect(parts[0]?.text?.length).toBeLessThan(TOOL_RESULT_CHARACTERS_MAX);
    expect(parts.slice(1)).toEqual([image, { type: "text", text: "short" }]);
  });

  test("is never cut within a surrogate pair", () => {
    const content = contentOf(`a${"😀".repeat(TOOL_RESULT_CHARACTERS_MAX)}b`) as string;
    // A half alone does not survive being written as UTF-8.
    expect(Buffer.from(content, "utf8").toString("utf8") === content).toBe(true);
  });
});

test("the kind of a failure is read from its message, if it is a known kind", () => {
  const failed = (content: string): ToolMessage => ({
    role: "tool",
    toolCallId: "a",
    name: "look",
    content,
    isError: true,
  });
  expect(failureOf(failed('{"ok":false,"error_kind":"denied","message":"No."}'))).toBe("denied");
  expect(failureOf(failed('{"error_kind":"a secret"}'))).toBeNull();
  expect(failureOf(failed('{"error_kind":"toString"}'))).toBeNull();
  expect(failureOf(failed("not JSON"))).toBeNull();
  expect(failureOf({ ...failed('{"error_kind":"denied"}'), isError: false })).toBeNull();
});

test("a run sends images to the model as content parts, and invalid parts do not end it", async () => {
  const model = scripted([calling(callOf("1", "draw"), callOf("2", "cycle")), "Done."]);
  const session = await runSessionLoop(asking(), someAgent(), {
    model,
    tools: [toolOf("draw", () => ({ content: [image] })), toolOf("cycle", () => cycle)],
  });
  expect(model.requests[1]?.messages[3]).toMatchObject({ role: "tool", content: [image] });
  expect(inShort(model.requests[1]?.messages[4] as ToolMessage)).toMatch(/tool_execution_exception/);
  expect(isWhole(session.transcript)).toBe(true);
});
