import { describe, expect, test } from "vitest";
import { assistant, call, calls, result, usage, user } from "../../../test/sample-log.ts";
import { scripted } from "../../models/scripted.ts";
import { COMPACTION_DEFAULTS } from "../../session/context/compaction.ts";
import type { Entry, EntryOf } from "../../session/log/entry.ts";
import type { SessionHooks } from "../../session/context/hooks.ts";
import { type AssistantMessage, type Message, textOf } from "../../session/message.ts";
import { SessionTree } from "../../tree/session-tree.ts";
import { type CompactOptions, compact } from "./compact.ts";

/** A text of n letters is n tokens. */
const settings = { keepRecentTokens: 20, tokenizer: (text: string) => text.length };
const ten = "x".repeat(10);

async function treeOf(
  messages: Readonly<Record<string, Message>>,
  hooks: readonly SessionHooks[] = [],
): Promise<SessionTree> {
  const tree = await SessionTree.inMemory("/project", { hooks, onHookError: () => {} });
  for (const [id, message] of Object.entries(messages)) await tree.appendMessage(message, { id });
  return tree;
}

/** Two turns, of which the second is kept. */
const chat = { u1: user("first question"), a1: assistant("first answer"), u2: user(ten), a2: assistant(ten) };

const textsOf = async (tree: SessionTree) =>
  (await tree.buildContext()).messages.map((message) => textOf(message.content));
const asked = (model: { requests: readonly { messages: readonly Message[] }[] }, index = 0) =>
  textOf(model.requests[index]?.messages.at(-1)?.content ?? null);
const asCompaction = (entry: Entry | null) => entry as EntryOf<"compaction">;

async function refused(tree: SessionTree, options: CompactOptions, error: object): Promise<void> {
  const before = await tree.entries();
  await expect(compact(tree, { settings, ...options })).rejects.toMatchObject(error);
  expect(await tree.entries()).toEqual(before);
}

describe("compact", () => {
  test("appends the summary with what it keeps, what it replaces and its cost", async () => {
    const read = assistant("first answer", { toolCalls: [call("c", "read_file", '{"path":"a.txt"}')] });
    const tree = await treeOf({
      u1: user("first question"),
      a1: read,
      r1: result("c"),
      u2: user(ten),
      a2: assistant(ten, { usage: usage(900) }),
    });
    const reply: AssistantMessage = {
      role: "assistant",
      content: "  the summary\n",
      usage: usage(50, 5),
      stopReason: "stop",
    };
    const entry = await compact(tree, { model: scripted([reply]), settings });
    expect(entry).toMatchObject({
      type: "compaction",
      summary: "the summary",
      firstKeptEntryId: "u2",
      tokensBefore: 900,
      details: { readFiles: ["a.txt"], modifiedFiles: [] },
      usage: usage(50, 5),
    });
    expect(tree.leafId).toBe(entry?.id);
    expect(await textsOf(tree)).toEqual([expect.stringContaining("the summary"), ten, ten]);
  });

  test("asks the model for the older part only, as quoted text, with tools off", async () => {
    const tree = await treeOf(chat);
    const model = scripted(["s"]);
    await compact(tree, { model, settings, instructions: "Keep the order number." });
    expect(model.requests).toHaveLength(1);
    expect(model.requests[0]?.toolChoice).toBe("none");
    expect(model.requests[0]?.messages.map((message) => message.role)).toEqual(["system", "user"]);
    expect(asked(model)).toContain(
      "<conversation>\n[user] first question\n\n[assistant] first answer\n</conversation>",
    );
    expect(asked(model)).toContain("Also: Keep the order number.");
    expect(asked(model)).not.toContain(ten);
  });

  test("returns null and calls no model when there is nothing to summarise", async () => {
    const model = scripted([]);
    const tree = await treeOf({ u: user(ten), a: assistant(ten) });
    expect(await compact(tree, { model, settings })).toBe(null);
    expect(await compact(await treeOf({}), { model, settings })).toBe(null);
    expect(model.requests).toEqual([]);
    expect(tree.version).toBe(2);
  });

  test.for<[string, Partial<AssistantMessage>, string]>([
    ["is empty", { content: " \n" }, "empty"],
    ["is nothing", { content: null }, "empty"],
    ["is only thinking", { content: [{ type: "thinking", text: "hm" }] }, "empty"],
    ["was cut by length", { content: "half", stopReason: "length" }, "length"],
    ["was filtered", { content: "half", stopReason: "content_filter" }, "content_filter"],
    ["was aborted", { content: "half", stopReason: "aborted" }, "aborted"],
    ["failed", { content: "half", stopReason: "error" }, "error"],
    ["calls a tool", { content: "text", toolCalls: [call("c")], stopReason: "stop" }, "tool"],
    ["stopped for a tool", { content: "text", stopReason: "tool_calls" }, "tool_calls"],
  ])("appends nothing when the summary %s", async ([, reply, problem]) => {
    const model = scripted([{ role: "assistant", content: null, ...reply }]);
    await refused(await treeOf(chat), { model }, { code: "SUMMARY_FAILED", message: expect.stringContaining(problem) });
  });

  test("appends nothing when the model fails, and rejects with its error", async () => {
    const failure = new Error("rate limit");
    await refused(await treeOf(chat), { model: scripted([failure]) }, failure);
  });

  test("uses a tokenizer and the default settings", async () => {
    const model = scripted(["s"]);
    const words = "many words of ordinary English text ";
    const tree = await treeOf({
      u: user("q"),
      a: assistant(words.repeat(100)),
      v: user(words.repeat(3000)),
      b: assistant(words.repeat(1000)),
    });
    const entry = asCompaction(await compact(tree, { model }));
    expect(entry.firstKeptEntryId).toBe("v");
    expect(entry.tokensBefore).toBeGreaterThan(20_000);
    expect(entry.tokensBefore).toBeLessThan(30_000);
  });
});

