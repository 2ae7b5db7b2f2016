import { checkPath } from "./compaction.ts";
import type { Entry, EntryOf } from "../log/entry.ts";

/** The effect of a compaction on the context. */
export interface CompactionView {
  readonly compaction: EntryOf<"compaction">;
  /** The entries that its summary replaced, root first. */
  readonly dropped: readonly Entry[];
  /** The entries that it kept unchanged. */
  readonly kept: readonly Entry[];
}

/** Shows the effect of a compaction on a path (root first); null if the path has no such compaction. */
export function inspectCompaction(path: readonly Entry[], compactionId: string): CompactionView | null {
  checkPath(path, "inspectCompaction");
  const at = path.findIndex((entry) => entry.id === compactionId);
  const compaction = path[at];
  if (compaction?.type !== "compaction") return null;
  const before = path.slice(0, at).filter((entry) => entry.type !== "compaction");
  const firstKept = before.findIndex((entry) => entry.id === compaction.firstKeptEntryId);
  const cut = firstKept < 0 ? before.length : firstKept;
  return { compaction, dropped: before.slice(0, cut), kept: before.slice(cut) };
}
