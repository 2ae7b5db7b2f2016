import { describe, expect, test } from "vitest";
import { assistant, message, SampleLog, timeAt, usage, user } from "../../../test/sample-log.ts";
import type { EntryDraft } from "./entry.ts";

const label = (targetId: string, text = "x"): EntryDraft => ({ type: "label", targetId, label: text });
const compaction = (id: string): EntryDraft => ({
  type: "compaction",
  id,
  summary: "s",
  firstKeptEntryId: "a",
  tokensBefore: 1,
});

function abc(): SampleLog {
  return new SampleLog().say({ a: user("1"), b: user("2"), c: user("3") });
}

describe("new entries", () => {
  test("get their position and parent from the store, and the time unless they have one", () => {
    const log = new SampleLog();
    const [a, b] = log.append([message("a", user("1")), { ...message("b", user("2")), timestamp: timeAt(500) }]);
    expect(a).toEqual({ type: "message", id: "a", parentId: null, timestamp: timeAt(0), seq: 0, message: user("1") });
    expect(b).toEqual({ type: "message", id: "b", parentId: "a", timestamp: timeAt(500), seq: 1, message: user("2") });
  });

  test("are appended below the leaf and each other, also with facts in between", () => {
    const log = abc();
    log.append([
      message("d", user("4")),
      label("a"),
      { type: "session_info", name: "n" },
      message("e", user("5")),
      label("e"),
    ]);
    expect(log.entries.slice(3).map((entry) => entry.parentId)).toEqual(["c", "d", "d", "d", "e"]);
    expect(log.head).toMatchObject({ version: 8, leafId: "e" });
  });

  test("are appended below the target of a preceding leaf fact", () => {
    const log = abc();
    log.append([
      message("d", user("4")),
      { type: "leaf", targetId: "a" },
      message("e", user("5")),
      { type: "leaf", targetId: null },
      message("f", user("6")),
    ]);
    expect(log.entries.slice(3).map((entry) => entry.parentId)).toEqual(["c", "d", "a", "e", null]);
    expect(log.head).toMatchObject({ leafId: "f", path: { depth: 1 } });
  });

  test("are frozen", () => {
    const [entry] = abc().append([message("d", user("4"))]);
    expect(() => Object.assign(entry as object, { parentId: "a" })).toThrow(TypeError);
  });

  test("an empty append changes nothing", () => {
    const log = abc();
    const plan = log.plan([]);
    expect([plan.entries, plan.added, plan.head]).toEqual([[], [], log.head]);
  });

  test("have the summary of their path if they are nodes, and null if they are facts", () => {
    const { added } = abc().plan([message("d", assistant("4", { cost: 2 })), label("d")]);
    expect(added[0]?.path).toMatchObject({ depth: 4, turnCount: 4, cost: 2 });
    expect(added[1]?.path).toBe(null);
  });

  test("need no lookup when they are new and below the leaf", () => {
    const log = abc();
    const fresh: EntryDraft[] = [
      { type: "message", message: user("x") },
      { type: "session_info", name: "n" },
    ];
    log.wanted.length = 0;
    for (const options of [{}, { onto: "c" }, { onto: null }, { below: "c" }]) log.plan(fresh, options);
    expect(log.wanted).toEqual([]);
    log.plan(fresh, { onto: "a" });
    expect(log.wanted).toEqual([{ ids: ["a"], settings: [] }]);
  });
});