describe("a divided turn", () => {
  const long = {
    u2: user("long job"),
    c2: calls("c"),
    r2: result("c", "found it"),
    a2: assistant(ten),
    b2: assistant(ten),
  };

  test("needs two requests, and the summaries and costs are added up", async () => {
    const tree = await treeOf({ u1: user("first question"), a1: assistant("first answer"), ...long });
    const reply = (content: string, tokens: number): AssistantMessage => ({
      role: "assistant",
      content,
      usage: usage(tokens),
      cost: tokens / 2,
      stopReason: "stop",
    });
    const model = scripted([reply("history", 10), reply("beginning", 1)]);
    const entry = asCompaction(await compact(tree, { model, settings, instructions: "Be brief." }));
    expect(entry.summary).toBe("history\n\n## The turn under way\nbeginning");
    expect([entry.usage, entry.cost, tree.head.cost]).toEqual([usage(11), 5.5, 5.5]);
    expect(entry.firstKeptEntryId).toBe("a2");
    expect(asked(model, 0)).toContain("[user] first question");
    expect(asked(model, 0)).not.toContain("long job");
    expect(asked(model, 1)).toContain("[user] long job\n\n[calls look] {}\n\n[result of look] found it");
    expect(asked(model, 1)).toContain("beginning of one long turn");
    expect(asked(model, 1)).toContain("Also: Be brief.");
  });

  test("at the beginning of the session needs one request", async () => {
    const model = scripted(["beginning"]);
    const entry = asCompaction(await compact(await treeOf(long), { model, settings }));
    expect(entry.summary).toBe("## The turn under way\nbeginning");
  });

  test("does not ask for a summary of settings", async () => {
    const tree = await SessionTree.inMemory();
    await tree.appendModelChange("p", "m");
    for (const message of Object.values(long)) await tree.appendMessage(message);
    const model = scripted(["beginning"]);
    expect(asCompaction(await compact(tree, { model, settings })).summary).toBe("## The turn under way\nbeginning");
    expect(model.requests).toHaveLength(1);
  });

  test("keeps the earlier summary when only the turn is new", async () => {
    const tree = await treeOf(chat);
    await tree.append({ type: "compaction", summary: "earlier", firstKeptEntryId: "nowhere", tokensBefore: 1 });
    for (const message of Object.values(long)) await tree.appendMessage(message);
    const entry = asCompaction(await compact(tree, { model: scripted(["beginning"]), settings }));
    expect(entry.summary).toBe("earlier\n\n## The turn under way\nbeginning");
  });

  test("whose second summary fails appends nothing", async () => {
    await refused(await treeOf({ ...chat, ...long }), { model: scripted(["history", ""]) }, { code: "SUMMARY_FAILED" });
  });
});

