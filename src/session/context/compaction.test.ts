import { describe, expect, test } from "vitest";
import { assistant, call, calls, result, SampleLog, usage, user } from "../../../test/sample-log.ts";
import {
  COMPACTION_DEFAULTS,
  type CompactionPlan,
  contextTokens,
  prepareCompaction,
  shouldCompact,
} from "./compaction.ts";
import type { Entry, EntryDraft } from "../log/entry.ts";
import type { Message } from "../message.ts";
import { branchTo, indexEntries } from "../log/entry-tree.ts";

/** A tokenizer that makes a text of n letters cost n tokens. */
const tokenizer = (text: string) => text.length;
const ten = "x".repeat(10);

function pathOf(log: SampleLog): Entry[] {
  return branchTo(indexEntries(log.entries), log.head.leafId ?? "");
}

function planOf(messages: Readonly<Record<string, Message>>, keepRecentTokens: number): CompactionPlan | null {
  return prepareCompaction(pathOf(new SampleLog().say(messages)), { keepRecentTokens, tokenizer });
}

const ids = (entries: readonly Entry[] | undefined) => entries?.map((entry) => entry.id);
const parts = (plan: CompactionPlan | null) =>
  plan === null ? null : { summarize: ids(plan.summarize), turnPrefix: ids(plan.turnPrefix), keep: ids(plan.keep) };

const compaction = (id: string, firstKeptEntryId: string, extras: Partial<EntryDraft> = {}): EntryDraft =>
  ({ type: "compaction", id, summary: `summary ${id}`, firstKeptEntryId, tokensBefore: 1, ...extras }) as EntryDraft;

/** Four turns of a question and an answer, ten tokens each. */
const chat = {
  u1: user(ten),
  a1: assistant(ten),
  u2: user(ten),
  a2: assistant(ten),
  u3: user(ten),
  a3: assistant(ten),
  u4: user(ten),
  a4: assistant(ten),
};

describe("the settings", () => {
  test("default to 16,384 in reserve and 20,000 kept", () => {
    expect(COMPACTION_DEFAULTS).toMatchObject({ reserveTokens: 16_384, keepRecentTokens: 20_000 });
    const path = pathOf(
      new SampleLog().say({ a: user("x".repeat(4 * 100)), b: user("x".repeat(4 * 20_000)), c: user("x") }),
    );
    expect(prepareCompaction(path)?.firstKeptEntryId).toBe("b");
    expect(prepareCompaction(path, { keepRecentTokens: 20_102 })).toBe(null);
  });

  test.for([
    { keepRecentTokens: -1 },
    { keepRecentTokens: Number.NaN },
    { reserveTokens: Number.POSITIVE_INFINITY },
    { reserveTokens: -5 },
  ])("refuse %j", (settings) => {
    expect(() => prepareCompaction([], settings)).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
    expect(() => shouldCompact(1, 2, settings)).toThrow(Object.keys(settings)[0]);
  });

  test("that are undefined are the defaults", () => {
    const settings = { keepRecentTokens: undefined } as unknown as { keepRecentTokens: number };
    expect(prepareCompaction(pathOf(new SampleLog().say({ a: user("x") })), settings)).toBe(null);
  });

  test("say that a context is too full when less than the reserve is left", () => {
    expect(shouldCompact(83_616, 100_000)).toBe(false);
    expect(shouldCompact(83_617, 100_000)).toBe(true);
    expect(shouldCompact(90, 100, { reserveTokens: 10 })).toBe(false);
    expect(shouldCompact(91, 100, { reserveTokens: 10 })).toBe(true);
  });
});

