import { checkStoreArgument } from "../session/check-arguments.ts";
import assert from "node:assert/strict";
import { type Entry, isNode } from "../session/log/entry.ts";
import { EMPTY_PATH, emptyHead, type PathSummary, type SessionHead, stepHead, stepPath } from "../session/log/fold.ts";
import { openRunsAsStored } from "../session/log/open-runs.ts";
import { SettingsTable } from "../session/log/settings.ts";
import type { SessionStore } from "../session/store.ts";

/**
 * Asserts that a session's head, and the path summary of each node, equals the fold of its entries. `updatedAt` is not
 * checked, because it comes from the store's clock. Heads that were stored before format 3 lack `first` in their open runs.
 */
export async function checkHeadIsFold(store: SessionStore, sessionId: string): Promise<void> {
  checkStoreArgument(store, "checkHeadIsFold");
  const head = await store.head(sessionId);
  assert.ok(head !== null, `there is no session ${sessionId}`);
  const paths = new Map<string, PathSummary>();
  const settings = new SettingsTable();
  let folded: SessionHead = { ...emptyHead(head.header), updatedAt: head.updatedAt };
  for await (const entry of store.read(sessionId)) {
    assert.equal(entry.seq, folded.version, `entry ${entry.id} has the wrong position`);
    folded = stepHead(folded, entry, stepOf(entry, paths, head, settings), head.updatedAt);
  }
  // Compare the values of settings, not the positions of their nodes: those depend on the store and on its format version.
  const withValues = async (path: PathSummary) => ({ ...path, settings: await store.settings(sessionId, path) });
  const expectedPath = (path: PathSummary) => ({ ...path, settings: settings.read(path.settings) });
  const openRuns = openRunsAsStored(folded.openRuns, head.openRuns);
  const expected = { ...folded, openRuns, path: expectedPath(folded.path) };
  const actual = { ...head, path: await withValues(head.path) };
  assert.deepEqual(actual, expected, `the head of session ${sessionId} is not the fold of its entries`);
  for (const [id, path] of paths) {
    const stored = await store.path(sessionId, id);
    assert.ok(stored !== null, `there is no path to entry ${id}`);
    assert.deepEqual(
      await withValues(stored),
      expectedPath(path),
      `the path of entry ${id} is not the fold of its ancestors`,
    );
  }
}

function stepOf(
  entry: Entry,
  paths: Map<string, PathSummary>,
  { header }: SessionHead,
  settings: SettingsTable,
): PathSummary {
  if (isNode(entry)) {
    const path = stepPath(pathOf(entry.parentId, entry, paths), entry, header, settings.at);
    settings.add(path.settings);
    paths.set(entry.id, path);
    return path;
  }
  return entry.type === "leaf" ? pathOf(entry.targetId, entry, paths) : EMPTY_PATH;
}

function pathOf(id: string | null, entry: Entry, paths: ReadonlyMap<string, PathSummary>): PathSummary {
  if (id === null) return EMPTY_PATH;
  const path = paths.get(id);
  assert.ok(path !== undefined, `entry ${entry.id} comes before the node ${id} that it refers to`);
  return path;
}