describe("a second compaction", () => {
  test("updates the first summary, and keeps its list of files", async () => {
    const edit = assistant("first answer", { toolCalls: [call("c", "edit_file", '{"path":"a.txt"}')] });
    const tree = await treeOf({
      u1: user("first question"),
      a1: edit,
      r1: result("c"),
      u2: user("second question"),
      a2: assistant("second answer"),
    });
    await compact(tree, { model: scripted(["first summary"]), settings });
    await tree.appendMessage(user(ten), { id: "u3" });
    await tree.appendMessage(assistant(ten));
    const model = scripted(["second summary"]);
    const second = asCompaction(await compact(tree, { model, settings }));
    expect(asked(model)).toContain("<earlier-summary>\nfirst summary\n</earlier-summary>");
    expect(asked(model)).toContain("Bring that summary up to date");
    expect(asked(model)).toContain("[user] second question");
    expect(asked(model)).not.toContain("first question");
    expect(second).toMatchObject({
      summary: "second summary",
      firstKeptEntryId: "u3",
      details: { modifiedFiles: ["a.txt"] },
    });
    expect(await textsOf(tree)).toEqual([expect.stringContaining("second summary"), ten, ten]);
  });

  test("can be undone, and then the first one; later turns stay", async () => {
    const tree = await treeOf(chat);
    await compact(tree, { model: scripted(["first"]), settings });
    await tree.appendMessage(user("third question"), { id: "u3" });
    await compact(tree, { model: scripted(["second"]), settings: { ...settings, keepRecentTokens: 10 } });
    await tree.appendMessage(assistant("third answer"));
    expect(await textsOf(tree)).toEqual([expect.stringContaining("second"), "third question", "third answer"]);
    await tree.undoCompaction();
    expect(await textsOf(tree)).toEqual([expect.stringContaining("first"), ten, ten, "third question", "third answer"]);
    await tree.undoCompaction();
    expect(await textsOf(tree)).toEqual(["first question", "first answer", ten, ten, "third question", "third answer"]);
    await expect(tree.undoCompaction()).rejects.toMatchObject({ code: "UNKNOWN_ENTRY" });
  });

  test("after an undo starts again, with any settings", async () => {
    const tree = await treeOf(chat);
    await compact(tree, { model: scripted(["first"]), settings });
    await tree.undoCompaction();
    const model = scripted(["again"]);
    await compact(tree, { model, settings: { ...COMPACTION_DEFAULTS, ...settings } });
    expect(asked(model)).toContain("first question");
    expect(asked(model)).not.toContain("<earlier-summary>");
  });
});

describe("hooks", () => {
  test("beforeCompact may cancel: the model is not asked and nothing is appended", async () => {
    const model = scripted([]);
    const hooks: SessionHooks = { beforeCompact: () => ({ cancel: true, reason: "busy" }) };
    await refused(
      await treeOf(chat),
      { model, hooks },
      { code: "CANCELLED", message: expect.stringContaining("busy") },
    );
    expect(model.requests).toEqual([]);
  });

  test("beforeCompact can supply the summary, with or without its own details", async () => {
    const model = scripted([]);
    const own = asCompaction(
      await compact(await treeOf(chat), {
        model,
        settings,
        hooks: { beforeCompact: () => ({ summary: "mine", details: { n: 1 } }) },
      }),
    );
    expect(own).toMatchObject({ summary: "mine", details: { n: 1 }, firstKeptEntryId: "u2" });
    expect(own).not.toHaveProperty("usage");
    const plain = asCompaction(
      await compact(await treeOf(chat), { model, settings, hooks: { beforeCompact: () => ({ summary: "mine" }) } }),
    );
    expect(plain.details).toEqual({ readFiles: [], modifiedFiles: [] });
  });

  test("a blank summary from a handler is refused like one from a model", async () => {
    const hooks: SessionHooks = { beforeCompact: () => ({ summary: " \n" }) };
    await refused(await treeOf(chat), { model: scripted([]), hooks }, { code: "SUMMARY_FAILED" });
  });

  test("of the tree run before those of the call, before and after the compaction", async () => {
    const order: string[] = [];
    const hooksOf = (name: string): SessionHooks => ({
      beforeCompact: ({ plan }) => void order.push(`${name} before ${plan.firstKeptEntryId}`),
      compact: ({ sessionId, entry }) => void order.push(`${name} after ${sessionId === tree.id && entry.type}`),
    });
    const tree = await treeOf(chat, [hooksOf("tree")]);
    await compact(tree, {
      model: scripted([() => `summary ${order.push("model")}`]),
      settings,
      hooks: [hooksOf("call")],
    });
    expect(order).toEqual([
      "tree before u2",
      "call before u2",
      "model",
      "tree after compaction",
      "call after compaction",
    ]);
  });

  test("that throw do not stop the compaction", async () => {
    const broken = (): never => {
      throw new Error("broken");
    };
    const tree = await treeOf(chat, [{ beforeCompact: broken, compact: broken }]);
    expect(asCompaction(await compact(tree, { model: scripted(["s"]), settings })).summary).toBe("s");
  });

  test("are not called when there is nothing to do", async () => {
    const hooks: SessionHooks = { beforeCompact: () => ({ cancel: true }) };
    expect(await compact(await treeOf({ u: user("q") }), { model: scripted([]), settings, hooks })).toBe(null);
  });
});