describe("the cut", () => {
  test("is where the rest reaches keepRecentTokens", () => {
    expect(parts(planOf(chat, 40))).toEqual({
      summarize: ["u1", "a1", "u2", "a2"],
      turnPrefix: [],
      keep: ["u3", "a3", "u4", "a4"],
    });
    expect(planOf(chat, 40)?.firstKeptEntryId).toBe("u3");
    expect(planOf(chat, 31)?.firstKeptEntryId).toBe("u3");
  });

  test("is null when everything fits", () => {
    expect(planOf(chat, 81)).toBe(null);
    expect(planOf(chat, 80)).toBe(null);
    expect(planOf(chat, 79)).toBe(null);
    expect(planOf(chat, 70)?.firstKeptEntryId).toBe("a1");
    expect(planOf({ s: { role: "system", content: ten }, ...chat }, 91)).toBe(null);
  });

  test("keeps the last message when nothing is to be kept", () => {
    expect(parts(planOf(chat, 0))).toMatchObject({
      summarize: ["u1", "a1", "u2", "a2", "u3", "a3"],
      turnPrefix: ["u4"],
      keep: ["a4"],
    });
    expect(planOf({ u1: user(ten) }, 0)).toBe(null);
    expect(prepareCompaction([], { keepRecentTokens: 0 })).toBe(null);
  });

  test("may be at a user, an assistant, a custom message and a branch summary, and at nothing else", () => {
    const valid: EntryDraft[] = [
      { type: "message", message: user(ten) },
      { type: "message", message: assistant(ten) },
      { type: "custom_message", customType: "c", content: ten, display: true },
      { type: "branch_summary", summary: ten, fromId: null },
    ];
    const invalid: EntryDraft[] = [
      { type: "message", message: { role: "system", content: ten } },
      { type: "message", message: result("orphan", ten) },
      { type: "custom", customType: "c", data: ten },
      { type: "model_change", provider: "p", modelId: "m" },
      { type: "thinking_level_change", thinkingLevel: "low" },
      { type: "variables", set: {}, unset: [] },
    ];
    const cutAt = (draft: EntryDraft) => {
      const log = new SampleLog().say({ start: user(ten), before: calls("x"), result: result("x", ten) });
      log.append([{ ...draft, id: "here" }]);
      log.say({ end: user(ten) });
      return prepareCompaction(pathOf(log), { keepRecentTokens: 11, tokenizer })?.firstKeptEntryId;
    };
    for (const draft of valid) expect(cutAt(draft), JSON.stringify(draft)).toBe("here");
    for (const draft of invalid) expect(cutAt(draft), JSON.stringify(draft)).toBe("end");
  });

  test("inside a turn splits the turn, whose beginning is summarized separately", () => {
    const plan = planOf({ ...chat, u5: user(ten), a5: assistant(ten), a6: assistant(ten), a7: assistant(ten) }, 20);
    expect(parts(plan)).toEqual({
      summarize: ["u1", "a1", "u2", "a2", "u3", "a3", "u4", "a4"],
      turnPrefix: ["u5", "a5"],
      keep: ["a6", "a7"],
    });
  });

  test("inside the first turn leaves only its beginning to summarize", () => {
    expect(parts(planOf({ u: user(ten), a: assistant(ten), b: assistant(ten) }, 10))).toEqual({
      summarize: [],
      turnPrefix: ["u", "a"],
      keep: ["b"],
    });
  });

  test("in a part that begins inside a turn does not divide it", () => {
    expect(parts(planOf({ a: assistant(ten), b: assistant(ten), c: assistant(ten) }, 10))).toEqual({
      summarize: ["a", "b"],
      turnPrefix: [],
      keep: ["c"],
    });
  });

  test("is never between a call and its result", () => {
    const messages = {
      u: user(ten),
      a: calls("x", "y"),
      b: result("x", ten),
      c: user("steer"),
      d: result("y", ten),
      e: assistant(ten),
    };
    for (const keep of [11, 15, 20, 25, 30]) expect(planOf(messages, keep)?.firstKeptEntryId).toBe("e");
    expect(planOf(messages, 36)?.firstKeptEntryId).toBe("a");
  });

  test("is at the last valid point if there is none at or after the target", () => {
    const messages = {
      u1: user(ten),
      a1: assistant(ten),
      u2: user(ten),
      a2: calls("x"),
      r: result("x", "x".repeat(1000)),
    };
    expect(parts(planOf(messages, 500))).toEqual({ summarize: ["u1", "a1"], turnPrefix: ["u2"], keep: ["a2", "r"] });
  });

  test("may be after a call that never got its result", () => {
    expect(planOf({ u: user(ten), a: calls("x"), b: user(ten), c: assistant(ten) }, 20)?.firstKeptEntryId).toBe("b");
  });

  test("may be after a call without a result whose id an earlier one had", () => {
    const messages = { a: calls("x"), b: result("x", ten), c: calls("x"), u: user(ten), d: assistant(ten) };
    expect(planOf(messages, 20)?.firstKeptEntryId).toBe("u");
  });

  test("distinguishes a call from an earlier call with the same id", () => {
    const messages = {
      a: calls("x"),
      b: result("x", ten),
      u: user(ten),
      c: calls("x"),
      d: result("x", ten),
      e: assistant(ten),
    };
    expect(planOf(messages, 26)?.firstKeptEntryId).toBe("c");
    expect(planOf(messages, 20)?.firstKeptEntryId).toBe("e");
    expect(planOf(messages, 36)?.firstKeptEntryId).toBe("u");
  });

  test("is null when only settings precede it", () => {
    const log = new SampleLog();
    log.append([
      { type: "model_change", provider: "p", modelId: "m" },
      { type: "thinking_level_change", thinkingLevel: "low" },
    ]);
    log.say({ u: user(ten), a: assistant(ten) });
    expect(prepareCompaction(pathOf(log), { keepRecentTokens: 20, tokenizer })).toBe(null);
  });

  test("is null when only empty or failed answers precede it", () => {
    const messages = {
      a: assistant("half of an answer", { stopReason: "error" }),
      b: assistant(""),
      u: user(ten),
      c: assistant(ten),
    };
    expect(planOf(messages, 20)).toBe(null);
  });
});

