import { compactionMessage, contextPath, messagesOf } from "../session/context/context.ts";
import type { Entry } from "../session/log/entry.ts";
import type { SessionHead } from "../session/log/fold.ts";
import type { SandboxPlacement } from "../session/log/header.ts";
import { checkBackendName } from "../session/sandbox/sandbox-backends.ts";
import { Session } from "../session/value/session.ts";
import type { SessionStore } from "../session/store.ts";
import { type RowInit, Transcript, type TranscriptOrigin } from "../session/value/transcript.ts";
import type { Usage } from "../session/usage.ts";
import { type OwnSpending, ownSpending } from "./own-spending.ts";
import { readContextEntries } from "./path-reader.ts";

/** What a session says at its leaf, as rows, and the entries they stand for. Costs what the context contains. */
export async function readTranscript(
  store: SessionStore,
  head: SessionHead,
): Promise<{ readonly transcript: Transcript; readonly entries: readonly Entry[] }> {
  const entries = head.leafId === null ? [] : await readContextEntries(store, head, head.leafId);
  const { compaction, entries: visible } = contextPath(entries, new Set(head.undone));
  const rows: RowInit[] = visible.flatMap((entry) => messagesOf(entry).map((message) => ({ id: entry.id, message })));
  if (compaction !== null) rows.unshift({ id: compaction.id, message: compactionMessage(compaction.summary) });
  return { transcript: Transcript.of(rows), entries };
}

/** A stored session as the value that runs work on, with this transcript and what it spent itself. */
export async function readSession(
  store: SessionStore,
  head: SessionHead,
  transcript: Transcript,
  sandbox: SandboxPlacement | null = head.header.sandbox,
): Promise<Session> {
  const { id, lineage } = head.header;
  const spent = await readSpending(store, head);
  return Session.of(transcript, { id, lineage, ...spent, sandbox: knownPlacement(sandbox) });
}

/** The same without a look at the log: what it began with counts as its own. */
export function sessionOf(head: SessionHead, transcript: Transcript): Session {
  const { id, lineage, sandbox } = head.header;
  return Session.of(transcript, { id, lineage, ...spendingOf(head.path), sandbox: knownPlacement(sandbox) });
}

/** What a session spent itself, of what is on the path to its leaf where nothing else is known; null where that is nothing. */
export async function readSpending(
  store: SessionStore,
  head: SessionHead,
): Promise<{ readonly usage: Usage | null; readonly cost: number | null }> {
  return spendingOf((await ownSpending(store, head, { imported: false })) ?? head.path);
}

function spendingOf({ usage, cost }: OwnSpending): { readonly usage: Usage | null; readonly cost: number | null } {
  const spent = usage.totalTokens > 0 || usage.inputTokens > 0 || usage.outputTokens > 0;
  return { usage: spent ? usage : null, cost: spent || cost > 0 ? cost : null };
}

/** The transcript with a note that it is at the leaf of that session, so that a run there need not write it again. */
export function withOrigin(
  transcript: Transcript,
  store: SessionStore,
  head: SessionHead,
  resumed: Pick<TranscriptOrigin, "resumedAt"> = {},
): Transcript {
  if (head.leafId === null) return transcript;
  return Transcript.withOrigin(transcript, { store, sessionId: head.header.id, entryId: head.leafId, ...resumed });
}

/** A place of a backend that this program lacks cannot be opened; the session is of use without it. */
export function knownPlacement(placement: SandboxPlacement | null): SandboxPlacement | null {
  if (placement === null) return null;
  try {
    checkBackendName(placement.backend);
    return placement;
  } catch {
    return null;
  }
}
