import { firstCountable } from "../session/context/compaction.ts";
import { compactionMessage, contextPath, messagesOf } from "../session/context/context.ts";
import type { Entry } from "../session/log/entry.ts";
import type { SessionHead } from "../session/log/fold.ts";
import type { SandboxPlacement } from "../session/log/header.ts";
import { checkBackendName } from "../session/sandbox/sandbox-backends.ts";
import { Session } from "../session/value/session.ts";
import type { SessionStore } from "../session/store.ts";
import { type RowInit, Transcript, type TranscriptOrigin } from "../session/value/transcript.ts";
import type { Usage } from "../session/usage.ts";
import { noteBlobPlace } from "../stores/blobs/message-blobs.ts";
import { type OwnSpending, ownSpending } from "./own-spending.ts";
import { readContextEntries } from "./path-reader.ts";

/**
 * Reads the transcript at a session's leaf, or at another node, and the entries of its rows: what models see. Reads only the
 * entries of the context.
 */
export async function readTranscript(
  store: SessionStore,
  head: SessionHead,
  leafId: string | null = head.leafId,
  onEntry: ((entry: Entry) => void) | null = null,
): Promise<{ readonly transcript: Transcript; readonly entries: readonly Entry[] }> {
  const entries = leafId === null ? [] : await readContextEntries(store, head, leafId, undefined, onEntry);
  const { compaction, entries: visible } = contextPath(entries, new Set(head.undone));
  const rows: RowInit[] = visible.flatMap((entry) => messagesOf(entry).map((message) => ({ id: entry.id, message })));
  if (compaction !== null) rows.unshift({ id: compaction.id, message: compactionMessage(compaction.summary) });
  const transcript = Transcript.of(rows);
  for (const { message } of transcript) noteBlobPlace(message, { store, sessionId: head.header.id });
  const counted = firstCountable(entries);
  if (counted === 0) return { transcript, entries };
  // Answers from before an edit count tokens that later requests do not have.
  const uncounted = new Set(entries.slice(0, counted).map(({ id }) => id));
  const first = rows.findIndex(({ id }) => !uncounted.has(id as string));
  return { transcript: Transcript.withFirstCounted(transcript, first < 0 ? rows.length : first), entries };
}

/**
 * Makes a session value from a stored session, with a transcript and the usage and cost of the session itself. `passed` are
 * entries that were read already, the latest first.
 */
export async function readSession(
  store: SessionStore,
  head: SessionHead,
  transcript: Transcript,
  sandbox: SandboxPlacement | null = head.header.sandbox,
  passed: readonly Entry[] = [],
): Promise<Session> {
  const { id, lineage } = head.header;
  const spent = await readSpending(store, head, passed);
  return Session.of(transcript, { id, lineage, ...spent, sandbox: knownPlacement(sandbox) });
}

/** Like `readSession`, but without reading the log: usage and cost include those of inherited entries. */
export function sessionOf(head: SessionHead, transcript: Transcript): Session {
  const { id, lineage, sandbox } = head.header;
  return Session.of(transcript, { id, lineage, ...spendingOf(head.path), sandbox: knownPlacement(sandbox) });
}

/** The usage and cost of a session itself, or of the path to its leaf if nothing else is known; null if they are zero. */
export async function readSpending(
  store: SessionStore,
  head: SessionHead,
  passed: readonly Entry[] = [],
): Promise<{ readonly usage: Usage | null; readonly cost: number | null }> {
  return spendingOf((await ownSpending(store, head, { imported: false, passed })) ?? head.path);
}

function spendingOf({ usage, cost }: OwnSpending): { readonly usage: Usage | null; readonly cost: number | null } {
  const spent = usage.totalTokens > 0 || usage.inputTokens > 0 || usage.outputTokens > 0;
  return { usage: spent ? usage : null, cost: spent || cost > 0 ? cost : null };
}

/** Marks a transcript as the one at the leaf of a stored session, so that a run in this session does not write it again. */
export function withOrigin(
  transcript: Transcript,
  store: SessionStore,
  head: SessionHead,
  resumed: Pick<TranscriptOrigin, "resumedAt"> = {},
): Transcript {
  if (head.leafId === null) return transcript;
  return Transcript.withOrigin(transcript, { store, sessionId: head.header.id, entryId: head.leafId, ...resumed });
}

/** The placement, or null if this program does not have its backend: the session can be used without its sandbox. */
export function knownPlacement(placement: SandboxPlacement | null): SandboxPlacement | null {
  if (placement === null) return null;
  try {
    checkBackendName(placement.backend);
    return placement;
  } catch {
    return null;
  }
}
