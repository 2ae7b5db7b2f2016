import { isNode } from "../../session/log/entry.ts";
import { SessionError, show } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { PAGE_ITEMS_MAX } from "../../session/limits.ts";
import type { SessionStore } from "../../session/store.ts";
import { type CheckedLog, checkLog, type ReportForSession } from "./check-log.ts";
import { canonicalJson, firstDifference } from "./log-digest.ts";

/** Checks one session: its log, head and paths, its checkpoints, its fork source, and whether a search finds it. */
export async function checkSession(
  store: SessionStore,
  head: SessionHead,
  report: ReportForSession,
  signal: AbortSignal | undefined,
): Promise<number> {
  const log = await checkLog(store, head, report, signal);
  await checkCheckpoints(store, head, log, report);
  await checkFork(store, head, report);
  if (store.capabilities.search === "index") await checkSearch(store, head, log, report);
  return log.entries;
}

async function checkCheckpoints(
  store: SessionStore,
  { header: { id }, version }: SessionHead,
  { positions }: CheckedLog,
  report: ReportForSession,
): Promise<void> {
  for (const checkpoint of await store.listCheckpoints(id)) {
    const name = `Checkpoint ${show(checkpoint.id)}`;
    if (checkpoint.sessionId !== id) report("checkpoint", `${name} names another session.`);
    const loaded = await store.loadCheckpoint(checkpoint.id);
    if (canonicalJson(loaded) !== canonicalJson(checkpoint))
      report("checkpoint", `${name} has other content in the listing than when it is loaded.`);
    // A checkpoint that was made after the log was read may be at a later version.
    const reached = checkpoint.version <= version ? version : ((await store.head(id))?.version ?? version);
    if (checkpoint.version > reached) {
      report("checkpoint", `${name} is at version ${checkpoint.version}, and the log has ${reached} entries.`);
    } else if (checkpoint.version <= version && checkpoint.leafId !== null) {
      const leaf = positions.get(checkpoint.leafId);
      if (leaf === undefined || leaf.path === null || leaf.seq >= checkpoint.version)
        report(
          "checkpoint",
          `${name} is at the node ${show(checkpoint.leafId)}, which is not in the log before that version.`,
        );
    }
  }
}

async function checkFork(
  store: SessionStore,
  { header, version }: SessionHead,
  report: ReportForSession,
): Promise<void> {
  const { id, forkedFrom } = header;
  if (forkedFrom === null || !(await canOpen(store, forkedFrom.sessionId))) return;
  if (forkedFrom.version > version) {
    report("fork", `It was forked with ${forkedFrom.version} entries, and its log has ${version}.`);
    return;
  }
  const own = { store, sessionId: id };
  const source = { store, sessionId: forkedFrom.sessionId };
  const position = await firstDifference(own, source, forkedFrom.version);
  if (position === null || (await isPathOf(store, header.id, forkedFrom))) return;
  // The source may have been purged, and another session created under its id.
  if (position === 0 && !(await sharesFirst(store, id, forkedFrom.sessionId))) return;
  report(
    "fork",
    `It differs at position ${position} from session ${forkedFrom.sessionId}, which it was forked from at version ${forkedFrom.version}.`,
  );
}

/** Whether a session exists and can be read. A damaged source is a separate finding. */
async function canOpen(store: SessionStore, id: string): Promise<boolean> {
  try {
    return (await store.head(id)) !== null;
  } catch (error) {
    if (error instanceof SessionError && error.code === "DAMAGED") return false;
    throw error;
  }
}

async function sharesFirst(store: SessionStore, id: string, sourceId: string): Promise<boolean> {
  for await (const first of store.read(id, { limit: 1 })) return (await store.getEntry(sourceId, first.id)) !== null;
  return false;
}

/** Whether a session's first entries are one path of another session, as in a session made from one branch. */
async function isPathOf(
  store: SessionStore,
  id: string,
  { sessionId, version }: { readonly sessionId: string; readonly version: number },
): Promise<boolean> {
  let parentId: string | null = null;
  for await (const entry of store.read(id, { before: version })) {
    if (!isNode(entry) || entry.parentId !== parentId) return false;
    const there = await store.getEntry(sessionId, entry.id);
    if (there === null || canonicalJson({ ...there, seq: 0 }) !== canonicalJson({ ...entry, seq: 0 })) return false;
    parentId = entry.id;
  }
  return true;
}

async function checkSearch(
  store: SessionStore,
  { header: { id } }: SessionHead,
  { words }: CheckedLog,
  report: ReportForSession,
): Promise<void> {
  const text = [id, ...words].map((word) => `"${word}"`).join(" ");
  const hits = await store.search(text, { limit: PAGE_ITEMS_MAX });
  // The page is full, so the session may be on a later page: others can contain its id too.
  if (hits.length === PAGE_ITEMS_MAX || hits.some(({ head }) => head.header.id === id)) return;
  if ((await store.head(id)) === null) return;
  report("search", `The search ${text} does not find it.`);
}
