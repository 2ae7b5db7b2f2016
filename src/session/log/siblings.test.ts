import { expect, test } from "vitest";
import { type EntryLink, latestLeaf, siblingMessages } from "./siblings.ts";

const node = (id: string, parentId: string | null, type = "message"): EntryLink => ({ id, parentId, type });

/** A question with two answers, the second behind a setting; the first goes on twice. */
const LOG: readonly EntryLink[] = [
  node("question", null),
  node("one", "question"),
  node("setup", "question", "setup"),
  node("two", "setup"),
  { id: "label", parentId: null, type: "label", targetId: "one" },
  node("more", "one"),
  node("other", "one"),
  node("later", "more"),
];

test("messages after the same message are siblings, whatever nodes are between them", () => {
  const siblings = siblingMessages(LOG);
  expect(siblings.get("one")).toEqual(["one", "two"]);
  expect(siblings.get("two")).toEqual(["one", "two"]);
  expect(siblings.get("other")).toEqual(["more", "other"]);
  expect(siblings.get("question")).toEqual(["question"]);
  expect(siblingMessages([...LOG, node("root", null)]).get("root")).toEqual(["question", "root"]);
});

test("the latest leaf below an entry is the one that was appended last; a leaf is its own latest leaf", () => {
  expect(latestLeaf(LOG, "one")).toBe("later");
  expect(latestLeaf(LOG, "question")).toBe("later");
  expect(latestLeaf(LOG, "other")).toBe("other");
});

test("a pruned branch has no siblings and no leaf", () => {
  const pruned = [...LOG, { id: "prune", parentId: null, type: "prune", targetId: "more" }];
  expect(siblingMessages(pruned).get("other")).toEqual(["other"]);
  expect(siblingMessages(pruned).has("later")).toBe(false);
  expect(latestLeaf(pruned, "one")).toBe("other");
});
