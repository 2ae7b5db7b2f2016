import { closeSync, mkdirSync, openSync, readdirSync, unlinkSync } from "node:fs";
import { basename, dirname } from "node:path";
import { PRIVATE_DIRECTORY, PRIVATE_FILE_MODE } from "../../internal/private-file.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { type LogPaths, parseFileName } from "./file-names.ts";
import { nullIfMissing } from "./store-failure.ts";

/**
 * A session with open runs has a mark beside its file, an empty file of the same name, so that a listing of runs need not
 * check the files of all sessions. The mark is made before the log has the run, and removed after the log has its end: a
 * crash in between leaves a mark too many, never one too few.
 */
export function markOpenRuns({ openRuns: path }: Pick<LogPaths, "openRuns">): void {
  // A file with a name of its own may be in any directory, and gets no mark: a listing always checks it.
  if (parseFileName(basename(path)) === null) return;
  mkdirSync(dirname(path), { ...PRIVATE_DIRECTORY, recursive: true });
  closeSync(openSync(path, "a", PRIVATE_FILE_MODE));
}

/** Removes the mark of a session without open runs. */
export function unmarkOpenRuns({ openRuns: path }: Pick<LogPaths, "openRuns">): void {
  nullIfMissing(() => unlinkSync(path));
}

/** Makes the mark if an append opens the first run of a session. Call it before the append is written. */
export function markBefore(paths: LogPaths, before: SessionHead, after: SessionHead): void {
  if (before.openRuns.length === 0 && after.openRuns.length > 0) markOpenRuns(paths);
}

/** Removes the mark if an append ended the last open run of a session. Call it after the append was written. */
export function unmarkAfter(paths: LogPaths, before: SessionHead, after: SessionHead): void {
  if (before.openRuns.length > 0 && after.openRuns.length === 0) unmarkOpenRuns(paths);
}

/** The file names of all marks in a folder. */
export function markedNames(folder: string): readonly string[] {
  return nullIfMissing(() => readdirSync(folder)) ?? [];
}
