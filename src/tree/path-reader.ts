import { contextOf, contextPath, type ModelContext } from "../session/context/context.ts";
import { type Entry, entryCharacters } from "../session/log/entry.ts";
import { notANode, SessionError, UnknownEntryError } from "../session/errors.ts";
import { EMPTY_PATH, type PathSummary, type SessionHead } from "../session/log/fold.ts";
import { CONTEXT_CHARACTERS_MAX } from "../session/limits.ts";
import type { SessionStore } from "../session/store.ts";

const PAGE_FIRST = 32;
const PAGE_MAX = 1024;
/** How many entries of other branches are skipped before the parent is looked up by its id. */
const SKIPPED_MAX = 64;
/** How far to walk for the first kept entry before it is looked up by its id, in case it is not on the path. */
const UNSEEN_MAX = 1000;

/**
 * Iterates over the nodes from an entry up to its root. Reads the log in reverse, which stores do in pages, and jumps over
 * long stretches of other branches, so that the cost depends on the length of the path only. `onEntry` is called with each
 * entry that is read, in reverse order.
 */
export async function* walkUp(
  store: SessionStore,
  sessionId: string,
  fromId: string,
  onEntry: ((entry: Entry) => void) | null = null,
): AsyncGenerator<Entry, void, undefined> {
  let wanted: string = fromId;
  let before = Number.MAX_SAFE_INTEGER;
  for (;;) {
    let skipped = 0;
    for await (const entry of store.read(sessionId, { reverse: true, before })) {
      before = entry.seq;
      onEntry?.(entry);
      if (entry.id !== wanted) {
        if (++skipped > SKIPPED_MAX) break;
        continue;
      }
      skipped = 0;
      yield entry;
      if (entry.parentId === null) return;
      wanted = entry.parentId;
    }
    // The beginning of the log was reached, so the parent is missing and the path ends here.
    if (skipped <= SKIPPED_MAX) return;
    const next: Entry | null = await store.getEntry(sessionId, wanted);
    if (next === null || next.seq >= before) return;
    before = next.seq + 1;
  }
}

/** The entries of a log from one position up to another, of entries in reverse order; null if some of them are missing. */
export function entriesBetween(reversed: readonly Entry[], first: number, end: number): readonly Entry[] | null {
  const found: Entry[] = [];
  for (const entry of reversed) {
    if (entry.seq >= end) continue;
    if (entry.seq !== end - 1 - found.length) return null;
    found.push(entry);
    if (entry.seq === first) return found.reverse();
  }
  return first >= end ? [] : null;
}

/**
 * Returns a function that looks up entries of a session by id, on any branch, with a cache. If the calls go backward through
 * entries that are near each other, it reads the log in pages, which costs less than single look-ups. Entries between distant
 * ones are not read.
 */
export function cachedLookup(store: SessionStore, sessionId: string): (entryId: string) => Promise<Entry | null> {
  const cache = new Map<string, Entry>();
  let reached = Number.POSITIVE_INFINITY;
  let limit = PAGE_FIRST;
  return async (entryId) => {
    const entry = cache.get(entryId) ?? (await store.getEntry(sessionId, entryId));
    if (entry === null || cache.has(entryId)) return entry;
    const isNear = entry.seq < reached && entry.seq >= reached - limit;
    const page = isNear ? store.read(sessionId, { reverse: true, limit, before: reached }) : [entry];
    for await (const other of page) {
      cache.set(other.id, other);
      reached = other.seq;
    }
    limit = isNear ? Math.min(limit * 2, PAGE_MAX) : PAGE_FIRST;
    return entry;
  };
}

/** Reads the path from the root to an entry. @throws {SessionError} `TOO_LARGE` if it has more than `charactersMax`. */
export async function readBranch(
  store: SessionStore,
  sessionId: string,
  entryId: string,
  charactersMax: number = Number.POSITIVE_INFINITY,
): Promise<Entry[]> {
  const branch: Entry[] = [];
  const count = characterLimit(sessionId, charactersMax);
  for await (const entry of walkUp(store, sessionId, entryId)) {
    count(entry);
    branch.push(entry);
  }
  return branch.reverse();
}

/** Returns a function to call with each entry. It throws when the entries together have more than `charactersMax`. */
export function characterLimit(
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
      `The entries of session ${sessionId} have more than ${charactersMax} characters; ${advice}.`,
    );
  };
}

/** Whether `ancestor` is the entry with the id `entryId`, or above it. */
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

/** Reads the context at a leaf. Does not read the entries before the context. */
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
 * Reads the entries of the context at a leaf, root first: from the first entry that the compaction in force kept, or from the
 * root without a compaction. Includes the compaction itself. `onEntry` is called with all entries that are read for it, on
 * every branch, the latest first.
 *
 * @throws {SessionError} `TOO_LARGE` if they have more than `charactersMax`, or than a context may have.
 */
export async function readContextEntries(
  store: SessionStore,
  head: SessionHead,
  leafId: string,
  charactersMax?: number,
  onEntry: ((entry: Entry) => void) | null = null,
): Promise<Entry[]> {
  const count =
    charactersMax === undefined
      ? characterLimit(head.header.id, CONTEXT_CHARACTERS_MAX, "compact it, or move its leaf back to an earlier entry")
      : characterLimit(head.header.id, charactersMax);
  const compactionId = await compactionInForce(store, head, await pathAt(store, head, leafId));
  const above: Entry[] = [];
  let compaction: Extract<Entry, { type: "compaction" }> | null = null;
  let mark = 0;
  let keptSeq: number | null = null;
  for await (const entry of walkUp(store, head.header.id, leafId, onEntry)) {
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
  // Without a compaction the whole path is the context. If the first kept entry is not on the path, nothing was kept.
  return (compaction === null ? above : above.slice(0, mark)).reverse();
}

/** The path summary of a node; that of null is empty. */
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
