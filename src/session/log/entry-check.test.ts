import { describe, expect, test } from "vitest";
import { usage } from "../../../test/sample-log.ts";
import { checkDrafts } from "./draft.ts";
import { type EntryDraft, isKnownType, isNode } from "./entry.ts";
import { bodyProblem, checkMessage, stampProblem } from "./entry-check.ts";

type Fields = Record<string, unknown>;

/** Of each entry type a whole example, and for each field values that it must not have. */
const TYPES: Record<
  string,
  { node: boolean; whole: Fields; optional?: readonly string[]; wrong: Record<string, readonly unknown[]> }
> = {
  message: {
    node: true,
    whole: { message: { role: "user", content: "hi" }, setup: "s" },
    optional: ["setup"],
    wrong: { message: ["hi", null, [], {}, { role: "robot", content: "" }], setup: ["", 1, "a\nb"] },
  },
  compaction: {
    node: true,
    whole: { summary: "s", firstKeptEntryId: "e", tokensBefore: 9.5, details: null, usage: usage(1) },
    optional: ["details", "usage"],
    wrong: {
      summary: ["", 1, null],
      firstKeptEntryId: ["", null, "a\nb", "x".repeat(513)],
      tokensBefore: [-1, "9", null],
      usage: [null, 1, {}, { ...usage(1), inputTokens: -1 }, { ...usage(1), cacheReadTokens: "1" }],
    },
  },
  branch_summary: {
    node: true,
    whole: { summary: "", fromId: null, details: [1] },
    optional: ["details"],
    wrong: { summary: [null, 1], fromId: ["", 1, "\0"] },
  },
  custom_message: {
    node: true,
    whole: { customType: "note", content: [{ type: "text", text: "t" }], display: false, details: {} },
    optional: ["details"],
    wrong: { customType: ["", null], content: [null, 1, {}, [null], ["text"]], display: ["yes", 0, null] },
  },
  thinking_level_change: { node: true, whole: { thinkingLevel: "high" }, wrong: { thinkingLevel: ["", 3, null] } },
  model_change: {
    node: true,
    whole: { provider: "p", modelId: "m" },
    wrong: { provider: ["", null], modelId: ["", 1] },
  },
  variables: {
    node: true,
    whole: { set: { a: 1 }, unset: ["b"], systemPrompt: null, activeTools: ["t"], activeSkills: [] },
    optional: ["systemPrompt", "activeTools", "activeSkills"],
    wrong: {
      set: [null, [], "a"],
      unset: [null, "b", [1], {}],
      systemPrompt: [1, []],
      activeTools: ["t", [null], null],
      activeSkills: [{}, [1]],
    },
  },
  custom: {
    node: true,
    whole: { customType: "c", data: { any: [] } },
    optional: ["data"],
    wrong: { customType: ["", 1] },
  },
  setup: {
    node: true,
    whole: {
      ...{ agent: "helper", instructions: "Be brief.", instructionsDigest: "d", thinkingLevel: "high" },
      ...{ tools: [{ name: "pay", description: "", parameters: { type: "object" } }], toolChoice: { name: "pay" } },
      ...{ output: { type: "object" }, maxOutputTokens: 9, temperature: 0.5, stop: ["."], providerOptionsDigest: "d" },
      unchanged: { instructions: "a", tools: "b", output: "c" },
    },
    optional: [
      ...["instructions", "instructionsDigest", "tools", "thinkingLevel", "toolChoice", "output", "maxOutputTokens"],
      ...["temperature", "stop", "providerOptionsDigest", "unchanged"],
    ],
    wrong: {
      agent: ["", 1, null, "a\nb"],
      instructions: [1, null],
      instructionsDigest: ["", 1],
      tools: ["pay", [null], [{ name: "pay" }], [{ name: "", description: "", parameters: {} }]],
      thinkingLevel: ["", 1],
      toolChoice: ["pay", null, {}, { name: 1 }],
      output: [[], "text", null],
      maxOutputTokens: [-1, "9"],
      temperature: [-1, "hot"],
      stop: [".", [1]],
      providerOptionsDigest: ["", {}],
      unchanged: [null, [], { tools: "" }, { output: 1 }],
    },
  },
  leaf: { node: false, whole: { targetId: null }, wrong: { targetId: ["", 1, "a\n"] } },
  label: { node: false, whole: { targetId: "e", label: null }, wrong: { targetId: [null, "", 1], label: ["", 1] } },
  session_info: { node: false, whole: { name: "" }, wrong: { name: [null, 1] } },
  status: {
    node: false,
    whole: { status: "closed", reason: "r" },
    optional: ["reason"],
    wrong: { status: ["done", null], reason: [1, null] },
  },
  run: {
    node: false,
    whole: {
      ...{ runId: "r", phase: "failed", error: { message: "m" }, usage: usage(0), truncated: true },
      ...{ agent: "helper", model: "p/m", tools: ["pay"], setup: "s" },
    },
    optional: ["error", "usage", "truncated", "agent", "model", "tools", "setup"],
    wrong: {
      runId: ["", null],
      phase: ["ended", null],
      usage: [{}],
      truncated: ["yes"],
      agent: ["", "a\nb", 1],
      model: ["", 1],
      tools: ["pay", [1], null],
      setup: ["", 1],
    },
  },
  approval: {
    node: false,
    whole: { runId: "r", callId: "c", decision: true },
    optional: ["decision"],
    wrong: { runId: [""], callId: ["", 1] },
  },
  queued: {
    node: false,
    whole: { runId: "r", kind: "steer", content: "c" },
    wrong: { runId: [1], kind: ["follow-up"], content: [null, [{}]] },
  },
  compaction_undone: { node: false, whole: { targetId: "e" }, wrong: { targetId: ["", null] } },
  trailer: {
    node: false,
    whole: { closedAt: "2024-01-01T00:00:00.000Z", entryCount: 3, usage: usage(0) },
    wrong: { closedAt: ["2024-01-01", 5], entryCount: [-1, 1.5, "3"], usage: [null, {}] },
  },
  effect: { node: false, whole: { runId: "r", callId: "c" }, wrong: { runId: ["", null], callId: ["", null] } },
  prune: { node: false, whole: { targetId: "e" }, wrong: { targetId: ["", null] } },
};

