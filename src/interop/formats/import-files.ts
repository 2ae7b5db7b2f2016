import { checkOptionsOf, checkStoreArgument, type KeysOf } from "../../session/check-arguments.ts";
import { SessionError } from "../../session/errors.ts";
import { ReadReport } from "./foreign-report.ts";
import type { ForeignFormat } from "./foreign-format.ts";
import { detectFormat } from "./formats.ts";
import { type ImportedFile, importForeignFile } from "./import-file.ts";
import type { ImportMemory } from "./import-memory.ts";
import { ImportThreads } from "./import-threads.ts";
import { type SessionFile, sessionFiles } from "./session-files.ts";
import type { ImportTarget } from "./stored-log.ts";

/** Which files to import. */
export interface ImportFilesOptions {
  /** The program that wrote them; null finds out by what stands in each file. */
  readonly format: ForeignFormat | null;
  /** A file, or a directory with everything below it (default: where the program keeps its sessions). */
  readonly path?: string;
  /** Only files that were changed at this time or later, in milliseconds. */
  readonly since?: number;
  /** What earlier imports have read. */
  readonly memory?: ImportMemory;
  /** Where other threads find the same store; then many files are imported on all cores (default: on one). */
  readonly storeUrl?: string;
  readonly signal?: AbortSignal;
}

const IMPORT_FILES_KEYS: KeysOf<ImportFilesOptions> = {
  format: true,
  path: true,
  since: true,
  memory: true,
  storeUrl: true,
  signal: true,
};

/** What became of a file, and how far the import is. */
export interface ImportStep extends ImportedFile {
  readonly path: string;
  /** Null for a file that no program is known to write; it was left alone. */
  readonly format: ForeignFormat | null;
  /** Which of how many files it is, counted from 1. */
  readonly number: number;
  readonly files: number;
}

/** How many sessions are looked up at once. */
const HEADS_AT_ONCE = 500;

/**
 * Imports files, and tells of them in their order; those that are as they were at the last import are not read again. A file
 * that cannot be imported is one loss in its report, with line 0, and the others go on.
 */
export async function* importFiles(
  target: ImportTarget,
  options: ImportFilesOptions,
): AsyncGenerator<ImportStep, void, undefined> {
  checkStoreArgument(target?.store, "importFiles");
  checkOptionsOf(options, IMPORT_FILES_KEYS, "importFiles");
  const { format, path, since, memory, storeUrl, signal } = options;
  const files = await sessionFiles(format, path ?? format?.home() ?? ".", since);
  const unchanged = await unchangedFiles(target, files, memory);
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
      memory?.remember(file.path, { ...file, sessions: done.sessions.map(({ sessionId }) => sessionId) });
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
      // It is thrown when it is its turn.
      step.catch(() => {});
      underWay.push(step);
    }
    yield await (underWay.shift() as Promise<ImportStep>);
  }
}

/** What is wrong with a file, or with the one session that it belongs to here; all other errors are the store's. */
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

/** The loss of a whole file. @throws the error itself where it is not the file's fault, so that the import ends. */
function lossOf(error: unknown): ReadReport {
  if (!(error instanceof SessionError) || !FILE_FAULTS.includes(error.code)) throw error;
  const report = new ReadReport();
  report.lose(0, error.message.replace(/\.$/, ""));
  return report;
}

/** The sessions of each file that has not changed, if they are all still there. */
async function unchangedFiles(
  { store }: ImportTarget,
  files: readonly SessionFile[],
  memory: ImportMemory | undefined,
): Promise<Map<string, readonly string[]>> {
  const recalled = new Map<string, readonly string[]>();
  for (const { path, size, mtimeMs } of files) {
    const sessions = memory?.recall(path, size, mtimeMs) ?? null;
    if (sessions !== null) recalled.set(path, sessions);
  }
  const ids = [...new Set([...recalled.values()].flat())];
  const gone = new Set<string>();
  for (let from = 0; from < ids.length; from += HEADS_AT_ONCE) {
    const some = ids.slice(from, from + HEADS_AT_ONCE);
    const heads = await store.heads(some);
    for (const [index, id] of some.entries()) if (heads[index] === null) gone.add(id);
  }
  for (const [path, sessions] of recalled) if (sessions.some((id) => gone.has(id))) recalled.delete(path);
  return recalled;
}
