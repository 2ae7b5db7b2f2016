import { describe, expect, test } from "vitest";
import { entryAt, nodesOf, SampleLog, user } from "../../../test/sample-log.ts";
import type { Entry, EntryBody } from "./entry.ts";
import {
  branchTo,
  buildTree,
  childrenOf,
  indexEntries,
  labelsOf,
  leafOf,
  type TreeNode,
  undoneIds,
} from "./entry-tree.ts";

const said: EntryBody = { type: "message", message: user("x") };

type Shape = { [id: string]: Shape };
function shapeOf(nodes: readonly TreeNode[]): Shape {
  return Object.fromEntries(nodes.map(({ entry, children }) => [entry.id, shapeOf(children)]));
}
const idsOf = (entries: readonly Entry[]) => entries.map((entry) => entry.id);

describe("buildTree", () => {
  test("adds children to their parents in the order of the appends", () => {
    const tree = buildTree(nodesOf({ a: null, b: "a", c: "a", d: "b", e: null, f: "a" }));
    expect(shapeOf(tree)).toEqual({ a: { b: { d: {} }, c: {}, f: {} }, e: {} });
    expect(tree[0]?.children.map((node) => node.entry.id)).toEqual(["b", "c", "f"]);
  });

  test("is empty for an empty log", () => {
    expect(buildTree([])).toEqual([]);
  });

  test("treats nodes without their parent as roots", () => {
    expect(shapeOf(buildTree(nodesOf({ a: null, b: "missing", c: "b" })))).toEqual({ a: {}, b: { c: {} } });
  });

  test("leaves out facts, and treats their children in a damaged log as roots", () => {
    const log = [
      ...nodesOf({ a: null }),
      entryAt(1, "fact", "a", { type: "session_info", name: "n" }),
      entryAt(2, "b", "fact", said),
      entryAt(3, "x", "a", { type: "hologram", node: true } as unknown as EntryBody),
      entryAt(4, "y", "a", { type: "hologram" } as unknown as EntryBody),
    ];
    expect(shapeOf(buildTree(log))).toEqual({ a: { x: {} }, b: {} });
  });

  test("keeps every node of a cycle, each once", () => {
    expect(shapeOf(buildTree(nodesOf({ a: "c", b: "a", c: "b" })))).toEqual({ a: { b: { c: {} } } });
    expect(shapeOf(buildTree(nodesOf({ a: "a", b: "a" })))).toEqual({ a: { b: {} } });
  });

  test("uses the first of two entries with one id", () => {
    const log = [...nodesOf({ a: null, b: "a" }), entryAt(2, "b", null, said)];
    expect(shapeOf(buildTree(log))).toEqual({ a: { b: {} } });
  });

  test("hides a pruned branch with all its descendants, and nothing else", () => {
    const log = [
      ...nodesOf({ a: null, b: "a", c: "b", d: "a" }),
      entryAt(4, "p", "d", { type: "prune", targetId: "b" }),
    ];
    expect(shapeOf(buildTree(log))).toEqual({ a: { d: {} } });
    const root = [...nodesOf({ a: null, b: "a", c: null }), entryAt(3, "p", "c", { type: "prune", targetId: "a" })];
    expect(shapeOf(buildTree(root))).toEqual({ c: {} });
  });

  test("has the label in force, or none", () => {
    const log = [
      ...nodesOf({ a: null, b: "a" }),
      entryAt(2, "l1", "b", { type: "label", targetId: "a", label: "first" }),
      entryAt(3, "l2", "b", { type: "label", targetId: "b", label: "gone" }),
      entryAt(4, "l3", "b", { type: "label", targetId: "a", label: "second" }),
      entryAt(5, "l4", "b", { type: "label", targetId: "b", label: null }),
    ];
    const [a] = buildTree(log);
    expect(a?.label).toBe("second");
    expect(a?.children[0]).toEqual({ entry: log[1], children: [] });
  });

  test("holds 200,000 siblings", () => {
    const log = [entryAt(0, "root", null, said)];
    for (let i = 1; i <= 200_000; i++) log.push(entryAt(i, `n${i}`, "root", said));
    const [root] = buildTree(log);
    expect(root?.children.length).toBe(200_000);
    expect(root?.children.at(-1)?.entry.id).toBe("n200000");
    expect(childrenOf(log, "root").length).toBe(200_000);
  });

  test("holds a chain that is 100,000 deep", () => {
    const log: Entry[] = [];
    for (let i = 0; i < 100_000; i++) log.push(entryAt(i, `n${i}`, i === 0 ? null : `n${i - 1}`, said));
    let depth = 0;
    for (let nodes: readonly TreeNode[] = buildTree(log); nodes.length > 0; nodes = (nodes[0] as TreeNode).children)
      depth++;
    expect(depth).toBe(100_000);
    expect(branchTo(indexEntries(log), "n99999").length).toBe(100_000);
    expect(leafOf(log)).toBe("n99999");
  });
});

