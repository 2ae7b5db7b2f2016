import { checkStoreArgument } from "../session/check-arguments.ts";
import assert from "node:assert/strict";
import { type Entry, isNode } from "../session/log/entry.ts";
import { EMPTY_PATH, emptyHead, type PathSummary, type SessionHead, stepHead, stepPath } from "../session/log/fold.ts";
import { SettingsTable } from "../session/log/settings.ts";
import type { SessionStore } from "../session/store.ts";

/**
 * Asserts that a session's head, and the path of each of its nodes, is what its entries add up to from the first on.
 * Only `updatedAt` is taken as it is, because it is the store's clock.
 */
export async function checkHeadIsFold(store: SessionStore, sessionId: string): Promise<void> {
  checkStoreArgument(store, "checkHeadIsFold");
  const head = await store.head(sessionId);
  assert.ok(head !== null, `there is no session ${sessionId}`);
  const paths = new Map<string, PathSummary>();
  const settings = new SettingsTable();
  let folded: SessionHead = { ...emptyHead(head.header), updatedAt: head.updatedAt };
  for await (const entry of store.read(sessionId)) {
    assert.equal(entry.seq, folded.version, `entry ${entry.id} is at another position than its own`);
    folded = stepHead(folded, entry, stepOf(entry, paths, head, settings), head.updatedAt);
  }
  // Where settings stand is the store's affair, and what an older version has written stands elsewhere; what they are is not.
  const seen = async (path: PathSummary) => ({ ...path, settings: await store.settings(sessionId, path) });
  const due = (path: PathSummary) => ({ ...path, settings: settings.read(path.settings) });
  const expected = { ...folded, path: due(folded.path) };
  const actual = { ...head, path: await seen(head.path) };
  assert.deepEqual(actual, expected, `the head of session ${sessionId} is not the fold of its entries`);
  for (const [id, path] of paths) {
    const stored = await store.path(sessionId, id);
    assert.ok(stored !== null, `there is no path to entry ${id}`);
    assert.deepEqual(await seen(stored), due(path), `the path of entry ${id} is not the fold of its ancestors`);
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
