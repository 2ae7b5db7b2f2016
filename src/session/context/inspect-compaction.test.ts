import { expect, test } from "vitest";
import { SampleLog, user } from "../../../test/sample-log.ts";
import type { Entry, EntryDraft } from "../log/entry.ts";
import { inspectCompaction } from "./compaction.ts";

const compaction = (id: string, firstKeptEntryId: string): EntryDraft => ({
  type: "compaction",
  id,
  summary: id,
  firstKeptEntryId,
  tokensBefore: 1,
});
const idsOf = (entries: readonly Entry[] | undefined) => entries?.map((entry) => entry.id);

test("returns what a compaction dropped and kept, and nothing after it", () => {
  const log = new SampleLog().say({ a: user("1"), b: user("2"), c: user("3") });
  log.append([compaction("k", "c")]);
  log.say({ d: user("4") });
  const view = inspectCompaction(log.entries, "k");
  expect([view?.compaction.id, idsOf(view?.dropped), idsOf(view?.kept)]).toEqual(["k", ["a", "b"], ["c"]]);
});

test("a later compaction drops what the earlier one kept, and no compaction is shown as dropped or kept", () => {
  const log = new SampleLog().say({ a: user("1"), b: user("2") });
  log.append([compaction("k1", "b")]);
  log.say({ c: user("3") });
  log.append([compaction("k2", "c")]);
  const view = inspectCompaction(log.entries, "k2");
  expect([idsOf(view?.dropped), idsOf(view?.kept)]).toEqual([["a", "b"], ["c"]]);
});

test("a compaction whose first kept entry is not before it dropped everything", () => {
  for (const firstKept of ["nowhere", "k", "later"]) {
    const log = new SampleLog().say({ a: user("1") });
    log.append([compaction("k", firstKept)]);
    log.say({ later: user("2") });
    const view = inspectCompaction(log.entries, "k");
    expect([idsOf(view?.dropped), idsOf(view?.kept)]).toEqual([["a"], []]);
  }
});

test("an id that is not a compaction on the path returns null", () => {
  const log = new SampleLog().say({ a: user("1") });
  expect(inspectCompaction(log.entries, "a")).toBe(null);
  expect(inspectCompaction(log.entries, "nowhere")).toBe(null);
  expect(inspectCompaction([], "a")).toBe(null);
});
