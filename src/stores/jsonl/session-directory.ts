import { existsSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { SessionDamagedError, SessionError, SessionNotFoundError, show } from "../../session/errors.ts";
import type { DamagedSession } from "../../session/store.ts";
import type { JsonlSettings } from "./jsonl-store.ts";
import { LogFile } from "./log-file.ts";
import { isLogName, OPEN_RUNS_FOLDER, PARTIAL_SUFFIX, parseFileName, STATE_FOLDER } from "./file-names.ts";
import { markedNames } from "./open-run-marks.ts";
import { nullIfMissing } from "./store-failure.ts";

/** How many files a listing reads before it yields to the event loop. */
const READS_AT_ONCE = 8;
/** How many of the last used files keep their entry index in memory. The others keep only what a listing needs. */
const RECENT_FILES_MAX = 64;
/** How often a listing of runs looks for files that were not made by a store, such as copies. */
const NEW_FILES_MS = 10_000;

/** The result of reading a directory: one file for every session, and the files that cannot be read. */
interface ListedFiles {
  readonly files: LogFile[];
  readonly damaged: DamagedSession[];
}

/** The session files of one directory, and the index from session ids to them. It writes nothing. */
export class SessionDirectory {
  readonly path: string;
  readonly #options: JsonlSettings;
  readonly #files = new Map<string, LogFile>();
  /** Files whose names contain no session id. */
  readonly #unnamed = new Set<LogFile>();
  readonly #byId = new Map<string, LogFile>();
  /** Files that were opened by path. They take precedence over files found by name. */
  readonly #opened = new Map<string, LogFile>();
  /** The last used files, the oldest first. */
  readonly #recent = new Set<LogFile>();
  #scannedIn = -1;
  /** The files that had open runs at the last listing of them; null before the first. */
  #mayBeOpen: Set<LogFile> | null = null;
  /** When the directory was last searched for new files for such a listing. */
  #lookedMs = Number.NEGATIVE_INFINITY;

  constructor(path: string, options: JsonlSettings) {
    this.path = path;
    this.#options = options;
  }

  /** The session's file if this process holds its lock: then the file cannot have changed and need not be checked. */
  held(sessionId: string): LogFile | null {
    const file = this.#opened.get(sessionId) ?? this.#byId.get(sessionId);
    return file?.held === true ? file : null;
  }

  /** The file of a session, read up to its current end, or null if there is none. Throws like `LogFile.refresh`. */
  async find(sessionId: string): Promise<LogFile | null> {
    const file = await this.locate(sessionId);
    if (file?.problem) throw file.problem;
    return file;
  }

  /** Like `find`, but throws if there is no such session. @throws {SessionNotFoundError} */
  async existing(sessionId: string): Promise<LogFile> {
    const file = await this.find(sessionId);
    if (file === null) throw new SessionNotFoundError(sessionId);
    return file;
  }

  /** The file of a session, even if it is damaged, or null if there is none. */
  async locate(sessionId: string): Promise<LogFile | null> {
    const known = await this.#confirm(sessionId);
    if (known !== null) return known;
    this.scan();
    const named = await this.#confirm(sessionId);
    if (named !== null) return named;
    for (const file of this.#unnamed) if (file.identify() === sessionId) this.#byId.set(sessionId, file);
    return this.#confirm(sessionId);
  }

  /**
   * Whether the directory has a file of the session. The directory is listed once for each `generation` of its lock,
   * because no other process adds files while this one holds the lock.
   */
  has(sessionId: string, generation: number): boolean {
    if (this.#scannedIn !== generation) this.scan();
    this.#scannedIn = generation;
    if (this.#byId.has(sessionId) || this.#opened.has(sessionId)) return true;
    return [...this.#unnamed].some((file) => file.identify() === sessionId);
  }

  /** Opens a file of any name by its path. Throws like `LogFile.refresh`. */
  async open(path: string): Promise<LogFile> {
    const whole = resolve(path);
    const name = basename(whole);
    const listed = dirname(whole) === this.path && isLogName(name);
    const known = [...this.#opened.values()].find(({ paths }) => paths.log === whole);
    const file = known ?? (listed ? this.fileOf(name) : new LogFile(whole, this.#options));
    if (!(await file.refresh())) throw new SessionError("SESSION_NOT_FOUND", `There is no session file ${show(path)}.`);
    const { id } = file.head.header;
    const other = this.#opened.get(id);
    if (other !== undefined && other.paths.log !== file.paths.log && (await other.refresh())) {
      throw new SessionError(
        "SESSION_EXISTS",
        `Session ${id} of ${show(path)} is open already, from ${show(other.paths.log)}.`,
      );
    }
    this.#opened.set(id, file);
    this.use(file);
    return file;
  }

  /** The files that were opened by path and are not in this directory. */
  outside(): LogFile[] {
    return [...this.#opened.values()].filter(({ paths }) => dirname(paths.log) !== this.path);
  }

  /** Registers a file that was just made in this directory. */
  register(path: string, sessionId: string): LogFile {
    const file = this.fileOf(basename(path));
    this.#byId.set(sessionId, file);
    this.use(file);
    return file;
  }

  /** Forgets a file that was removed. */
  forget(file: LogFile): void {
    this.#files.delete(basename(file.paths.log));
    this.#unnamed.delete(file);
    this.#recent.delete(file);
    for (const index of [this.#byId, this.#opened]) {
      for (const [id, other] of index) if (other === file) index.delete(id);
    }
  }

  /** Finishes the queued writes of all files. */
  async close(): Promise<void> {
    const files = new Set([...this.#files.values(), ...this.#opened.values()]);
    await Promise.all([...files].map((file) => file.close()));
  }

  /** Makes the next `has` list the directory again, because files were moved to or from it. */
  invalidate(): void {
    this.#scannedIn = -1;
  }

  /** Marks a file as the last used one. If too many files were used, the oldest drops its entry index. */
  use(file: LogFile): void {
    this.#recent.delete(file);
    this.#recent.add(file);
    if (this.#recent.size <= RECENT_FILES_MAX) return;
    for (const oldest of this.#recent) {
      if (oldest.held) continue;
      oldest.dropEntryIndex();
      this.#recent.delete(oldest);
      return;
    }
  }

  /** The names of all files that may hold sessions. */
  names(): string[] {
    return (nullIfMissing(() => readdirSync(this.path)) ?? []).filter(isLogName);
  }

  /** Lists the directory and updates the index from ids to files. */
  scan(): void {
    const names = new Set(this.names());
    let changed = false;
    for (const [name, file] of this.#files) {
      if (names.has(name) || file.held) continue;
      this.forget(file);
      changed = true;
    }
    for (const name of names) {
      if (this.#files.has(name) && !changed) continue;
      const file = this.fileOf(name);
      const id = parseFileName(name)?.id;
      // If there are a finished and a partial file of a session, the finished one counts.
      if (id !== undefined && (!this.#byId.has(id) || isPartial(this.#byId.get(id)))) this.#byId.set(id, file);
    }
  }

  /** Checks every file, and reads those that have changed. */
  async list(): Promise<ListedFiles> {
    this.scan();
    const failures = new Map<LogFile, unknown>();
    let reads = 0;
    for (const file of [...this.#files.values()]) {
      // For a thousand files, synchronous stat calls are several times faster than a thread for each.
      const stats = statSync(file.paths.log, { throwIfNoEntry: false });
      if (stats !== undefined && file.isFresh(stats)) continue;
      try {
        if (!(await file.refresh())) this.forget(file);
      } catch (error) {
        if (file.problem === null) failures.set(file, error);
      }
      if (!this.#recent.has(file)) file.dropEntryIndex();
      reads += 1;
      if (reads % READS_AT_ONCE === 0) await yieldToEventLoop();
    }
    return this.#listed(failures);
  }

  /**
   * The files of sessions with open runs. The first call checks every file, later ones only those that had open runs before,
   * have a mark or a name of their own. Files that were put here by other means are looked for from time to time.
   */
  async listOpen(): Promise<LogFile[]> {
    const nowMs = performance.now();
    const before = this.#mayBeOpen ?? new Set((await this.list()).files);
    if (this.#mayBeOpen !== null && nowMs - this.#lookedMs > NEW_FILES_MS) {
      this.scan();
      for (const file of this.#files.values()) if (!file.known) before.add(file);
    }
    if (nowMs - this.#lookedMs > NEW_FILES_MS) this.#lookedMs = nowMs;
    const found = new Set<LogFile>();
    const marked = markedNames(join(this.path, STATE_FOLDER, OPEN_RUNS_FOLDER)).filter(isLogName);
    const files = new Set([
      ...before,
      ...this.#unnamed,
      ...marked.flatMap((name) => [this.fileOf(name), this.#partialOf(name)]),
    ]);
    for (const file of files) if (file !== null && (await this.#hasOpenRuns(file))) found.add(file);
    this.#mayBeOpen = found;
    return [...found];
  }

  #partialOf(name: string): LogFile | null {
    const partial = `${name}${PARTIAL_SUFFIX}`;
    const exists = this.#files.has(partial) || existsSync(join(this.path, partial));
    return exists ? this.fileOf(partial) : null;
  }

  /** Whether a file is that of a session with open runs. A file that cannot be read is shown in the listing of all sessions. */
  async #hasOpenRuns(file: LogFile): Promise<boolean> {
    try {
      if (!(await file.refresh())) {
        this.forget(file);
        return false;
      }
    } catch {
      return false;
    }
    if (!this.#recent.has(file)) file.dropEntryIndex();
    const { header, openRuns } = file.head;
    if (openRuns.length === 0) return false;
    const known = this.#byId.get(header.id);
    if (known === undefined || known === file || isPartial(known)) this.#byId.set(header.id, file);
    return this.#byId.get(header.id) === file;
  }

  #listed(failures: ReadonlyMap<LogFile, unknown>): ListedFiles {
    const ids = new Map<string, LogFile>();
    const damaged: DamagedSession[] = [];
    for (const file of [...this.#files.values()].sort((a, b) => Number(isPartial(a)) - Number(isPartial(b)))) {
      const problem = failures.get(file) ?? file.problem;
      if (problem !== null) damaged.push(damagedOf(file, problem));
      // A file that is not known was removed while the others were read.
      if (problem !== null || !file.known) continue;
      const { id } = file.head.header;
      const first = ids.get(id);
      if (first !== undefined) {
        const reason = `its session ${id} is also in ${show(basename(first.paths.log))}`;
        damaged.push({ id, path: file.paths.log, reason });
        continue;
      }
      ids.set(id, file);
      // The header decides which session a file holds, not the file's name.
      this.#byId.set(id, file);
    }
    return { files: [...ids.values()], damaged };
  }

  /** The file that the index has for a session, if it still holds that session. */
  async #confirm(sessionId: string): Promise<LogFile | null> {
    const file = this.#opened.get(sessionId) ?? this.#byId.get(sessionId);
    if (file === undefined) return null;
    try {
      if (!(await file.refresh())) {
        this.forget(file);
        return null;
      }
    } catch (error) {
      if (file.problem !== error) throw error;
      return file;
    }
    const { id } = file.head.header;
    if (id !== sessionId) {
      this.#byId.delete(sessionId);
      if (!this.#byId.has(id)) this.#byId.set(id, file);
      return null;
    }
    this.use(file);
    return file;
  }

  /** The file with a name. */
  fileOf(name: string): LogFile {
    const known = this.#files.get(name);
    if (known !== undefined) return known;
    const file = new LogFile(join(this.path, name), this.#options);
    this.#files.set(name, file);
    if (parseFileName(name) === null) this.#unnamed.add(file);
    return file;
  }
}

function isPartial(file: LogFile | undefined): boolean {
  return file?.paths.log.endsWith(PARTIAL_SUFFIX) === true;
}

function damagedOf({ paths }: LogFile, problem: unknown): DamagedSession {
  const foreign = problem instanceof SessionError && problem.code === "NOT_A_SESSION";
  const id = foreign ? null : (parseFileName(basename(paths.log))?.id ?? null);
  const found = problem instanceof Error ? problem.message : String(problem);
  const reason = problem instanceof SessionDamagedError ? `at line ${problem.line}, ${problem.reason}` : found;
  return { id, path: paths.log, reason };
}