const types = Object.entries(TYPES);
const wrongFields = types.flatMap(([type, { whole, wrong }]) =>
  Object.entries(wrong).flatMap(([field, values]) => values.map((value) => ({ type, field, value, whole }))),
);
const requiredFields = types.flatMap(([type, { whole, optional = [] }]) =>
  Object.keys(whole)
    .filter((field) => !optional.includes(field))
    .map((field) => ({ type, field, whole })),
);

describe("the entry types", () => {
  test.for(types)("%s is accepted, with and without its optional fields", ([type, { whole, optional = [] }]) => {
    const least = Object.fromEntries(Object.entries(whole).filter(([field]) => !optional.includes(field)));
    expect(accept({ type, ...whole })).toEqual({ type, ...whole });
    expect(accept({ type, ...least })).toEqual({ type, ...least });
  });

  test.for(types)("%s is known, and is a node or a fact as documented", ([type, { node }]) => {
    expect([isKnownType(type), isNode({ type })]).toEqual([true, node]);
  });

  test.for(requiredFields)("$type is refused without $field", ({ type, field, whole }) => {
    const { [field]: _, ...rest } = whole;
    expect(() => accept({ type, ...rest })).toThrow(expect.objectContaining({ code: "INVALID_ENTRY" }));
    expect(() => accept({ type, ...rest })).toThrow(`${field} is missing`);
  });

  test.for(wrongFields)("$type is refused with the $field $value", ({ type, field, value, whole }) => {
    const draft = { type, ...whole, [field]: value };
    expect(() => accept(draft)).toThrow(expect.objectContaining({ code: "INVALID_ENTRY" }));
    expect(() => accept(draft)).toThrow(`The entry ("${type}") is not valid: ${field} `);
  });

  test("an unknown field is accepted", () => {
    expect(accept({ type: "leaf", targetId: null, added: "later" })).toEqual({
      type: "leaf",
      targetId: null,
      added: "later",
    });
  });

  test("`node: true` makes a node of an unknown type only", () => {
    expect(isNode({ type: "hologram", node: true })).toBe(true);
    expect(isNode({ type: "hologram" })).toBe(false);
    expect(isNode({ type: "hologram", node: "true" })).toBe(false);
    expect(isNode({ type: "label", node: true })).toBe(false);
    expect(isNode({ type: "constructor" })).toBe(false);
  });
});

