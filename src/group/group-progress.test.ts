import { expect, test } from "vitest";
import type { Entry, EntryDraft } from "../session/log/entry.ts";
import { endDraft, passDraft, questionDraft } from "./group-drafts.ts";
import { type GroupProgress, stepProgress } from "./group-progress.ts";

const entryOf = (draft: EntryDraft, more: object = {}): Entry =>
  ({ id: "e", parentId: null, timestamp: "2026-01-01T00:00:00.000Z", seq: 0, ...draft, ...more }) as Entry;

test("an end, a pass or a go that a user appends is none of the group's, and the group's own counts", () => {
  const asked = stepProgress(null, entryOf(questionDraft("Hi.", { maxRounds: 2 }), { by: "ann" })) as GroupProgress;
  expect(asked).toMatchObject({ messageId: "e", moves: [], ended: null });
  for (const draft of [endDraft("complete"), passDraft("writer")]) {
    expect(stepProgress(asked, entryOf(draft, { by: "ann" }))).toBe(asked);
    expect(stepProgress(asked, entryOf(draft))).not.toBe(asked);
  }
  const go = { type: "message", message: { role: "assistant", content: "Hi.", agent: "writer" } } as const;
  const marked = { ...go, message: { ...go.message, metadata: { group: { kind: "turn" } } } } as EntryDraft;
  expect(stepProgress(asked, entryOf(marked, { by: "ann" }))).toBe(asked);
  expect(stepProgress(asked, entryOf(marked))?.moves).toEqual([{ agent: "writer", kind: "spoke" }]);
});
