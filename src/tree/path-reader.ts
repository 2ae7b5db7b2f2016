import { contextOf, contextPath, type ModelContext } from "../session/context/context.ts";
import { type Entry, entryCharacters } from "../session/log/entry.ts";
import { notANode, SessionError, UnknownEntryError } from "../session/errors.ts";
import { EMPTY_PATH, type PathSummary, type SessionHead } from "../session/log/fold.ts";
import { CONTEXT_CHARACTERS_MAX } from "../session/limits.ts";
import type { SessionStore } from "../session/store.ts";

const PAGE_FIRST = 32;
const PAGE_MAX = 1024;
/** How many entries of other branches to pass over before asking the store where the parent stands. */
const PASSED_OVER_MAX = 64;
/** How far to walk for the first kept entry before asking the store whether it is on the path at all. */
const UNSEEN_MAX = 1000;

/**
 * The nodes from an entry up to its root, leaf first. Reads the log backward, which stores do in pages, so that a path
 * costs what it holds; a long stretch of another branch is jumped over.
 */
export async function* walkUp(
  store: SessionStore,
  sessionId: string,
  fromId: string,
): AsyncGenerator<Entry, void, undefined> {
  let wanted: string = fromId;
  let before = Number.MAX_SAFE_INTEGER;
  for (;;) {
    let passedOver = 0;
    for await (const entry of store.read(sessionId, { reverse: true, before })) {
      before = entry.seq;
      if (entry.id !== wanted) {
        if (++passedOver > PASSED_OVER_MAX) break;
        continue;
      }
      passedOver = 0;
      yield entry;
      if (entry.parentId === null) return;
      wanted = entry.parentId;
    }
    // The log's beginning is reached: a parent that was not met is missing, and the path ends there.
    if (passedOver <= PASSED_OVER_MAX) return;
    const next: Entry | null = await store.getEntry(sessionId, wanted);
    if (next === null || next.seq >= before) return;
    before = next.seq + 1;
  }
}

/**
 * Gives entries of a session by their ids, whatever branch they are on. Whoever goes backward through entries near each other
 * makes it read the log in pages, which costs less than one by one; of what is between others, nothing is read.
 */
export function lookBack(store: SessionStore, sessionId: string): (entryId: string) => Promise<Entry | null> {
  const passed = new Map<string, Entry>();
  let reached = Number.POSITIVE_INFINITY;
  let limit = PAGE_FIRST;
  return async (entryId) => {
    const entry = passed.get(entryId) ?? (await store.getEntry(sessionId, entryId));
    if (entry === null || passed.has(entryId)) return entry;
    const goesOn = entry.seq < reached && entry.seq >= reached - limit;
    const page = goesOn ? store.read(sessionId, { reverse: true, limit, before: reached }) : [entry];
    for await (const other of page) {
      passed.set(other.id, other);
      reached = other.seq;
    }
    limit = goesOn ? Math.min(limit * 2, PAGE_MAX) : PAGE_FIRST;
    return entry;
  };
}

/** The path from the root to an entry, root first. @throws {SessionError} `TOO_LARGE` when that says more than it may. */
export async function readBranch(
  store: SessionStore,
  sessionId: string,
  entryId: string,
  charactersMax: number = Number.POSITIVE_INFINITY,
): Promise<Entry[]> {
  const branch: Entry[] = [];
  const count = countUpTo(sessionId, charactersMax);
  for await (const entry of walkUp(store, sessionId, entryId)) {
    count(entry);
    branch.push(entry);
  }
  return branch.reverse();
}

/** Refuses once the entries of a path say more than so many characters. */
export function countUpTo(
  sessionId: string,
  charactersMax: number = Number.POSITIVE_INFINITY,
  advice = "read it page by page",
): (entry: Entry) => void {
  if (charactersMax === Number.POSITIVE_INFINITY) return () => {};
  let characters = 0;
  return (entry) => {
    characters += entryCharacters(entry);
    if (characters <= charactersMax) return;
    throw new SessionError(
      "TOO_LARGE",
      `What session ${sessionId} says takes more than ${charactersMax} characters; ${advice}.`,
    );
  };
}

