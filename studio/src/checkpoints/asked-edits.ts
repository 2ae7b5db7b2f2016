import type { SessionTurn } from "../../../src/session/state/state.ts";
import { type FileEdit, fileEditOf } from "../transcript/content/file-edit.ts";

/** A file that tool calls asked to change, with the changes in order. */
export interface AskedFile {
  readonly path: string;
  readonly edits: readonly FileEdit[];
}

/** The files that calls in some turns asked to change, by path; failed calls are left out. */
export function askedEdits(turns: readonly SessionTurn[]): readonly AskedFile[] {
  const failed = new Set(turns.filter(({ isError }) => isError === true).map(({ toolCallId }) => toolCallId));
  const files = new Map<string, FileEdit[]>();
  for (const call of turns.flatMap(({ toolCalls = [] }) => toolCalls)) {
    const edit = failed.has(call.id) ? null : fileEditOf(call);
    if (edit === null) continue;
    const others = files.get(edit.path);
    if (others === undefined) files.set(edit.path, [edit]);
    else others.push(edit);
  }
  return [...files].map(([path, edits]) => ({ path, edits })).sort((a, b) => (a.path < b.path ? -1 : 1));
}
