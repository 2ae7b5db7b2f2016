import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { trackLineage, withLineage } from "./lineage-scope.ts";
import { createUserSession, Session } from "../value/session.ts";
import { Transcript } from "../value/transcript.ts";

const kinds = (...sessions: readonly Session[]) => sessions.map(({ lineage }) => lineage.kind);

describe("withLineage", () => {
  test("disables lineage in its scope only, also after an await in it", async () => {
    const source = createUserSession("Hi");
    const scoped = withLineage(false, async () => {
      const before = [createUserSession("x"), source.fork(), source.detach(), source.merge(source)];
      await turn();
      return [...before, source.fork(), await source.forkIsolated()];
    });
    const outside = source.fork();
    for (const session of await scoped) {
      expect(session.lineage).toEqual({ parents: [], operator: "implicit", kind: "unknown", extras: [] });
    }
    expect(kinds(outside, createUserSession("x"))).toEqual(["op_fork", "leaf_user"]);
  });

  test("nests, and the outer scope is restored when the inner one ends or throws", () => {
    withLineage(false, () => {
      expect(kinds(withLineage(true, () => createUserSession("x")))).toEqual(["leaf_user"]);
      expect(() =>
        withLineage(true, () => {
          throw new Error("boo");
        }),
      ).toThrow("boo");
      expect(kinds(createUserSession("x"))).toEqual(["unknown"]);
    });
  });

  test("does not change a lineage that is passed with rows", () => {
    const { lineage } = createUserSession("x");
    expect(withLineage(false, () => Session.of(Transcript.empty, { lineage })).lineage).toEqual(lineage);
  });
});

describe("trackLineage", () => {
  test("records the sessions in the order of creation, of every kind", async () => {
    const outside = createUserSession("before");
    const [made, journal] = await trackLineage(async (kept) => {
      const first = Session.fromUserMessage("Hi");
      await turn();
      const second = first.fork();
      const third = await second.forkIsolated();
      const last = [
        third.detach(),
        third.merge(outside),
        Session.create({ kind: "empty" }),
        Session.of(Transcript.empty),
      ];
      return [[first, second, third, ...last], kept] as const;
    });
    outside.fork();
    expect(journal.visitOrder).toEqual(made.map(({ id }) => id));
  });

  test("records a session in every enclosing journal", () => {
    trackLineage((outer) => {
      const first = createUserSession("a");
      const inner = trackLineage((journal) => [createUserSession("b").id, journal.visitOrder] as const);
      const last = withLineage(false, () => createUserSession("c"));
      expect(inner[1]).toEqual([inner[0]]);
      expect(outer.visitOrder).toEqual([first.id, inner[0], last.id]);
    });
  });

  test("isolates concurrent tasks", async () => {
    const task = (count: number) =>
      trackLineage(async (journal) => {
        const ids: string[] = [];
        for (let i = 0; i < count; i++) {
          ids.push(createUserSession(`${i}`).id);
          await turn();
        }
        expect(journal.visitOrder).toEqual(ids);
        return ids;
      });
    const made = await Promise.all([task(3), task(5), task(4)]);
    expect(new Set(made.flat()).size).toBe(12);
  });
});