describe("a second compaction", () => {
  function twice(firstKept: string): SampleLog {
    const log = new SampleLog().say(chat);
    log.append([compaction("k", firstKept)]);
    return log.say({ u5: user(ten), a5: assistant(ten) });
  }

  test("starts from what the first one kept and updates its summary", () => {
    const plan = prepareCompaction(pathOf(twice("u3")), { keepRecentTokens: 20, tokenizer });
    expect(parts(plan)).toEqual({ summarize: ["u3", "a3", "u4", "a4"], turnPrefix: [], keep: ["u5", "a5"] });
    expect(plan?.previousSummary).toBe("summary k");
  });

  test("starts behind the first one when that kept nothing", () => {
    const plan = prepareCompaction(pathOf(twice("nowhere")), { keepRecentTokens: 10, tokenizer });
    expect(parts(plan)).toEqual({ summarize: [], turnPrefix: ["u5"], keep: ["a5"] });
    expect(plan?.previousSummary).toBe("summary k");
  });

  test("has the same plan if only the part of the path in the context is given", () => {
    const path = pathOf(twice("u3"));
    const part = path.slice(path.findIndex((entry) => entry.id === "u3"));
    expect(prepareCompaction(part, { keepRecentTokens: 20, tokenizer })).toEqual(
      prepareCompaction(path, { keepRecentTokens: 20, tokenizer }),
    );
  });

  test("has nothing to do right after the first", () => {
    const log = new SampleLog().say(chat);
    log.append([compaction("k", "u3")]);
    expect(prepareCompaction(pathOf(log), { keepRecentTokens: 40, tokenizer })).toBe(null);
  });

  test("ignores one that was undone", () => {
    const log = twice("u3");
    const plan = prepareCompaction(pathOf(log), { keepRecentTokens: 20, tokenizer, undone: ["k"] });
    expect(plan?.previousSummary).toBe(null);
    expect(ids(plan?.summarize)).toEqual(["u1", "a1", "u2", "a2", "u3", "a3", "u4", "a4"]);
  });

  test("never summarizes a compaction itself", () => {
    const log = twice("u1");
    log.append([compaction("k2", "u2")]);
    const plan = prepareCompaction(pathOf(log), { keepRecentTokens: 10, tokenizer });
    expect(plan?.previousSummary).toBe("summary k2");
    expect(
      [...(plan?.summarize ?? []), ...(plan?.turnPrefix ?? []), ...(plan?.keep ?? [])].map((entry) => entry.type),
    ).not.toContain("compaction");
  });
});

describe("details", () => {
  const read = (path: string) => assistant(null, { toolCalls: [call("c", "read_file", JSON.stringify({ path }))] });
  const edit = (path: string) => assistant(null, { toolCalls: [call("c", "edit_file", JSON.stringify({ path }))] });

  test("name the files in the summarized part, not in the kept part", () => {
    const plan = planOf(
      { u: user(ten), a: read("old"), r: result("c"), v: user(ten), b: edit("kept"), s: result("c", ten) },
      40,
    );
    expect(plan?.firstKeptEntryId).toBe("v");
    expect(plan?.details).toEqual({ readFiles: ["old"], modifiedFiles: [] });
  });

  test("cover the beginning of a divided turn", () => {
    const plan = planOf({ u: user(ten), a: read("prefix"), r: result("c"), b: assistant(ten) }, 10);
    expect([ids(plan?.turnPrefix), plan?.details.readFiles]).toEqual([["u", "a", "r"], ["prefix"]]);
  });

  test("are carried over from the previous compaction", () => {
    const log = new SampleLog().say({ u: user(ten), a: edit("b") });
    log.append([
      compaction("k", "u", {
        details: { readFiles: ["a", "b"], modifiedFiles: ["c"], other: 1 },
      } as Partial<EntryDraft>),
    ]);
    log.say({ v: user(ten), b: assistant(ten) });
    const plan = prepareCompaction(pathOf(log), { keepRecentTokens: 20, tokenizer });
    expect(plan?.details).toEqual({ readFiles: ["a"], modifiedFiles: ["b", "c"] });
  });
});

