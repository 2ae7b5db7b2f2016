import { describe, expect, test } from "vitest";
import { assistant, call, header, message, result, SampleLog, timeAt, usage, user } from "../../../test/sample-log.ts";
import type { EntryDraft } from "./entry.ts";
import { EMPTY_PATH, emptyHead } from "./fold.ts";
import { OPEN_RUNS_MAX } from "../limits.ts";
import type { Content } from "../message.ts";

describe("the head of a session without entries", () => {
  test("is active, unnamed, at version 0 and before the root", () => {
    expect(emptyHead(header())).toEqual({
      header: header(),
      version: 0,
      leafId: null,
      path: EMPTY_PATH,
      status: "active",
      statusReason: null,
      name: null,
      updatedAt: timeAt(0),
      modifiedAt: timeAt(0),
      messageCount: 0,
      firstMessage: null,
      usage: usage(0),
      cost: 0,
      openRuns: [],
      undone: [],
      closed: false,
    });
  });
});

test("a head is deeply frozen, so that no reader can change the store's cached state", () => {
  const log = new SampleLog().say({ a: user("1"), b: assistant("2", { usage: usage(5), provider: "p", model: "m" }) });
  log.append([
    { type: "model_change", provider: "q", modelId: "n" },
    { type: "variables", set: { key: ["value"] }, unset: [] },
    { type: "compaction", id: "c", summary: "s", firstKeptEntryId: "b", tokensBefore: 1 },
    { type: "compaction_undone", targetId: "c" },
    { type: "run", runId: "r", phase: "started" },
  ]);
  const mutable = (value: unknown): unknown[] =>
    typeof value !== "object" || value === null
      ? []
      : [...(Object.isFrozen(value) ? [] : [value]), ...Object.values(value).flatMap(mutable)];
  const { header: _, ...folded } = log.head;
  expect(Object.isFrozen(log.head)).toBe(true);
  expect(Object.values(folded).flatMap(mutable)).toEqual([]);
});

describe("the leaf", () => {
  test("moves to every new node, and to no fact", () => {
    const log = new SampleLog().say({ a: user("1") });
    log.append([
      { type: "label", targetId: "a", label: "x" },
      { type: "session_info", name: "n" },
    ]);
    expect(log.head.leafId).toBe("a");
    log.append([{ type: "custom", customType: "c", id: "b" }]);
    expect(log.head).toMatchObject({ leafId: "b", version: 4 });
  });

  test("does not move when a node is appended onto another entry", () => {
    const log = new SampleLog().say({ a: user("1"), b: user("2") });
    log.append([message("c", user("3")), message("d", user("4"))], { onto: "a" });
    expect(log.head).toMatchObject({ leafId: "b", version: 4, messageCount: 4 });
    expect(log.head.path.depth).toBe(2);
    expect(log.entries.map((entry) => entry.parentId)).toEqual([null, "a", "a", "c"]);
  });

  test("follows a node that is appended below the leaf", () => {
    const log = new SampleLog().say({ a: user("1"), b: user("2") });
    log.append([message("c", user("3"))], { onto: "b" });
    expect(log.head).toMatchObject({ leafId: "c", path: { depth: 3 } });
  });

  test("moves to the target of a leaf fact, and the path becomes the target's", () => {
    const log = new SampleLog().say({ a: user("1"), b: assistant("2", { usage: usage(5), cost: 1 }) });
    log.append([{ type: "leaf", targetId: "a" }]);
    expect(log.head).toMatchObject({ leafId: "a", path: { depth: 1, turnCount: 1, usage: usage(0), cost: 0 } });
    expect(log.head).toMatchObject({ usage: usage(5), cost: 1, messageCount: 2 });
    log.append([{ type: "leaf", targetId: "b" }]);
    expect(log.head).toMatchObject({ leafId: "b", path: { depth: 2, usage: usage(5), cost: 1 } });
  });

  test("before the root makes the next node a new root", () => {
    const log = new SampleLog().say({ a: user("1") });
    log.append([{ type: "leaf", targetId: null }]);
    expect(log.head).toMatchObject({ leafId: null, path: EMPTY_PATH });
    log.say({ b: user("2") });
    expect(log.head).toMatchObject({ leafId: "b", path: { depth: 1 } });
    expect(log.entries.at(-1)?.parentId).toBe(null);
  });

  test("does not move to a new root while it is elsewhere", () => {
    const log = new SampleLog().say({ a: user("1") });
    log.append([message("b", user("2"))], { onto: null });
    expect(log.head.leafId).toBe("a");
  });

  test("moves to a node of an unknown type, but not to a fact", () => {
    const log = new SampleLog().say({ a: user("1") });
    const unknown = (id: string, node: boolean) =>
      ({ type: "hologram", id, node, parentId: "a" }) as unknown as EntryDraft;
    log.append([unknown("fact", false)], { verbatim: true });
    expect(log.head.leafId).toBe("a");
    log.append([unknown("node", true)], { verbatim: true });
    expect(log.head).toMatchObject({ leafId: "node", path: { depth: 2, turnCount: 1 } });
  });
});

