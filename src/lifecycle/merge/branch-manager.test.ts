import fc from "fast-check";
import { expect, test } from "vitest";
import type { EntryDraft } from "../../session/log/entry.ts";
import { createHeader } from "../../session/log/header.ts";
import { textOf } from "../../session/message.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import { BranchManager } from "./branch-manager.ts";

type Act =
  | { readonly kind: "say"; readonly on: number }
  | { readonly kind: "fork"; readonly from: number }
  | { readonly kind: "merge"; readonly branch: number; readonly up: number };

const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("say" as const), on: fc.nat(20) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("fork" as const), from: fc.nat(20) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("merge" as const), branch: fc.nat(20), up: fc.nat(3) }) },
);

/** The expected contents of sessions: the ids of the turns, in order. */
interface Expected {
  readonly id: string;
  readonly parent: Expected | null;
  readonly turns: string[];
}

test("after any sequence of turns, forks and merges every session has each turn once, in order, regardless of clocks", async () => {
  const timestamp = "2024-01-01T00:00:00.000Z";
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 40 }), async (acts) => {
      await using store = await openMemoryStore();
      const branches = new BranchManager(store, { maxPerSession: 100, clock: () => new Date(timestamp) });
      await store.create(createHeader({ id: "root" }));
      const sessions: Expected[] = [{ id: "root", parent: null, turns: [] }];
      const at = (index: number): Expected => sessions[index % sessions.length] as Expected;
      for (const [index, each] of acts.entries()) {
        if (each.kind === "say") {
          const turn = `turn-${index}`;
          const draft: EntryDraft = { type: "message", id: turn, timestamp, message: { role: "user", content: turn } };
          await store.append(at(each.on).id, [draft]);
          at(each.on).turns.push(turn);
        } else if (each.kind === "fork") {
          const parent = at(each.from);
          const { sessionId } = await branches.fork(parent.id, `branch-${index}`, { turns: false });
          sessions.push({ id: sessionId, parent, turns: [...parent.turns] });
        } else {
          const branch = at(each.branch);
          let target = branch.parent;
          for (let up = 0; up < each.up && target?.parent != null; up++) target = target.parent;
          if (target === null) continue;
          const missing = branch.turns.filter((turn) => !target.turns.includes(turn));
          const { appended } = await branches.merge(target.id, branch.id, { turns: false });
          expect(appended.map(({ id }) => id)).toEqual(missing);
          target.turns.push(...missing);
        }
      }
      for (const { id, turns } of sessions) {
        const held: string[] = [];
        for await (const entry of store.read(id))
          if (entry.type === "message") held.push(textOf(entry.message.content));
        expect(held).toEqual(turns);
        expect((await store.head(id))?.path.turnCount).toBe(turns.length);
      }
    }),
    { numRuns: 150 },
  );
});