describe("below", () => {
  const at = (log: SampleLog, id: string): unknown => log.entries.find((entry) => entry.id === id);

  test("appends at the leaf if others have added turns after the entry", () => {
    const log = abc();
    log.append([message("d", user("4"))], { below: "a" });
    expect([at(log, "d"), log.head.leafId]).toMatchObject([{ parentId: "c" }, "d"]);
  });

  test("appends below the entry if the leaf was moved to another branch, and does not move the leaf", () => {
    const log = abc();
    log.append([{ type: "leaf", targetId: "a" }]);
    log.append([message("d", user("4"))], { below: "c" });
    expect([at(log, "d"), log.head.leafId]).toMatchObject([{ parentId: "c" }, "a"]);
    log.append([message("e", user("5"))]);
    log.append([message("f", user("6"))], { below: "d" });
    expect([at(log, "f"), log.head.leafId]).toMatchObject([{ parentId: "d" }, "e"]);
  });

  test("null is above every leaf", () => {
    const log = abc();
    log.append([message("d", user("4"))], { below: null });
    expect(at(log, "d")).toMatchObject({ parentId: "c" });
  });

  test("reads only entries after the named one", () => {
    const log = new SampleLog();
    for (let i = 0; i < 50; i++) log.append([message(`m${i}`, user("x"))]);
    log.append([message("other", user("y"))], { onto: "m3" });
    log.append([{ type: "leaf", targetId: "m10" }]);
    log.wanted.length = 0;
    log.append([message("late", user("z"))], { below: "m48" });
    // The draft itself, the entry that it names, and the leaf, which precedes it.
    expect(log.wanted.flatMap(({ ids }) => ids)).toEqual(["late", "m48", "m10"]);
    expect(at(log, "late")).toMatchObject({ parentId: "m48" });
  });

  test("refuses an unknown entry by name, and a fact", () => {
    const log = abc();
    expect(() => log.plan([message("d", user("4"))], { below: "nowhere" })).toThrow(
      expect.objectContaining({ code: "UNKNOWN_ENTRY", entryId: "nowhere" }),
    );
    log.append([{ ...label("a"), id: "fact" }]);
    expect(() => log.plan([message("d", user("4"))], { below: "fact" })).toThrow(
      expect.objectContaining({ code: "INVALID_ENTRY" }),
    );
  });
});

describe("onto", () => {
  test("an unknown entry is refused by name", () => {
    expect(() => abc().plan([message("d", user("4"))], { onto: "nowhere" })).toThrow(
      expect.objectContaining({ code: "UNKNOWN_ENTRY", entryId: "nowhere", sessionId: "sample" }),
    );
  });

  test("an unknown entry is refused for facts too", () => {
    expect(() => abc().plan([label("a")], { onto: "nowhere" })).toThrow(
      expect.objectContaining({ code: "UNKNOWN_ENTRY" }),
    );
  });

  test("null makes a new root", () => {
    const { added } = abc().plan([message("d", user("4")), message("e", user("5"))], { onto: null });
    expect(added.map(({ entry, path }) => [entry.parentId, path?.depth])).toEqual([
      [null, 1],
      ["d", 2],
    ]);
  });

  test("a fact is refused, as facts have no children", () => {
    const log = abc();
    log.append([{ ...label("a"), id: "fact" } as EntryDraft]);
    expect(() => log.plan([message("d", user("4"))], { onto: "fact" })).toThrow(
      expect.objectContaining({ code: "INVALID_ENTRY" }),
    );
    expect(() => log.plan([message("d", user("4"))], { onto: "fact" })).toThrow('"fact"');
  });

  test("a side branch keeps the settings and totals of that branch", () => {
    const log = new SampleLog().say({ a: assistant("1", { cost: 1 }), b: assistant("2", { cost: 10 }) });
    const { added, head } = log.plan([message("c", assistant("3", { cost: 100 }))], { onto: "a" });
    expect(added[0]?.path).toMatchObject({ cost: 101, depth: 2 });
    expect(head).toMatchObject({ leafId: "b", cost: 111, path: { cost: 11 } });
  });

  test("a run's results stay on its branch after someone moved the leaf", () => {
    const log = abc();
    log.append([{ type: "leaf", targetId: "a" }]);
    log.append([message("result", user("r"))], { onto: "c" });
    expect(log.entries.at(-1)?.parentId).toBe("c");
    expect(log.head.leafId).toBe("a");
  });
});

describe("an expected version", () => {
  test("that is stale is a conflict whose error has both versions", () => {
    const stale = () => abc().plan([message("d", user("4"))], { expectedVersion: 2 });
    expect(stale).toThrow(
      expect.objectContaining({ name: "SessionConflictError", code: "CONFLICT", expected: 2, actual: 3 }),
    );
    expect(() => abc().plan([message("d", user("4"))], { expectedVersion: 4 })).toThrow(
      expect.objectContaining({ code: "CONFLICT" }),
    );
    expect(() => abc().plan([], { expectedVersion: 0 })).toThrow(expect.objectContaining({ code: "CONFLICT" }));
  });

  test("that is current is accepted", () => {
    expect(abc().plan([message("d", user("4"))], { expectedVersion: 3 }).head.version).toBe(4);
    expect(new SampleLog().plan([message("a", user("1"))], { expectedVersion: 0 }).head.version).toBe(1);
  });

  test("does not stand in the way of an exact retry", () => {
    const plan = abc().plan([message("a", user("1"))], { expectedVersion: 0 });
    expect(plan.entries.map((entry) => entry.seq)).toEqual([0]);
  });

  test("conflicts with a retry that adds something new", () => {
    expect(() => abc().plan([message("a", user("1")), message("d", user("4"))], { expectedVersion: 0 })).toThrow(
      expect.objectContaining({ code: "CONFLICT" }),
    );
  });
});

