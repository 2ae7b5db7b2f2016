import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createHeader } from "../log/header.ts";
import { ancestors, descendants, edges, type SessionLike, validateAcyclic } from "./lineage.ts";
import { sessionToRow } from "./lineage-export.ts";
import { createUserSession } from "../value/session.ts";

const node = (id: string, ...parents: string[]): SessionLike => ({
  id,
  lineage: { parents, operator: "fork", kind: "op_fork", extras: [] },
});
const ids = (sessions: readonly SessionLike[]) => sessions.map(({ id }) => id).join(" ");
const LONG = 100_000;

/** A root with two branches that are merged, and a stranger. */
const graph = [
  node("root"),
  node("left", "root"),
  node("right", "root"),
  node("deep", "left"),
  node("merged", "deep", "right"),
  node("end", "merged"),
  node("stranger"),
];

describe("ancestors", () => {
  test("come nearest first, each once, at the same distance in the order of the parents", () => {
    expect(ids(ancestors(graph, "end"))).toBe("merged deep right left root");
    expect(ids(ancestors(graph, "merged"))).toBe("deep right left root");
    expect(ids(ancestors(graph, "root"))).toBe("");
  });

  test("do not depend on the order in which the sessions are given", () => {
    expect(ids(ancestors([...graph].reverse(), "end"))).toBe("merged deep right left root");
  });

  test("are the given objects; parents that were not given are left out", () => {
    const [parent, child] = [node("parent", "missing"), node("child", "missing", "parent")];
    expect(ancestors([child, parent], "child")[0]).toBe(parent);
    expect(ancestors([child, parent], "child")).toHaveLength(1);
  });

  test("of an unknown session are refused by name", () => {
    expect(() => ancestors(graph, "nobody")).toThrow(
      expect.objectContaining({ code: "LINEAGE", sessionId: "nobody", message: expect.stringContaining('"nobody"') }),
    );
  });
});

describe("descendants", () => {
  test("appear once each, before their own descendants, with children in the order given", () => {
    expect(ids(descendants(graph, "root"))).toBe("left deep merged end right");
    expect(ids(descendants([...graph].reverse(), "root"))).toBe("right merged end left deep");
    expect(ids(descendants(graph, "stranger"))).toBe("");
    expect(() => descendants(graph, "nobody")).toThrow(expect.objectContaining({ code: "LINEAGE" }));
  });

  test("of a session merged with itself are listed once", () => {
    const twice = [node("a"), node("twice", "a", "a")];
    expect(ids(descendants(twice, "a"))).toBe("twice");
    expect(edges(twice)).toEqual([{ parent: "a", child: "twice" }]);
  });
});

describe("validateAcyclic", () => {
  test("accepts a graph in any order, and an empty one", () => {
    expect(() => validateAcyclic(graph)).not.toThrow();
    expect(() => validateAcyclic([...graph].reverse())).not.toThrow();
    expect(() => validateAcyclic([node("a"), node("b", "a", "a")])).not.toThrow();
    expect(() => validateAcyclic([])).not.toThrow();
  });

  test("names the session and the parent that is missing", () => {
    expect(() => validateAcyclic([node("a"), node("b", "a", "gone")])).toThrow(
      expect.objectContaining({
        code: "LINEAGE",
        sessionId: "b",
        message: 'Session "b" has a parent "gone" that is missing.',
      }),
    );
  });

  test("names the sessions of a cycle and no others", () => {
    const cyclic = [node("below", "c"), node("root"), node("a", "root", "c"), node("b", "a"), node("c", "b")];
    expect(() => validateAcyclic(cyclic)).toThrow(
      expect.objectContaining({
        code: "LINEAGE",
        message: expect.stringMatching(/one before: (?:"a", "b", "c"|"b", "c", "a"|"c", "a", "b")\.$/),
      }),
    );
    expect(() => validateAcyclic([node("self", "self")])).toThrow(/cycle, .*: "self"\.$/);
  });
});

test("edges have parent and child in the order given, also of an unknown parent", () => {
  expect(edges([node("a", "gone"), node("b", "a", "c"), node("c"), node("b", "other")])).toEqual([
    { parent: "gone", child: "a" },
    { parent: "a", child: "b" },
    { parent: "c", child: "b" },
  ]);
});

test("sessions, headers and rows of an export can be mixed in one graph", () => {
  const session = createUserSession("Hi");
  const fork = session.fork();
  const header = createHeader({ id: "stored", lineage: fork.fork().lineage });
  const mixed: SessionLike[] = [session, sessionToRow(fork), header];
  expect(ids(ancestors(mixed, "stored"))).toBe(`${fork.id} ${session.id}`);
  expect(() => validateAcyclic(mixed)).not.toThrow();
});

describe("a graph of 100,000 sessions", () => {
  test("can be a chain", () => {
    const chain = Array.from({ length: LONG }, (_, index) =>
      node(`s${index}`, ...(index === 0 ? [] : [`s${index - 1}`])),
    );
    expect(ancestors(chain, `s${LONG - 1}`)).toEqual(chain.slice(0, -1).reverse());
    expect(descendants(chain, "s0")).toEqual(chain.slice(1));
    expect(edges(chain)).toHaveLength(LONG - 1);
    validateAcyclic([...chain].reverse());
    expect(() => validateAcyclic([node("s0", `s${LONG - 1}`), ...chain.slice(1)])).toThrow(
      /"s9", "s10" and 99990 more\.$/,
    );
  });

  test("can have one parent, or be the parents of one", () => {
    const wide = Array.from({ length: LONG }, (_, index) => node(`s${index}`, "root"));
    const all = [node("root"), ...wide, node("merged", ...wide.map(({ id }) => id))];
    validateAcyclic(all);
    expect(descendants(all, "root")).toHaveLength(LONG + 1);
    expect(ancestors(all, "merged")).toEqual([...wide, all[0]]);
    expect(edges(all)).toHaveLength(2 * LONG);
  });
});

test("in any graph without cycles, ancestors and descendants are inverse; an added edge that closes a cycle is found", () => {
  const parentLists = fc.array(fc.array(fc.nat(30), { maxLength: 3 }), { minLength: 1, maxLength: 30 });
  fc.assert(
    fc.property(parentLists, (lists) => {
      const sessions = lists.map((parents, index) =>
        node(`s${index}`, ...(index === 0 ? [] : parents.map((parent) => `s${parent % index}`))),
      );
      validateAcyclic(sessions);
      for (const { id } of sessions) {
        for (const below of descendants(sessions, id))
          expect(ids(ancestors(sessions, below.id)).split(" ")).toContain(id);
        for (const above of ancestors(sessions, id))
          expect(ids(descendants(sessions, above.id)).split(" ")).toContain(id);
      }
      const [last] = sessions.slice(-1) as [SessionLike];
      const [root] = ancestors(sessions, last.id).slice(-1);
      if (root === undefined) return;
      const cyclic = sessions.map((session) => (session === root ? node(root.id, last.id) : session));
      expect(() => validateAcyclic(cyclic)).toThrow(/cycle/);
      expect(ancestors(cyclic, root.id).length).toBeLessThan(cyclic.length);
      expect(descendants(cyclic, root.id).length).toBeLessThan(cyclic.length);
    }),
    { numRuns: 100 },
  );
});
