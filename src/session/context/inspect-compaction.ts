import { checkPath } from "./compaction.ts";
import type { Entry, EntryOf } from "../log/entry.ts";

/** What a compaction did to the context. */
export interface CompactionView {
  readonly compaction: EntryOf<"compaction">;
  /** What its summary stands for, root first. */
  readonly dropped: readonly Entry[];
  /** What it kept word for word. */
  readonly kept: readonly Entry[];
}

/** Looks into a compaction on a path (root first); null when the path has no such compaction. */
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
