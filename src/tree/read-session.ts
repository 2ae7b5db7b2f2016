import { compactionMessage, contextPath, messagesOf } from "../session/context.ts";
import type { Entry } from "../session/entry.ts";
import type { SessionHead } from "../session/fold.ts";
import type { SandboxPlacement } from "../session/header.ts";
import { checkBackendName } from "../session/sandbox-backends.ts";
import { Session } from "../session/session.ts";
import type { SessionStore } from "../session/store.ts";
import { type RowInit, Transcript } from "../session/transcript.ts";
import type { Usage } from "../session/usage.ts";
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

/** A stored session as the value that runs work on, with this transcript. */
export function sessionOf(
  head: SessionHead,
  transcript: Transcript,
  sandbox: SandboxPlacement | null = head.header.sandbox,
): Session {
  const { id, lineage } = head.header;
  const { usage, cost } = spentOn(head);
  return Session.of(transcript, { id, lineage, usage, cost, sandbox: knownPlacement(sandbox) });
}

/** What the messages on the path to the leaf spent; null where they say nothing of it. */
export function spentOn({ path }: SessionHead): { readonly usage: Usage | null; readonly cost: number | null } {
  const { usage, cost } = path;
  const spent = usage.totalTokens > 0 || usage.inputTokens > 0 || usage.outputTokens > 0;
  return { usage: spent ? usage : null, cost: spent || cost > 0 ? cost : null };
}

/** The transcript with a note that it is at the leaf of that session, so that a run there need not write it again. */
export function withOrigin(transcript: Transcript, store: SessionStore, head: SessionHead): Transcript {
  if (head.leafId === null) return transcript;
  return Transcript.withOrigin(transcript, { store, sessionId: head.header.id, entryId: head.leafId });
}

/** A place that this program has no backend for cannot be opened; the session is of use without it. */
function knownPlacement(placement: SandboxPlacement | null): SandboxPlacement | null {
  if (placement === null) return null;
  try {
    checkBackendName(placement.backend);
    return placement;
  } catch {
    return null;
  }
}
