import type { EntryOf } from "../../session/log/entry.ts";
import { inheritedCount, isOwn, type SessionHead } from "../../session/log/fold.ts";
import { isPlaceOnly } from "../../session/log/open-runs.ts";
import type { SessionStore } from "../../session/store.ts";

/**
 * The last start of a run, which records its agent; null if the session itself has none. Reads the log backward to the
 * run's last claim; inherited entries are ignored.
 */
export async function readStart(
  store: SessionStore,
  { header }: SessionHead,
  runId: string,
): Promise<EntryOf<"run"> | null> {
  for await (const entry of store.read(header.id, { after: inheritedCount(header) - 1, reverse: true })) {
    if (entry.type !== "run" || entry.runId !== runId || !isOwn(header, entry, entry.seq)) continue;
    // Skip a second `started`, which only records where the tools act.
    if (entry.phase === "started" && !isPlaceOnly(entry)) return entry;
  }
  return null;
}
