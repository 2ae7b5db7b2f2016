import { describe, expect, test } from "vitest";
import { assistant, entryAt, nodesOf, SampleLog, usage, user } from "../../../test/sample-log.ts";
import { buildContext, compactionMessage, contextPath, messagesOf, type ModelContext } from "./context.ts";
import { branchTo, indexEntries, undoneIds } from "../log/entry-tree.ts";
import type { EntryBody, EntryDraft } from "../log/entry.ts";
import { textOf } from "../message.ts";

const compaction = (id: string, firstKeptEntryId: string, summary = id): EntryDraft => ({
  type: "compaction",
  id,
  summary,
  firstKeptEntryId,
  tokensBefore: 1,
});

const textsOf = (context: ModelContext) => context.messages.map((message) => textOf(message.content));
const summaryText = (summary: string) => textOf(compactionMessage(summary).content);

describe("rule 1: settings", () => {
  test("are off and unset on an empty path", () => {
    expect(buildContext([])).toEqual({
      messages: [],
      thinkingLevel: "off",
      model: null,
      variables: {},
      systemPrompt: null,
      activeTools: [],
      activeSkills: [],
    });
  });

  test("are the last on the path, also from before a compaction", () => {
    const log = new SampleLog();
    log.append([
      { type: "thinking_level_change", thinkingLevel: "low" },
      { type: "thinking_level_change", thinkingLevel: "high" },
      {
        type: "variables",
        set: { x: 1, y: 1 },
        unset: [],
        systemPrompt: "be kind",
        activeTools: ["t"],
        activeSkills: ["s"],
      },
      { type: "variables", set: {}, unset: ["y"] },
      { type: "model_change", provider: "p", modelId: "chosen" },
    ]);
    log.say({ a: user("1") });
    log.append([compaction("c", "a")]);
    log.say({ b: user("2") });
    expect(buildContext(log.entries)).toMatchObject({
      thinkingLevel: "high",
      model: { provider: "p", modelId: "chosen" },
      variables: { x: 1 },
      systemPrompt: "be kind",
      activeTools: ["t"],
      activeSkills: ["s"],
    });
  });

  test("take the model from an assistant's own message, also from one that the context leaves out", () => {
    const log = new SampleLog();
    log.append([{ type: "model_change", provider: "p", modelId: "chosen" }]);
    log.say({ a: assistant("1", { provider: "q", model: "used" }), b: user("2") });
    log.append([compaction("c", "b")]);
    expect(buildContext(log.entries).model).toEqual({ provider: "q", modelId: "used" });
    log.append([{ type: "model_change", provider: "p", modelId: "again" }]);
    expect(buildContext(log.entries).model).toEqual({ provider: "p", modelId: "again" });
  });

  test("are those of the branch", () => {
    const log = new SampleLog().say({ a: user("1") });
    log.append([
      { type: "thinking_level_change", id: "t", thinkingLevel: "high" },
      { type: "leaf", targetId: "a" },
    ]);
    expect(buildContext(log.entries).thinkingLevel).toBe("off");
    expect(buildContext(log.entries, "t").thinkingLevel).toBe("high");
  });
});