describe("a retry", () => {
  test("of the same ids and contents writes nothing and gives the stored entries", () => {
    const log = abc();
    const plan = log.plan([message("b", user("2")), message("c", user("3"))]);
    expect(plan.entries).toEqual(log.entries.slice(1));
    expect(plan.added).toEqual([]);
    expect(plan.head).toBe(log.head);
  });

  test("compares the type and the own fields, but neither the time nor the order of keys", () => {
    const log = abc();
    const again = {
      timestamp: timeAt(900),
      message: { content: "2", role: "user" },
      id: "b",
      type: "message",
    } as EntryDraft;
    expect(log.plan([again]).entries).toEqual([log.entries[1]]);
  });

  test("works at the leaf, for facts and after the leaf has moved", () => {
    const log = abc();
    const leaf: EntryDraft = { type: "leaf", id: "move", targetId: "a" };
    log.append([leaf]);
    expect(log.plan([leaf]).added).toEqual([]);
    expect(log.plan([message("c", user("3"))]).added).toEqual([]);
    expect(log.plan([message("a", user("1"))]).added).toEqual([]);
  });

  test("with other content is refused, with all entries of the append", () => {
    const refuse = (draft: EntryDraft) => expect(() => abc().plan([message("d", user("4")), draft]));
    refuse(message("b", user("other"))).toThrow(expect.objectContaining({ code: "ENTRY_EXISTS" }));
    refuse(message("b", user("other"))).toThrow('already has an entry "b" with other content');
    refuse({ type: "custom", id: "b", customType: "c" }).toThrow(expect.objectContaining({ code: "ENTRY_EXISTS" }));
    refuse({ ...message("b", user("2")), ...{ extra: 1 } }).toThrow(expect.objectContaining({ code: "ENTRY_EXISTS" }));
  });

  test("with a part of the entries writes only the new ones, at the leaf", () => {
    const log = abc();
    const plan = log.plan([
      message("b", user("2")),
      message("d", user("4")),
      message("a", user("1")),
      message("e", user("5")),
    ]);
    expect(plan.entries.map((entry) => [entry.id, entry.parentId])).toEqual([
      ["b", "a"],
      ["d", "c"],
      ["a", null],
      ["e", "d"],
    ]);
    expect(plan.added.map(({ entry }) => entry.id)).toEqual(["d", "e"]);
    expect(plan.head.version).toBe(5);
  });

  test("within one append counts once", () => {
    const plan = abc().plan([message("d", user("4")), message("d", user("4")), message("e", user("5"))]);
    expect(plan.entries.map((entry) => entry.seq)).toEqual([3, 3, 4]);
    expect(plan.added).toHaveLength(2);
    expect(() => abc().plan([message("d", user("4")), message("d", user("other"))])).toThrow(
      expect.objectContaining({ code: "ENTRY_EXISTS" }),
    );
  });

  test("accepts an id like __proto__", () => {
    const log = new SampleLog();
    const drafts = [message("__proto__", user("1")), message("constructor", user("2"))];
    expect(log.plan(drafts).added).toHaveLength(2);
    log.append(drafts);
    expect(log.plan(drafts).added).toHaveLength(0);
    expect(log.head.leafId).toBe("constructor");
  });
});

