import type { SessionTurn } from "../../../src/session/state/state.ts";
import { type FileEdit, fileEditOf } from "../transcript/content/file-edit.ts";

/** A file that tools were asked to change, with each change in its order. */
export interface AskedFile {
  readonly path: string;
  readonly edits: readonly FileEdit[];
}

/** The files that the calls in some turns ask to change, by path; calls whose answer is a failure changed nothing. */
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
