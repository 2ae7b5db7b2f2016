import type { FileChange } from "../../../src/session/sandbox/sandbox.ts";
import type { FileEdit } from "../transcript/content/file-edit.ts";

/** The change of a file as an edit; null if its lines are unknown or equal. */
export function editOf({ path, change, before, after }: FileChange): FileEdit | null {
  if (before === after) return null;
  if (change === "changed" && (before === undefined || after === undefined)) return null;
  return { path, oldText: before ?? "", newText: after ?? "", whole: change !== "changed" };
}

/** Why a change has no lines to show. */
export function whyNotShown({ before, after }: FileChange): string {
  if (before !== undefined && before === after) return "Only its file mode differs.";
  return "Its content is not shown: it is a directory, not a text, or too long.";
}