describe("context tokens", () => {
  const tokensOf = (messages: Readonly<Record<string, Message>>) =>
    contextTokens(pathOf(new SampleLog().say(messages)), { tokenizer });
  const spent = (total: number, extras = {}) => assistant(ten, { usage: usage(total), ...extras });

  test("are the provider's last count and an estimate of what follows", () => {
    expect(tokensOf({ a: user(ten), b: spent(500), c: user(ten), d: result("x", ten) })).toBe(520);
    expect(tokensOf({ a: user(ten), b: spent(500), c: spent(600) })).toBe(600);
  });

  test("are an estimate if the provider reported no count", () => {
    expect(tokensOf({ a: user(ten), b: assistant(ten), c: user(ten) })).toBe(30);
    expect(tokensOf({})).toBe(0);
  });

  test("ignore answers that were aborted or failed, or have no count", () => {
    const ignored = {
      c: spent(1, { stopReason: "aborted" }),
      d: spent(2, { stopReason: "error" }),
      e: spent(0),
      f: assistant(ten),
    };
    expect(tokensOf({ a: user(ten), b: spent(500), ...ignored })).toBe(540);
    expect(tokensOf({ a: user(ten), ...ignored })).toBe(50);
  });

  test("accept a count with parts but no total", () => {
    expect(
      tokensOf({ a: user(ten), b: assistant(ten, { usage: { inputTokens: 40, outputTokens: 2, totalTokens: 0 } }) }),
    ).toBe(42);
  });

  test("do not use a count from before the latest compaction", () => {
    const log = new SampleLog().say({ a: user(ten), b: spent(500), c: user(ten) });
    log.append([compaction("k", "c")]);
    const frame = contextTokens([log.entries.at(-1) as Entry], { tokenizer });
    expect(contextTokens(pathOf(log), { tokenizer })).toBe(frame + 10);
    log.say({ d: spent(70) });
    expect(contextTokens(pathOf(log), { tokenizer })).toBe(70);
    expect(frame).toBeGreaterThan(10);
  });

  test("do not count what a compaction without kept entries left out", () => {
    const log = new SampleLog().say({ a: user("x".repeat(1000)) });
    log.append([compaction("k", "nowhere")]);
    log.say({ b: user(ten) });
    const frame = contextTokens([log.entries[1] as Entry], { tokenizer });
    expect(contextTokens(pathOf(log), { tokenizer })).toBe(frame + 10);
  });

  test("do not trust a count made under a compaction that was undone since", () => {
    const log = new SampleLog().say({ a: user("x".repeat(1000)), b: user(ten) });
    log.append([compaction("k", "b")]);
    log.say({ c: spent(60) });
    expect(contextTokens(pathOf(log), { tokenizer })).toBe(60);
    expect(contextTokens(pathOf(log), { tokenizer, undone: ["k"] })).toBe(1020);
    log.say({ d: spent(5000), e: user(ten) });
    expect(contextTokens(pathOf(log), { tokenizer, undone: ["k"] })).toBe(5010);
  });

  test("do not count a compaction that was undone", () => {
    const log = new SampleLog().say({ a: spent(500) });
    log.append([compaction("k", "a")]);
    log.say({ b: user(ten) });
    expect(contextTokens(pathOf(log), { tokenizer, undone: ["k"] })).toBe(510);
  });

  test("are `tokensBefore` in the plan", () => {
    expect(planOf({ ...chat, a5: spent(4711) }, 20)?.tokensBefore).toBe(4711);
  });
});

test("planning does not change its input", () => {
  const path = structuredClone(pathOf(new SampleLog().say(chat)));
  const before = structuredClone(path);
  prepareCompaction(path, { keepRecentTokens: 20, tokenizer });
  contextTokens(path);
  expect(path).toEqual(before);
});