/** Whether `ancestorId` is `entryId` or above it. */
export async function isOnPath(
  store: SessionStore,
  sessionId: string,
  ancestor: Entry,
  entryId: string | null,
): Promise<boolean> {
  if (entryId === null) return false;
  for await (const entry of walkUp(store, sessionId, entryId)) {
    if (entry.id === ancestor.id) return true;
    if (entry.seq < ancestor.seq) return false;
  }
  return false;
}

/** The context at a leaf. Reads what the context contains, and not what lies before it. */
export async function readContext(
  store: SessionStore,
  head: SessionHead,
  leafId: string | null = head.leafId,
): Promise<ModelContext> {
  const path = await pathAt(store, head, leafId);
  const entries = leafId === null ? [] : await readContextEntries(store, head, leafId);
  const settings = await store.settings(head.header.id, path);
  return contextOf(path, settings, contextPath(entries, new Set(head.undone)));
}

/**
 * The part of a path that its context is made of, root first: from the first entry that the compaction in force kept, or
 * from the root when there is none. The compaction is among them.
 *
 * @throws {SessionError} `TOO_LARGE` when they take more characters than a context may, or than they may here.
 */
export async function readContextEntries(
  store: SessionStore,
  head: SessionHead,
  leafId: string,
  charactersMax?: number,
): Promise<Entry[]> {
  const count =
    charactersMax === undefined
      ? countUpTo(head.header.id, CONTEXT_CHARACTERS_MAX, "compact it, or move its leaf back to an earlier entry")
      : countUpTo(head.header.id, charactersMax);
  const compactionId = await compactionInForce(store, head, await pathAt(store, head, leafId));
  const above: Entry[] = [];
  let compaction: Extract<Entry, { type: "compaction" }> | null = null;
  let mark = 0;
  let keptSeq: number | null = null;
  for await (const entry of walkUp(store, head.header.id, leafId)) {
    count(entry);
    above.push(entry);
    if (compaction === null) {
      if (entry.id !== compactionId || entry.type !== "compaction") continue;
      compaction = entry;
      mark = above.length;
      continue;
    }
    if (entry.id === compaction.firstKeptEntryId) return above.reverse();
    if (keptSeq === null && above.length - mark > UNSEEN_MAX) {
      keptSeq = (await store.getEntry(head.header.id, compaction.firstKeptEntryId))?.seq ?? Number.POSITIVE_INFINITY;
    }
    if (keptSeq !== null && entry.seq < keptSeq) break;
  }
  // Without a compaction all of the path counts; a first kept entry that is not on the path keeps nothing.
  return (compaction === null ? above : above.slice(0, mark)).reverse();
}

/** The summary of the path to a node; null is before the root. */
export async function pathAt(store: SessionStore, head: SessionHead, leafId: string | null): Promise<PathSummary> {
  if (leafId === null) return EMPTY_PATH;
  if (leafId === head.leafId) return head.path;
  const path = await store.path(head.header.id, leafId);
  if (path !== null) return path;
  if ((await store.getEntry(head.header.id, leafId)) === null) throw new UnknownEntryError(head.header.id, leafId);
  throw notANode(head.header.id, leafId);
}

/** The latest compaction on a path that was not undone. */
export async function compactionInForce(
  store: SessionStore,
  head: SessionHead,
  path: PathSummary,
): Promise<string | null> {
  let { compactionId } = path;
  for (
    let tries = 0;
    compactionId !== null && head.undone.includes(compactionId) && tries <= head.undone.length;
    tries++
  ) {
    const parentId: string | null = (await store.getEntry(head.header.id, compactionId))?.parentId ?? null;
    compactionId = parentId === null ? null : ((await store.path(head.header.id, parentId))?.compactionId ?? null);
  }
  return compactionId;
}
