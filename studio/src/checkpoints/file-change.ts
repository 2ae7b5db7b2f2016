import type { FileChange } from "../../../src/session/sandbox/sandbox.ts";
import type { FileEdit } from "../transcript/content/file-edit.ts";

/** What is different in a file as lines can show it; null where there are none, or none that differ. */
export function editOf({ path, change, before, after }: FileChange): FileEdit | null {
  if (before === after) return null;
  if (change === "changed" && (before === undefined || after === undefined)) return null;
  return { path, oldText: before ?? "", newText: after ?? "", whole: change !== "changed" };
}

/** Why a change has no lines to show. */
export function whyNotShown({ before, after }: FileChange): string {
  if (before !== undefined && before === after) return "Only its mode is different.";
  return "What it says is not shown: it is a directory, no text, or too long.";
}