describe("targets", () => {
  test.for<EntryDraft>([
    { type: "leaf", targetId: "nowhere" },
    label("nowhere"),
    { type: "prune", targetId: "nowhere" },
    { type: "compaction_undone", targetId: "nowhere" },
  ])("an unknown one is refused by name: %j", (draft) => {
    expect(() => abc().plan([draft])).toThrow(expect.objectContaining({ code: "UNKNOWN_ENTRY", entryId: "nowhere" }));
  });

  test("may be the leaf, an entry of the same append, or on another branch", () => {
    const log = abc();
    expect(log.plan([label("c"), { type: "leaf", targetId: "c" }]).added).toHaveLength(2);
    expect(log.plan([message("d", user("4")), label("d"), { type: "leaf", targetId: "d" }]).head.leafId).toBe("d");
    log.append([{ type: "leaf", targetId: null }]);
    expect(log.plan([label("c"), { type: "prune", targetId: "b" }]).added).toHaveLength(2);
  });

  test("must precede the entries that refer to them", () => {
    expect(() => abc().plan([label("d"), message("d", user("4"))])).toThrow(
      expect.objectContaining({ code: "UNKNOWN_ENTRY" }),
    );
  });

  test("a label may refer to a fact, a leaf may not", () => {
    const log = abc();
    log.append([{ ...label("a"), id: "fact" } as EntryDraft]);
    expect(log.plan([label("fact")]).added).toHaveLength(1);
    expect(() => log.plan([{ type: "leaf", targetId: "fact" }])).toThrow(
      expect.objectContaining({ code: "INVALID_ENTRY" }),
    );
  });

  test("only a compaction can be undone", () => {
    const log = abc();
    log.append([compaction("k")]);
    expect(log.plan([{ type: "compaction_undone", targetId: "k" }]).head.undone).toEqual(["k"]);
    expect(() => log.plan([{ type: "compaction_undone", targetId: "a" }])).toThrow(
      expect.objectContaining({ code: "INVALID_ENTRY" }),
    );
    expect(() => log.plan([{ type: "compaction_undone", targetId: "a" }])).toThrow("is not a compaction");
  });

  test("moving the leaf restores the totals of its target, also within an append", () => {
    const log = new SampleLog().say({
      a: assistant("1", { usage: usage(1) }),
      b: assistant("2", { usage: usage(10) }),
    });
    const { head } = log.plan([
      { type: "leaf", targetId: "a" },
      message("c", assistant("3", { usage: usage(100) })),
      { type: "leaf", targetId: "b" },
    ]);
    expect(head.path.usage).toEqual(usage(11));
    expect(head.usage).toEqual(usage(111));
  });
});

describe("a copy of another log", () => {
  const copied = (id: string, parentId: string | null): EntryDraft => ({
    ...message(id, user(id)),
    parentId,
    timestamp: timeAt(7),
  });

  test("keeps parents and times", () => {
    const log = new SampleLog();
    log.append([copied("a", null), copied("b", "a"), copied("c", "a"), { ...label("c"), parentId: "elsewhere" }], {
      verbatim: true,
    });
    expect(log.entries.map((entry) => entry.parentId)).toEqual([null, "a", "a", "elsewhere"]);
    expect(log.entries[0]?.timestamp).toBe(timeAt(7));
    expect(log.head.leafId).toBe("b");
  });

  test("can add a node below any existing entry", () => {
    const log = abc();
    log.append([copied("d", "a")], { verbatim: true });
    expect(log.pathOf("d")?.depth).toBe(2);
  });

  test("may have several children of the leaf at which it starts", () => {
    const log = abc();
    log.append([copied("d", "c"), copied("e", "c"), copied("f", "c")], { verbatim: true });
    expect(log.pathOf("f")?.depth).toBe(4);
    expect(log.head.leafId).toBe("d");
  });

  test("refuses a node whose parent is missing, later, or the node itself", () => {
    const plan =
      (...drafts: EntryDraft[]) =>
      () =>
        abc().plan(drafts, { verbatim: true });
    expect(plan(copied("x", "nowhere"))).toThrow(
      expect.objectContaining({ code: "UNKNOWN_ENTRY", entryId: "nowhere" }),
    );
    expect(plan(copied("x", "y"), copied("y", "a"))).toThrow(
      expect.objectContaining({ code: "UNKNOWN_ENTRY", entryId: "y" }),
    );
    expect(plan(copied("x", "x"))).toThrow(expect.objectContaining({ code: "UNKNOWN_ENTRY", entryId: "x" }));
  });
});

test("a refused append does not change the head", () => {
  const log = abc();
  const before = structuredClone(log.head);
  expect(() => log.append([message("d", user("4")), label("nowhere")])).toThrow(
    expect.objectContaining({ code: "UNKNOWN_ENTRY" }),
  );
  expect(log.head).toEqual(before);
  expect(log.entries).toHaveLength(3);
});