describe("while the model answers", () => {
  test("a turn that is appended stays in the context unchanged", async () => {
    const tree = await treeOf(chat);
    const model = scripted([
      async () => {
        await tree.appendMessage(user("meanwhile"), { id: "m" });
        return "s";
      },
    ]);
    const entry = await compact(tree, { model, settings });
    expect(entry?.parentId).toBe("m");
    expect(await textsOf(tree)).toEqual([expect.stringContaining("s"), ten, ten, "meanwhile"]);
  });

  test("a leaf that moves to another branch is a conflict, and nothing is appended", async () => {
    const tree = await treeOf(chat);
    const model = scripted([
      async () => {
        await tree.branch("a1");
        await tree.appendMessage(user("elsewhere"), { id: "e" });
        return "s";
      },
    ]);
    await expect(compact(tree, { model, settings })).rejects.toMatchObject({ name: "SessionError", code: "CONFLICT" });
    expect(tree.leafId).toBe("e");
    expect((await tree.entries()).map((entry) => entry.type)).not.toContain("compaction");
  });

  test("a leaf that moves before the root is a conflict", async () => {
    const tree = await treeOf(chat);
    const model = scripted([
      async () => {
        await tree.branch(null);
        return "s";
      },
    ]);
    await expect(compact(tree, { model, settings })).rejects.toMatchObject({ code: "CONFLICT" });
  });

  test("a leaf that moves within the kept part is no conflict: the summary still fits", async () => {
    const tree = await treeOf(chat);
    const model = scripted([
      async () => {
        await tree.branch("u2");
        await tree.appendMessage(assistant("another answer"));
        return "s";
      },
    ]);
    await compact(tree, { model, settings });
    expect(await textsOf(tree)).toEqual([expect.stringContaining("s"), ten, "another answer"]);
  });
});

describe("an abort", () => {
  test("before the call sends no request and appends nothing", async () => {
    const model = scripted(["s"]);
    await refused(await treeOf(chat), { model, signal: AbortSignal.abort() }, { name: "AbortError" });
    expect(model.requests).toEqual([]);
  });

  test("during the model's answer ends the wait immediately and appends nothing", async () => {
    const controller = new AbortController();
    const never = new Promise<string>(() => {});
    const model = scripted([
      () => {
        queueMicrotask(() => controller.abort(new Error("enough")));
        return never;
      },
    ]);
    await refused(await treeOf(chat), { model, signal: controller.signal }, { message: "enough" });
  });

  test("that the model ignores appends nothing either", async () => {
    const controller = new AbortController();
    const deaf = {
      provider: "deaf",
      id: "deaf",
      async complete(): Promise<AssistantMessage> {
        controller.abort();
        return { role: "assistant", content: "s" };
      },
    };
    await refused(await treeOf(chat), { model: deaf, signal: controller.signal }, { name: "AbortError" });
  });
});
