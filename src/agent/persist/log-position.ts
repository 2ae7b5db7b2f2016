import { sameMessage } from "../../stores/blobs/message-blobs.ts";
import { messagesOf } from "../../session/context/context.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { operation, Session } from "../../session/value/session.ts";
import type { SessionStore } from "../../session/store.ts";
import { type Row, Transcript } from "../../session/value/transcript.ts";
import { addCost, addUsage } from "../../session/usage.ts";
import { readBranch } from "../../tree/path-reader.ts";
import { readTranscript, sessionOf } from "../../tree/read-session.ts";

/** The user session to run on, and the position in the log up to which it is stored. */
export async function positionOf(
  store: SessionStore,
  head: SessionHead,
  user: Session,
): Promise<{ user: Session; from: LogPosition }> {
  // A log without rows may still record where its session's tools act.
  const isEnough = (from: LogPosition | null): from is LogPosition =>
    from !== null && (from.length > 0 || head.header.sandbox === null);
  const origin = await originIn(store, head, user.transcript);
  if (isEnough(origin)) return { user, from: origin };
  const { transcript } = await readTranscript(store, head);
  const from = await rowsIn(store, head, user.transcript, transcript);
  if (isEnough(from)) return { user, from };
  return {
    user: merged(sessionOf(head, transcript), user),
    from: { entryId: head.leafId, length: transcript.length },
  };
}

/** A node of a log, and the number of transcript rows on the path to it. */
export interface LogPosition {
  readonly entryId: string | null;
  readonly length: number;
}

/**
 * The position up to which a session's log has the rows of a transcript; null if the transcript does not come from it.
 */
export async function findRows(
  store: SessionStore,
  head: SessionHead,
  transcript: Transcript,
): Promise<LogPosition | null> {
  const origin = await originIn(store, head, transcript);
  return origin ?? rowsIn(store, head, transcript, (await readTranscript(store, head)).transcript);
}

/** The recorded origin of a transcript, if it is in this session. */
async function originIn(store: SessionStore, head: SessionHead, transcript: Transcript): Promise<LogPosition | null> {
  const sessionId = head.header.id;
  const origin = Transcript.originOf(transcript);
  if (origin === null || origin.store !== store || origin.sessionId !== sessionId) return null;
  return (await store.path(sessionId, origin.entryId)) === null ? null : origin;
}

/** The position up to which the log has the rows of a transcript, given the rows at the log's leaf. */
async function rowsIn(
  store: SessionStore,
  head: SessionHead,
  transcript: Transcript,
  stored: Transcript,
): Promise<LogPosition | null> {
  const length = await heldRows(store, head.header.id, transcript, commonRows(transcript, stored));
  const last = length === 0 ? null : (transcript.at(length - 1) as Row).id;
  // Nodes after the last row at the leaf, such as settings, come before the new rows.
  if (last === (stored.at(-1)?.id ?? null)) return { entryId: head.leafId, length };
  return last === null ? null : { entryId: last, length };
}

/**
 * How many of the first rows are in a session, given how many of them match its context. If none match, because a
 * compaction replaced the beginning or the leaf is on another branch, the rows may still be those of a path.
 */
async function heldRows(
  store: SessionStore,
  sessionId: string,
  transcript: Transcript,
  common: number,
): Promise<number> {
  if (common > 0 || !(await isHeld(store, sessionId, transcript.at(0)))) return common;
  let length = transcript.length;
  while (!(await isHeld(store, sessionId, transcript.at(length - 1)))) length--;
  const path = await readBranch(store, sessionId, (transcript.at(length - 1) as Row).id);
  const ids = path.filter((entry) => messagesOf(entry).length > 0).map(({ id }) => id);
  return ids.length === length && ids.every((id, index) => transcript.at(index)?.id === id) ? length : 0;
}

async function isHeld(store: SessionStore, sessionId: string, row: Row | undefined): Promise<boolean> {
  const entry = row === undefined ? null : await store.getEntry(sessionId, row.id);
  return entry?.type === "message" && sameMessage(entry.message, (row as Row).message);
}

/** How many rows two transcripts have in common at their beginning, compared by id and content. */
export function commonRows(one: Transcript, other: Transcript): number {
  const most = Math.min(one.length, other.length);
  for (let index = 0; index < most; index++) {
    const [a, b] = [one.at(index) as Row, other.at(index) as Row];
    if (a.id !== b.id || !sameMessage(a.message, b.message)) return index;
  }
  return most;
}

/** The stored session followed by the new rows of the user session, with the user session's sandbox if it has one. */
function merged(stored: Session, user: Session): Session {
  const usage = user.usage === null ? stored.usage : addUsage(user.usage, stored.usage ?? undefined);
  const cost = stored.cost === null && user.cost === null ? null : addCost(stored.cost ?? 0, user.cost);
  const place = user.sandboxBackend === null ? stored : user;
  return Session.derive(place, stored.transcript.concat(user.transcript), {
    lineage: operation("op_merge", "merge", [stored.id, user.id]),
    usage,
    cost,
  });
}
