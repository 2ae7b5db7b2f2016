import type { EntryOf } from "../../session/log/entry.ts";
import { inheritedCount, isOwn, type SessionHead } from "../../session/log/fold.ts";
import type { SessionStore } from "../../session/store.ts";

/**
 * The last start of a run, which says who answers in it; null where the session itself has none. Reads the log backward, as
 * far as the run's last claim; what a fork or an import says about runs is not looked at.
 */
export async function readStart(
  store: SessionStore,
  { header }: SessionHead,
  runId: string,
): Promise<EntryOf<"run"> | null> {
  for await (const entry of store.read(header.id, { after: inheritedCount(header) - 1, reverse: true })) {
    if (entry.type !== "run" || entry.runId !== runId || !isOwn(header, entry, entry.seq)) continue;
    // Where its tools act is told with a start of its own, which begins nothing.
    if (entry.phase === "started" && entry.sandbox === undefined) return entry;
  }
  return null;
}