describe("totals", () => {
  test("of a path are sums over the path, those of a head over all branches", () => {
    const log = new SampleLog().say({ a: user("1"), b: assistant("2", { usage: usage(10, 1), cost: 0.5 }) });
    log.append([{ type: "leaf", targetId: "a" }]);
    log.say({ c: assistant("3", { usage: { ...usage(20, 2), cacheReadTokens: 7 }, cost: 0.25 }) });
    expect(log.head.path).toMatchObject({ usage: { ...usage(20, 2), cacheReadTokens: 7 }, cost: 0.25, turnCount: 2 });
    expect(log.head).toMatchObject({ usage: { ...usage(30, 3), cacheReadTokens: 7 }, cost: 0.75, messageCount: 3 });
  });

  test("of a head include the cost of summaries, those of a path do not", () => {
    const log = new SampleLog().say({ a: assistant("1", { usage: usage(10) }) });
    log.append([
      {
        type: "compaction",
        id: "c",
        summary: "s",
        firstKeptEntryId: "a",
        tokensBefore: 10,
        usage: usage(5, 5),
        cost: 1,
      },
    ]);
    expect(log.head).toMatchObject({
      usage: usage(15, 5),
      cost: 1,
      path: { usage: usage(10), cost: 0, compactionId: "c" },
    });
    log.append([
      { type: "leaf", targetId: "a" },
      { type: "branch_summary", summary: "s", fromId: "c", usage: usage(1), cost: 2 },
    ]);
    expect(log.head).toMatchObject({
      usage: usage(16, 5),
      cost: 3,
      path: { usage: usage(10), cost: 0, compactionId: null },
    });
  });

  test("do not count a run's own usage twice", () => {
    const log = new SampleLog().say({ a: assistant("1", { usage: usage(10) }) });
    log.append([{ type: "run", runId: "r", phase: "finished", usage: usage(10) }]);
    expect(log.head.usage).toEqual(usage(10));
  });

  test("count messages of every role as turns, and nothing else", () => {
    const log = new SampleLog().say({
      a: { role: "system", content: "s" },
      b: user("1"),
      c: assistant(null, { toolCalls: [call("x")] }),
      d: result("x"),
    });
    log.append([{ type: "custom_message", customType: "c", content: "t", display: true }]);
    expect(log.head).toMatchObject({ messageCount: 4, path: { turnCount: 4, depth: 5 } });
  });

  test("keep the time of the last message apart from the time of the last append", () => {
    const log = new SampleLog();
    log.append([{ ...message("a", user("1")), timestamp: timeAt(100) }]);
    log.append([
      { type: "custom", customType: "c" },
      { type: "session_info", name: "n" },
    ]);
    expect(log.head).toMatchObject({ modifiedAt: timeAt(100), updatedAt: timeAt(1) });
  });
});

