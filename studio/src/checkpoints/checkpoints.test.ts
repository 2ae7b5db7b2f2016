import { describe, expect, test } from "vitest";
import { noteOf, positionText } from "./checkpoint-position.ts";
import { editOf, whyNotShown } from "./file-change.ts";
import { isNothing, stateChanges, valueText } from "./state-changes.ts";

test("describes the position of a checkpoint on the active path", () => {
  expect(positionText({ leafId: "b", stepsBack: 0 })).toBe("at the session's current position");
  expect(positionText({ leafId: "a", stepsBack: 1 })).toBe("1 entry back on the active path");
  expect(positionText({ leafId: "x", stepsBack: null })).toBe("on another branch");
  expect(positionText({ leafId: null, stepsBack: null })).toBe("before the first entry");
});

test("accepts only a non-empty text as a note", () => {
  expect(noteOf({ metadata: { note: "before the train" } })).toBe("before the train");
  expect(noteOf({ metadata: { note: " " } })).toBeNull();
  expect(noteOf({ metadata: { note: 3 } })).toBeNull();
});

describe("the changes between two states", () => {
  const turn = (turnId: string) => ({ turnId, role: "user", content: turnId, timestamp: "", metadata: {} });

  test("contain the old and the new value", () => {
    const changes = stateChanges(
      { fields: { set: { turnCount: 3, updatedAt: "later" } }, variables: { set: { a: 1, b: 2 }, unset: ["c"] } },
      { fields: { set: { turnCount: 1, updatedAt: "before" } }, variables: { set: { b: 0, c: "x" }, unset: ["a"] } },
    );
    expect(changes.totals).toEqual([{ name: "Turns", before: 1, after: 3 }]);
    expect(changes.fields).toEqual([]);
    expect(changes.variables).toEqual([
      { name: "a", before: undefined, after: 1 },
      { name: "b", before: 0, after: 2 },
      { name: "c", before: "x", after: undefined },
    ]);
  });

  test("contain the turns that only one of them has", () => {
    const splice = (insert: readonly object[]) => ({ turns: { from: 1, splices: [{ at: 0, remove: 1, insert }] } });
    const changes = stateChanges(splice([turn("new")]) as never, splice([turn("old")]) as never);
    expect(changes.added.map(({ turnId }) => turnId)).toEqual(["new"]);
    expect(changes.removed.map(({ turnId }) => turnId)).toEqual(["old"]);
  });

  test("are empty if the diffs are empty", () => {
    expect(isNothing(stateChanges({}, {}))).toBe(true);
  });

  test("ignore inherited properties such as constructor", () => {
    const [change] = stateChanges(
      { variables: { set: { constructor: 1 } } },
      { variables: { unset: ["constructor"] } },
    ).variables;
    expect(change).toEqual({ name: "constructor", before: undefined, after: 1 });
  });
});

test("formats values by their type", () => {
  expect(valueText(0.5, true)).toBe("$0.50");
  expect(valueText({ a: 1 })).toBe('{"a":1}');
  expect(valueText(undefined)).toBe("none");
});

describe("a changed file", () => {
  test("has lines to show if its old and new text are known and different", () => {
    expect(editOf({ path: "a", change: "changed", before: "x", after: "y" })).toMatchObject({
      oldText: "x",
      newText: "y",
    });
    expect(editOf({ path: "a", change: "added", after: "y" })).toMatchObject({ oldText: "", newText: "y" });
    expect(editOf({ path: "a", change: "removed", before: "x" })).toMatchObject({ oldText: "x", newText: "" });
  });

  test("otherwise gives the reason", () => {
    const mode = { path: "a", change: "changed", before: "x", after: "x" } as const;
    expect([editOf(mode), whyNotShown(mode)]).toEqual([null, "Only its file mode differs."]);
    for (const change of ["added", "removed", "changed"] as const) {
      expect([editOf({ path: "a", change }), whyNotShown({ path: "a", change })]).toEqual([
        null,
        expect.stringContaining("not shown"),
      ]);
    }
    expect(editOf({ path: "a", change: "changed", after: "y" })).toBeNull();
  });
});