describe("a request for a run", () => {
  const request = { type: "run_request", runId: "r" };
  const messages = [
    { role: "system", content: "Be brief." },
    { role: "user", content: [{ type: "text", text: "hi" }] },
    { role: "assistant", content: "Hello." },
  ];

  test.each([
    [{}, "input is missing, and so are messages"],
    [{ input: "hi", messages }, "it has both input and messages"],
    [{ messages, group: "crew" }, "a group takes input, not messages"],
  ])("with %j is refused", (fields, problem) => {
    expect(bodyProblem({ ...request, ...fields })).toBe(problem);
  });

  test.each([
    [],
    {},
    "hi",
    ["hi"],
    [{ role: "tool", content: "paid" }],
    [{ role: "user", content: 5 }],
    [{ role: "user" }],
    [{ role: "assistant", content: null, toolCalls: [{ id: "1", name: "pay", arguments: "{}" }] }],
    [{ role: "assistant", content: "hi", cost: 5 }],
  ])("is refused with the messages %j, which are invalid or have fields that input must not have", (wrong) => {
    expect(bodyProblem({ ...request, messages: wrong })).toMatch(/^messages /);
  });

  test.each([{ input: "hi" }, { input: [] }, { input: "hi", group: "crew" }, { messages }])(
    "accepts content or messages: %j",
    (fields) => {
      expect(bodyProblem({ ...request, ...fields })).toBeNull();
    },
  );
});