describe("rules 2 and 4: a compaction", () => {
  const log = new SampleLog().say({ a: user("1"), b: assistant("2"), c: user("3"), d: assistant("4") });
  log.append([compaction("k", "c", "what was")]);
  log.say({ e: user("5") });

  test("yields its summary, then the kept entries, then the later ones", () => {
    expect(textsOf(buildContext(log.entries))).toEqual([summaryText("what was"), "3", "4", "5"]);
    expect(buildContext(log.entries).messages[0]?.role).toBe("user");
    expect(summaryText("what was")).toContain("<summary>\nwhat was\n</summary>");
  });

  test("applies only after its position", () => {
    expect(textsOf(buildContext(log.entries, "d"))).toEqual(["1", "2", "3", "4"]);
    expect(textsOf(buildContext(log.entries, "k"))).toEqual([summaryText("what was"), "3", "4"]);
  });

  test("keeps nothing when the first kept entry is not on the path", () => {
    for (const firstKept of ["nowhere", "side", "k", "later"]) {
      const other = new SampleLog().say({ a: user("1"), b: user("2") });
      other.append([{ type: "message", id: "side", message: user("side") }], { onto: "a" });
      other.append([compaction("k", firstKept, "s")]);
      other.say({ later: user("3") });
      expect(textsOf(buildContext(other.entries)), firstKept).toEqual([summaryText("s"), "3"]);
    }
  });

  test("the latest on the path is used, and older ones contribute nothing, even if they were kept", () => {
    const twice = new SampleLog().say({ a: user("1"), b: user("2") });
    twice.append([compaction("k1", "b", "older")]);
    twice.say({ c: user("3") });
    twice.append([compaction("k2", "b", "newer")]);
    expect(textsOf(buildContext(twice.entries))).toEqual([summaryText("newer"), "2", "3"]);
    twice.append([{ type: "leaf", targetId: "c" }]);
    expect(textsOf(buildContext(twice.entries))).toEqual([summaryText("older"), "2", "3"]);
  });

  test("on another branch is ignored", () => {
    const forked = new SampleLog().say({ a: user("1") });
    forked.append([compaction("k", "a", "side")]);
    forked.append([{ type: "leaf", targetId: "a" }]);
    forked.say({ b: user("2") });
    expect(textsOf(buildContext(forked.entries))).toEqual(["1", "2"]);
  });

  test("that was undone falls back to the one before, and then to the whole history", () => {
    const undone = new SampleLog().say({ a: user("1"), b: user("2") });
    undone.append([compaction("k1", "b", "older")]);
    undone.say({ c: user("3") });
    undone.append([compaction("k2", "c", "newer")]);
    undone.say({ d: user("4") });
    undone.append([{ type: "compaction_undone", targetId: "k2" }]);
    expect(textsOf(buildContext(undone.entries))).toEqual([summaryText("older"), "2", "3", "4"]);
    undone.append([{ type: "compaction_undone", targetId: "k1" }]);
    expect(textsOf(buildContext(undone.entries))).toEqual(["1", "2", "3", "4"]);
  });

  test("that was undone below a later one changes nothing", () => {
    const both = new SampleLog().say({ a: user("1") });
    both.append([
      compaction("k1", "a", "older"),
      compaction("k2", "a", "newer"),
      { type: "compaction_undone", targetId: "k1" },
    ]);
    expect(textsOf(buildContext(both.entries))).toEqual([summaryText("newer"), "1"]);
  });

  test("determines the part of a path that a model sees in the same way", () => {
    const path = branchTo(indexEntries(log.entries), "e");
    const part = contextPath(path, undoneIds(log.entries));
    expect(part.compaction?.id).toBe("k");
    expect(part.entries.map((entry) => entry.id)).toEqual(["c", "d", "e"]);
    const later = [...path, entryAt(9, "k2", "e", { ...compaction("k2", "a") } as EntryBody)];
    expect(contextPath(later, new Set()).entries.map((entry) => entry.id)).toEqual(["a", "b", "c", "d", "e"]);
    expect(contextPath(later, new Set(["k2"]))).toEqual(part);
    expect(contextPath(later, new Set(["k", "k2"])).entries).toHaveLength(5);
  });
});

