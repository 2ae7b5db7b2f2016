import { checkOptionsOf, checkStoreArgument, type KeysOf } from "../../session/check-arguments.ts";
import { SessionError } from "../../session/errors.ts";
import { ReadReport } from "./foreign-report.ts";
import type { ForeignFormat } from "./foreign-format.ts";
import { detectFormat } from "./formats.ts";
import { type ImportedFile, importForeignFile } from "./import-file.ts";
import type { ImportCache } from "./import-cache.ts";
import { ImportThreads } from "./import-threads.ts";
import { type SessionFile, sessionFiles } from "./session-files.ts";
import type { ImportTarget } from "./stored-log.ts";

/** Options of `importFiles`. */
export interface ImportFilesOptions {
  /** The format of the files; null detects it from the content of each file. */
  readonly format: ForeignFormat | null;
  /** A file, or a directory with everything below it (default: where the program keeps its sessions). */
  readonly path?: string;
  /** Only files modified at this time or later, in milliseconds. */
  readonly since?: number;
  /** The files that earlier imports have read; unchanged ones are skipped. */
  readonly cache?: ImportCache;
  /** The URL of the same store, for other threads. With it, large imports use up to four threads (default: one). */
  readonly storeUrl?: string;
  readonly signal?: AbortSignal;
}

const IMPORT_FILES_KEYS: KeysOf<ImportFilesOptions> = {
  format: true,
  path: true,
  since: true,
  cache: true,
  storeUrl: true,
  signal: true,
};

/** The result of one file, and the progress of the import. */
export interface ImportStep extends ImportedFile {
  readonly path: string;
  /** Null if the format is unknown; the file was skipped. */
  readonly format: ForeignFormat | null;
  /** The number of this file, counted from 1. */
  readonly number: number;
  /** The total number of files. */
  readonly files: number;
}

/** How many sessions are looked up in one call. */
const HEADS_AT_ONCE = 500;

/**
 * Imports files and yields the result of each, in order. Files that the cache knows as unchanged are not read. A file that
 * cannot be imported is reported as one loss (line 0), and the import continues with the next.
 */
export async function* importFiles(
  target: ImportTarget,
  options: ImportFilesOptions,
): AsyncGenerator<ImportStep, void, undefined> {
  checkStoreArgument(target?.store, "importFiles");
  checkOptionsOf(options, IMPORT_FILES_KEYS, "importFiles");
  const { format, path, since, cache, storeUrl, signal } = options;
  const files = await sessionFiles(format, path ?? format?.home() ?? ".", since);
  const unchanged = await unchangedFiles(target, files, cache);
  const unread = files.filter((file) => !unchanged.has(file.path));
  await using threads = storeUrl === undefined ? null : ImportThreads.start(target, storeUrl, unread);
  const stepOf = async (file: SessionFile, index: number): Promise<ImportStep> => {
    const about = { path: file.path, number: index + 1, files: files.length };
    const sessions = unchanged.get(file.path);
    let found = format;
    if (sessions !== undefined) {
      const same = sessions.map((sessionId) => ({ sessionId, outcome: "same" as const, added: 0 }));
      return {
        ...about,
        format: format ?? (await detectFormat(file.path).catch(() => null)),
        sessions: same,
        report: new ReadReport(),
      };
    }
    try {
      found ??= await detectFormat(file.path);
      if (found === null) return { ...about, format: null, sessions: [], report: new ReadReport() };
      const done = await (threads === null
        ? importForeignFile(target, found, file.path)
        : threads.importFile({ format: found.name, path: file.path }));
      cache?.set(file.path, { ...file, sessions: done.sessions.map(({ sessionId }) => sessionId) });
      return { ...done, ...about, format: found };
    } catch (error) {
      return { ...about, format: found, sessions: [], report: lossOf(error) };
    }
  };
  const underWay: Promise<ImportStep>[] = [];
  for (let index = 0, begun = 0; index < files.length; index++) {
    signal?.throwIfAborted();
    for (; begun < Math.min(files.length, index + (threads?.filesAtOnce ?? 1)); begun++) {
      const step = stepOf(files[begun] as SessionFile, begun);
      // The error is thrown when the step is awaited below; until then it must not be an unhandled rejection.
      step.catch(() => {});
      underWay.push(step);
    }
    yield await (underWay.shift() as Promise<ImportStep>);
  }
}

/** Errors caused by one file or its session. All others are errors of the store and end the import. */
const FILE_FAULTS: readonly SessionError["code"][] = [
  "INVALID_ID",
  "INVALID_HEADER",
  "INVALID_ENTRY",
  "INVALID_VALUE",
  "INVALID_OPTION",
  "TOO_LARGE",
  "UNKNOWN_ENTRY",
  "ENTRY_EXISTS",
  "LINEAGE",
  "CONFLICT",
  "DAMAGED",
  "NOT_A_SESSION",
  "UNSUPPORTED_VERSION",
  "SESSION_CLOSED",
  "SESSION_EXPIRED",
  "SESSION_SUSPENDED",
  "ERASED",
];

/** The report of a file that could not be imported. @throws the error itself if the file did not cause it. */
function lossOf(error: unknown): ReadReport {
  if (!(error instanceof SessionError) || !FILE_FAULTS.includes(error.code)) throw error;
  const report = new ReadReport();
  report.lose(0, error.message.replace(/\.$/, ""));
  return report;
}

/** The sessions of each file that has not changed since its import, if all of them still exist. */
async function unchangedFiles(
  { store }: ImportTarget,
  files: readonly SessionFile[],
  cache: ImportCache | undefined,
): Promise<Map<string, readonly string[]>> {
  const unchanged = new Map<string, readonly string[]>();
  for (const { path, size, mtimeMs } of files) {
    const sessions = cache?.sessionsOf(path, size, mtimeMs) ?? null;
    if (sessions !== null) unchanged.set(path, sessions);
  }
  const ids = [...new Set([...unchanged.values()].flat())];
  const gone = new Set<string>();
  for (let from = 0; from < ids.length; from += HEADS_AT_ONCE) {
    const some = ids.slice(from, from + HEADS_AT_ONCE);
    const heads = await store.heads(some);
    for (const [index, id] of some.entries()) if (heads[index] === null) gone.add(id);
  }
  for (const [path, sessions] of unchanged) if (sessions.some((id) => gone.has(id))) unchanged.delete(path);
  return unchanged;
}