describe("messages", () => {
  const parts = [
    { type: "text", text: "" },
    { type: "thinking", text: "hm", signature: "s" },
    { type: "image", mediaType: "image/png", data: "AA==" },
    { type: "file", mediaType: "text/plain", data: "AA==", name: "a.txt" },
  ];
  const good: Fields[] = [
    { role: "user", content: "" },
    { role: "user", content: [] },
    { role: "user", content: parts, agent: "a", metadata: { deep: [{}] } },
    { role: "system", content: "be kind" },
    { role: "assistant", content: null },
    {
      role: "assistant",
      content: parts,
      toolCalls: [{ id: "c", name: "n", arguments: "not json" }],
      provider: "p",
      model: "m",
      usage: { ...usage(1, 2), cacheReadTokens: 3, cacheWriteTokens: 0, reasoningTokens: 1 },
      cost: 0.25,
      stopReason: "length",
      providerData: [{ any: 1 }],
    },
    { role: "tool", toolCallId: "c", name: "", content: parts, isError: true },
  ];
  test.for(good)("accepts %j", (said) => {
    expect(accept({ type: "message", message: said })).toEqual({ type: "message", message: said });
  });

  test.for(["stop", "length", "tool_calls", "content_filter", "aborted", "error"])(
    "accepts the stop reason %s",
    (stopReason) => {
      expect(() => checkMessage({ role: "assistant", content: "x", stopReason })).not.toThrow();
    },
  );

  const user = { role: "user", content: "hi" };
  const answer = { role: "assistant", content: "hi" };
  const tool = { role: "tool", content: "x", toolCallId: "c", name: "n" };
  test.for<[Fields, string]>([
    [{ content: "hi" }, 'the role "undefined"'],
    [{ role: "constructor", content: "hi" }, 'the role "constructor"'],
    [{ role: "user" }, "content is missing"],
    [{ ...user, content: null }, "content is neither"],
    [{ ...user, content: [{ type: "text" }] }, "content has a part 0 that has no text"],
    [
      {
        ...user,
        content: [
          { type: "text", text: "" },
          { type: "thinking", text: 1 },
        ],
      },
      "content has a part 1 that has no text",
    ],
    [{ ...user, content: [{ type: "video", data: "" }] }, 'the unknown type "video"'],
    [{ ...user, content: [{ type: "image", data: "" }] }, "no mediaType"],
    [{ ...user, content: [{ type: "file", mediaType: "a/b" }] }, "no data"],
    [{ ...user, agent: 1 }, "agent is not a text"],
    [{ ...user, metadata: [] }, "metadata is not an object"],
    [{ ...user, role: "system", content: 1 }, "content is neither"],
    [{ role: "assistant" }, "content is missing"],
    [{ ...answer, toolCalls: {} }, "toolCalls is not a list"],
    [{ ...answer, toolCalls: [null] }, "toolCalls has a call without"],
    [{ ...answer, toolCalls: [{ id: "", name: "n", arguments: "" }] }, "toolCalls has a call without"],
    [{ ...answer, toolCalls: [{ id: "c", name: "", arguments: "" }] }, "toolCalls has a call without"],
    [{ ...answer, toolCalls: [{ id: "c", name: "n", arguments: {} }] }, "toolCalls has a call without"],
    [{ ...answer, provider: 1 }, "provider is not a text"],
    [{ ...answer, model: null }, "model is not a text"],
    [{ ...answer, usage: { inputTokens: 1, outputTokens: 1 } }, "usage has no valid totalTokens"],
    [{ ...answer, usage: { ...usage(1), reasoningTokens: null } }, "usage has no valid reasoningTokens"],
    [{ ...answer, cost: -1 }, "cost is not a number"],
    [{ ...answer, cost: "1" }, "cost is not a number"],
    [{ ...answer, stopReason: "tired" }, "stopReason is not one of"],
    [{ ...tool, toolCallId: "" }, "toolCallId is not a text, or empty"],
    [{ ...tool, toolCallId: undefined }, "toolCallId is missing"],
    [{ ...tool, name: undefined }, "name is missing"],
    [{ ...tool, content: null }, "content is neither"],
    [{ ...tool, isError: "no" }, "isError is not true or false"],
  ])("refuses %j", ([said, problem]) => {
    expect(() => accept({ type: "message", message: said })).toThrow(
      expect.objectContaining({ code: "INVALID_ENTRY" }),
    );
    expect(() => accept({ type: "message", message: said })).toThrow(problem);
    expect(() => checkMessage(said)).toThrow(problem);
  });
});

describe("the fields of every stored entry", () => {
  const stamp = { id: "e", parentId: null, timestamp: "2024-01-01T00:00:00.000Z" };
  test("are an id, a parent or null, and a time", () => {
    expect(stampProblem(stamp)).toBe(null);
    expect(stampProblem({ ...stamp, parentId: "__proto__" })).toBe(null);
  });

  test.for<[Fields, string]>([
    [{ id: "" }, "its id"],
    [{ id: undefined }, "its id"],
    [{ parentId: undefined }, "its parentId"],
    [{ parentId: "" }, "its parentId"],
    [{ timestamp: "yesterday" }, "its timestamp"],
    [{ timestamp: undefined }, "its timestamp"],
  ])("is refused with %j", ([change, problem]) => {
    expect(stampProblem({ ...stamp, ...change })).toContain(problem);
  });
});

test.for<Fields>([{}, { type: "" }, { type: 1 }, { type: null }])("an entry of the type %j has none", (body) => {
  expect(bodyProblem(body)).toBe("it has no type");
});

test("a type named like a member of objects is unknown, not a rule", () => {
  expect(bodyProblem({ type: "constructor" })).toBe(null);
  expect(() => accept({ type: "constructor" })).toThrow("unknown type");
});

function accept(draft: Fields): unknown {
  return checkDrafts([draft as unknown as EntryDraft], { verbatim: false })[0]?.body;
}