describe("facts", () => {
  test("the latest name applies on all branches, and an empty one removes it", () => {
    const log = new SampleLog().say({ a: user("1") });
    log.append([
      { type: "session_info", name: "first" },
      { type: "leaf", targetId: null },
      { type: "session_info", name: "second" },
    ]);
    expect(log.head.name).toBe("second");
    log.append([{ type: "leaf", targetId: "a" }]);
    expect(log.head.name).toBe("second");
    log.append([{ type: "session_info", name: "" }]);
    expect(log.head.name).toBe(null);
  });

  test("the latest status applies, with its own reason", () => {
    const log = new SampleLog();
    log.append([{ type: "status", status: "suspended", reason: "night" }]);
    expect(log.head).toMatchObject({ status: "suspended", statusReason: "night" });
    log.append([{ type: "status", status: "active" }]);
    expect(log.head).toMatchObject({ status: "active", statusReason: null });
  });

  test("a run is open from its start to its end, however it ends", () => {
    const log = new SampleLog();
    const run = (runId: string, phase: "started" | "finished" | "failed" | "cancelled") =>
      log.append([{ type: "run", runId, phase }]);
    for (const runId of ["a", "b", "c", "d"]) run(runId, "started");
    run("a", "finished");
    run("b", "failed");
    run("c", "cancelled");
    run("unheard-of", "finished");
    expect(log.head.openRuns).toEqual([{ runId: "d", state: "started" }]);
    run("d", "started");
    expect(log.head.openRuns).toEqual([{ runId: "d", state: "started", claims: 2 }]);
  });

  test("all open runs of a copied log are kept, however many there are", () => {
    const length = OPEN_RUNS_MAX + 4;
    const runs = Array.from({ length }, (_, i): EntryDraft => ({ type: "run", runId: `r${i}`, phase: "started" }));
    const log = new SampleLog();
    log.append(runs, { verbatim: true });
    expect(log.head.openRuns).toHaveLength(length);
    log.append([{ type: "run", runId: "r0", phase: "failed" }]);
    expect(log.head.openRuns).toHaveLength(length - 1);
  });

  test("an undone compaction is listed once, and stays the path's last compaction", () => {
    const log = new SampleLog().say({ a: user("1") });
    log.append([{ type: "compaction", id: "c", summary: "s", firstKeptEntryId: "a", tokensBefore: 1 }]);
    log.append([
      { type: "compaction_undone", targetId: "c" },
      { type: "compaction_undone", targetId: "c" },
    ]);
    expect(log.head.undone).toEqual(["c"]);
    expect(log.head.path.compactionId).toBe("c");
  });

  test("a trailer marks a regular end, a later turn or run resets that, and other facts have no effect", () => {
    const log = new SampleLog().say({ a: user("1") });
    const trailer: EntryDraft = { type: "trailer", closedAt: timeAt(9), entryCount: 1, usage: usage(0) };
    expect(log.head.closed).toBe(false);
    log.append([trailer]);
    expect(log.head.closed).toBe(true);
    log.append([
      { type: "label", targetId: "a", label: "x" },
      { type: "session_info", name: "n" },
    ]);
    expect(log.head.closed).toBe(true);
    log.say({ b: user("2") });
    expect(log.head.closed).toBe(false);
    log.append([trailer]);
    log.append([{ type: "run", runId: "r", phase: "started" }]);
    expect(log.head.closed).toBe(false);
    log.append([{ type: "run", runId: "r", phase: "finished" }, trailer]);
    expect(log.head.closed).toBe(true);
  });

  test("an unknown fact is counted and otherwise ignored", () => {
    const log = new SampleLog().say({ a: user("1") });
    const before = log.head;
    log.append([{ type: "hologram", name: "x", status: "closed" } as unknown as EntryDraft], { verbatim: true });
    expect(log.head).toEqual({ ...before, version: 2, updatedAt: timeAt(1) });
  });
});

describe("the first message", () => {
  const first = (...contents: readonly Content[]) => {
    const log = new SampleLog();
    for (const content of contents) log.append([{ type: "message", message: user(content) }]);
    return log.head.firstMessage;
  };

  test("is the first one of a user, whatever precedes and follows it", () => {
    const log = new SampleLog().say({
      a: { role: "system", content: "be kind" },
      b: assistant("hello"),
      c: user("one"),
      d: user("two"),
    });
    expect(log.head.firstMessage).toBe("one");
  });

  test("is a single line without surrounding white space", () => {
    expect(first("  \n\t a \r\n\n b\u2028c  ")).toBe("a b c");
  });

  test("is the first that has text", () => {
    expect(first(" \n ")).toBe(null);
    expect(first([{ type: "image", mediaType: "image/png", data: "AA==" }], "", " \t", "at last")).toBe("at last");
  });

  test("is found after any amount of white space", () => {
    expect(first(`${"\n".repeat(5000)}here`)).toBe("here");
  });

  test("is its text parts, joined, without thinking, images and files", () => {
    const content: Content = [
      { type: "thinking", text: "hidden" },
      { type: "text", text: "one" },
      { type: "file", mediaType: "text/plain", data: "AA==" },
      { type: "text", text: "two" },
    ];
    expect(first(content)).toBe("one two");
  });

  test("is cut at 200 characters", () => {
    expect(first("x".repeat(200))).toBe("x".repeat(200));
    expect(first("x".repeat(100_000))).toBe("x".repeat(200));
    expect(first(`${"x".repeat(199)} ${"y".repeat(50)}`)).toBe("x".repeat(199));
  });

  test("does not end in half an emoji", () => {
    expect(first(`${"x".repeat(199)}😀`)).toBe("x".repeat(199));
    expect(first(`${"x".repeat(198)}😀y`)).toBe(`${"x".repeat(198)}😀`);
    expect(first(`a${" ".repeat(797)}b😀`)).toBe("a b");
  });
});

test("a step changes neither the head nor the path that it starts from", () => {
  const log = new SampleLog().say({ a: assistant("1", { usage: usage(1) }) });
  const before = log.head;
  const copy = structuredClone(before);
  log.append([
    { type: "variables", set: { x: 1 }, unset: [] },
    { type: "run", runId: "r", phase: "started" },
    message("b", assistant("2", { usage: usage(2), cost: 1 })),
    { type: "status", status: "closed" },
  ]);
  expect(before).toEqual(copy);
});
