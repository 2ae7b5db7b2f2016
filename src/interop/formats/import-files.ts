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

/** Imports files, and tells of them in their order; those that are as they were at the last import are not read again. */
export async function* importFiles(
  target: ImportTarget,
  { format, path, since, memory, storeUrl, signal }: ImportFilesOptions,
): AsyncGenerator<ImportStep, void, undefined> {
  const files = await sessionFiles(format, path ?? format?.home() ?? ".", since);
  const unchanged = await unchangedFiles(target, files, memory);
  const unread = files.filter((file) => !unchanged.has(file.path));
  await using threads = storeUrl === undefined ? null : ImportThreads.start(target, storeUrl, unread);
  const stepOf = async (file: SessionFile, index: number): Promise<ImportStep> => {
    const about = { path: file.path, number: index + 1, files: files.length };
    const sessions = unchanged.get(file.path);
    const found = format ?? (await detectFormat(file.path));
    if (sessions !== undefined) {
      const same = sessions.map((sessionId) => ({ sessionId, outcome: "same" as const, added: 0 }));
      return { ...about, format: found, sessions: same, report: new ReadReport() };
    }
    if (found === null) return { ...about, format: null, sessions: [], report: new ReadReport() };
    const done = await (threads === null
      ? importForeignFile(target, found, file.path)
      : threads.importFile({ format: found.name, path: file.path }));
    memory?.remember(file.path, { ...file, sessions: done.sessions.map(({ sessionId }) => sessionId) });
    return { ...done, ...about, format: found };
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
