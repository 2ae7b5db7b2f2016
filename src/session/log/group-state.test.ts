import { expect, test } from "vitest";
import { endDraft, passDraft, questionDraft } from "../../group/group-drafts.ts";
import type { Entry, EntryDraft } from "./entry.ts";
import { type GroupState, stepGroup } from "./group-state.ts";

const entryOf = (draft: EntryDraft, more: object = {}): Entry =>
  ({ id: "e", parentId: null, timestamp: "2026-01-01T00:00:00.000Z", seq: 0, ...draft, ...more }) as Entry;

test("ignores an end, a pass or a turn that a user appends, and counts those of the group", () => {
  const asked = stepGroup(
    null,
    entryOf(questionDraft("Hi.", { maxRounds: 2, turnId: "e" }), { by: "ann" }),
  ) as GroupState;
  expect(asked).toMatchObject({ messageId: "e", moves: [], ended: null });
  for (const draft of [endDraft("complete"), passDraft("writer")]) {
    expect(stepGroup(asked, entryOf(draft, { by: "ann" }))).toBe(asked);
    expect(stepGroup(asked, entryOf(draft))).not.toBe(asked);
  }
  const go = { type: "message", message: { role: "assistant", content: "Hi.", agent: "writer" } } as const;
  const marked = { ...go, message: { ...go.message, metadata: { group: { kind: "turn" } } } } as EntryDraft;
  expect(stepGroup(asked, entryOf(marked, { by: "ann" }))).toBe(asked);
  expect(stepGroup(asked, entryOf(marked))?.moves).toEqual([{ agent: "writer", kind: "spoke" }]);
});