describe("childrenOf", () => {
  const log = [
    ...nodesOf({ a: null, b: "a", c: "a", d: "missing", e: "b" }),
    entryAt(5, "fact", "a", { type: "session_info", name: "n" }),
  ];

  test("returns the nodes below an entry in the order of the appends", () => {
    expect(idsOf(childrenOf(log, "a"))).toEqual(["b", "c"]);
    expect(idsOf(childrenOf(log, "e"))).toEqual([]);
    expect(idsOf(childrenOf(log, "unheard-of"))).toEqual([]);
  });

  test("returns the roots for null, including nodes without their parent", () => {
    expect(idsOf(childrenOf(log, null))).toEqual(["a", "d"]);
  });

  test("leaves out pruned branches", () => {
    expect(idsOf(childrenOf([...log, entryAt(6, "p", "c", { type: "prune", targetId: "b" })], "a"))).toEqual(["c"]);
  });

  test("agrees with the tree on a damaged log", () => {
    const cyclic = nodesOf({ a: "c", b: "a", c: "b", d: "d" });
    expect(idsOf(childrenOf(cyclic, null))).toEqual(buildTree(cyclic).map((node) => node.entry.id));
    expect(idsOf(childrenOf(cyclic, "a"))).toEqual(["b"]);
  });
});

describe("branchTo", () => {
  const index = indexEntries(nodesOf({ a: null, b: "a", c: "b", d: "a" }));

  test("is the path from the root to the entry", () => {
    expect(idsOf(branchTo(index, "c"))).toEqual(["a", "b", "c"]);
    expect(idsOf(branchTo(index, "a"))).toEqual(["a"]);
  });

  test("is empty for an unknown entry", () => {
    expect(branchTo(index, "nowhere")).toEqual([]);
  });

  test("begins where a parent is missing, and ends its walk at a cycle", () => {
    expect(idsOf(branchTo(indexEntries(nodesOf({ b: "missing", c: "b" })), "c"))).toEqual(["b", "c"]);
    expect(idsOf(branchTo(indexEntries(nodesOf({ a: "c", b: "a", c: "b" })), "c"))).toEqual(["a", "b", "c"]);
    expect(idsOf(branchTo(indexEntries(nodesOf({ a: "a" })), "a"))).toEqual(["a"]);
  });
});

describe("labelsOf", () => {
  test("returns the latest label of each entry, whatever branch is active", () => {
    const log = new SampleLog().say({ a: user("1"), b: user("2") });
    log.append([
      { type: "label", targetId: "a", label: "one" },
      { type: "leaf", targetId: null },
      { type: "label", targetId: "a", label: "two" },
      { type: "label", targetId: "b", label: "x" },
      { type: "label", targetId: "b", label: null },
    ]);
    expect([...labelsOf(log.entries)]).toEqual([["a", "two"]]);
    log.append([{ type: "label", targetId: "b", label: "back" }]);
    expect(labelsOf(log.entries).get("b")).toBe("back");
  });

  test("keeps labels of entries with names like __proto__ apart", () => {
    const log = new SampleLog().say({ a: user("1") });
    log.append([
      { type: "message", id: "__proto__", message: user("2") },
      { type: "label", targetId: "__proto__", label: "x" },
    ]);
    expect(labelsOf(log.entries).get("__proto__")).toBe("x");
    expect(labelsOf(log.entries).get("constructor")).toBe(undefined);
  });
});

describe("leafOf", () => {
  test("returns the leaf of the fold", () => {
    const log = new SampleLog().say({ a: user("1"), b: user("2") });
    expect(leafOf([])).toBe(null);
    expect(leafOf(log.entries)).toBe("b");
    log.append([{ type: "message", id: "c", message: user("3") }], { onto: "a" });
    expect(leafOf(log.entries)).toBe("b");
    log.append([{ type: "message", id: "root", message: user("new root") }], { onto: null });
    expect(leafOf(log.entries)).toBe("b");
    log.append([{ type: "leaf", targetId: null }]);
    expect(leafOf(log.entries)).toBe(null);
    log.append([{ type: "message", id: "d", message: user("4") }], { onto: "c" });
    expect(leafOf(log.entries)).toBe(null);
    log.append([{ type: "message", id: "e", message: user("5") }]);
    expect(leafOf(log.entries)).toBe("e");
  });

  test("treats the first node of a partial log as a root", () => {
    expect(leafOf(nodesOf({ b: "a", c: "b", d: "b" }))).toBe("c");
    const moved = [entryAt(0, "l", "a", { type: "leaf", targetId: "b" }), entryAt(1, "c", "b", said)];
    expect(leafOf(moved)).toBe("c");
  });
});

test("undoneIds names each undone compaction", () => {
  const log = [entryAt(0, "u", null, { type: "compaction_undone", targetId: "c" })];
  expect([...undoneIds(log)]).toEqual(["c"]);
});