describe("rule 3: messages", () => {
  test("is every message, custom message and branch summary with text, in path order", () => {
    const log = new SampleLog().say({ a: { role: "system", content: "be kind" }, b: user("1") });
    log.append([
      { type: "custom_message", customType: "c", content: "hidden from the user", display: false },
      { type: "custom", customType: "c", data: "never" },
      { type: "branch_summary", summary: "tried", fromId: null },
      { type: "branch_summary", summary: " \n", fromId: null },
      { type: "thinking_level_change", thinkingLevel: "low" },
      { type: "model_change", provider: "p", modelId: "m" },
      { type: "variables", set: {}, unset: [] },
      { type: "session_info", name: "never" },
      { type: "queued", runId: "r", kind: "steer", content: "never" },
    ]);
    const { messages } = buildContext(log.entries);
    expect(messages.map((message) => message.role)).toEqual(["system", "user", "user", "user"]);
    expect(messages[2]).toEqual({ role: "user", content: "hidden from the user" });
    expect(textOf(messages[3]?.content ?? null)).toContain("<summary>\ntried\n</summary>");
  });

  test("excludes unknown types and lost entries, which stay on the path", () => {
    const log = [
      ...nodesOf({ a: null }),
      entryAt(1, "x", "a", { type: "hologram", node: true, message: user("never") } as unknown as EntryBody),
      entryAt(2, "l", "x", { type: "lost", reason: "damaged" }),
      entryAt(3, "b", "l", { type: "message", message: user("b") }),
    ];
    expect(textsOf(buildContext(log))).toEqual(["a", "b"]);
    expect(log.slice(1, 3).flatMap(messagesOf)).toEqual([]);
  });

  test("keeps messages unchanged, with all their fields", () => {
    const said = assistant(
      [
        { type: "thinking", text: "hm", signature: "s" },
        { type: "text", text: "x" },
      ],
      {
        providerData: { blocks: [1] },
        metadata: { m: 1 },
        agent: "a",
        usage: usage(1),
      },
    );
    expect(buildContext(new SampleLog().say({ a: said }).entries).messages).toEqual([said]);
  });
});

describe("rule 5: the leaf", () => {
  const log = new SampleLog().say({ a: user("1"), b: user("2") });
  log.append([{ type: "message", id: "side", message: user("side") }], { onto: "a" });

  test("is the log's own leaf, unless another is given", () => {
    expect(textsOf(buildContext(log.entries))).toEqual(["1", "2"]);
    expect(textsOf(buildContext(log.entries, "side"))).toEqual(["1", "side"]);
    expect(textsOf(buildContext(log.entries, undefined))).toEqual(["1", "2"]);
  });

  test("null gives an empty context", () => {
    expect(buildContext(log.entries, null).messages).toEqual([]);
    const moved = new SampleLog().say({ a: user("1") });
    moved.append([{ type: "leaf", targetId: null }]);
    expect(buildContext(moved.entries)).toEqual(buildContext([]));
  });

  test("an unknown leaf is an error with its id", () => {
    expect(() => buildContext(log.entries, "nowhere")).toThrow(
      expect.objectContaining({ name: "UnknownEntryError", code: "UNKNOWN_ENTRY", entryId: "nowhere" }),
    );
    expect(() => buildContext(log.entries, "nowhere")).toThrow('"nowhere"');
    expect(() => buildContext([], "")).toThrow(expect.objectContaining({ code: "UNKNOWN_ENTRY" }));
  });

  test("is the last node of a path that begins in the middle of a log", () => {
    expect(textsOf(buildContext(log.entries.slice(1, 2)))).toEqual(["2"]);
  });
});

describe("buildContext", () => {
  test("does not change its input, and returns the same again", () => {
    const log = new SampleLog().say({
      a: user("1"),
      b: assistant(null, { toolCalls: [{ id: "x", name: "n", arguments: "{}" }] }),
    });
    log.append([compaction("k", "b")]);
    const entries = structuredClone(log.entries);
    const before = structuredClone(entries);
    const first = buildContext(entries);
    (first.messages as unknown[]).length = 0;
    expect(buildContext(entries).messages).toHaveLength(3);
    expect(entries).toEqual(before);
  });

  test("accepts any iterable of entries", () => {
    const log = new SampleLog().say({ a: user("1") });
    const { length } = buildContext(new Set(log.entries)).messages;
    expect(length).toBe(1);
  });

  test("survives a cycle and a missing parent", () => {
    expect(textsOf(buildContext(nodesOf({ a: "b", b: "a" }), "b"))).toEqual(["a", "b"]);
    expect(textsOf(buildContext(nodesOf({ b: "missing", c: "b" }), "c"))).toEqual(["b", "c"]);
  });
});
