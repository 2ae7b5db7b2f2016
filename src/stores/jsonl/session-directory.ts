import { readdirSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { setImmediate as giveTurn } from "node:timers/promises";
import { SessionDamagedError, SessionError, SessionNotFoundError, show } from "../../session/errors.ts";
import type { DamagedSession } from "../../session/store.ts";
import type { JsonlSettings } from "./jsonl-store.ts";
import { LogFile } from "./log-file.ts";
import { isLogName, PARTIAL_SUFFIX, parseFileName } from "./file-names.ts";
import { ifThere } from "./store-failure.ts";

/** How many files are read for a listing before others have a turn. */
const READS_AT_ONCE = 8;
/** How many sessions in use keep more in memory than a listing needs. */
const WARM_FILES_MAX = 64;

/** The files of a directory, after a look at each: one for every session, and those that cannot be read. */
interface ListedFiles {
  readonly files: LogFile[];
  readonly damaged: DamagedSession[];
}

/** The session files of one directory: which there are, and in which of them a session is. It writes nothing. */
export class SessionDirectory {
  readonly path: string;
  readonly #options: JsonlSettings;
  readonly #files = new Map<string, LogFile>();
  /** Files whose names do not say whose they are. */
  readonly #unnamed = new Set<LogFile>();
  readonly #byId = new Map<string, LogFile>();
  /** Files that were opened by path; they come before what the names say. */
  readonly #opened = new Map<string, LogFile>();
  readonly #warm = new Set<LogFile>();
  #scannedIn = -1;

  constructor(path: string, options: JsonlSettings) {
    this.path = path;
    this.#options = options;
  }

  /** The session's file if this process is appending to it, so that nothing needs to be looked at. */
  held(sessionId: string): LogFile | null {
    const file = this.#opened.get(sessionId) ?? this.#byId.get(sessionId);
    return file?.held === true ? file : null;
  }

  /** The file of a session, read up to its present end; null when there is none. Throws as `LogFile.refresh` does. */
  async find(sessionId: string): Promise<LogFile | null> {
    const file = await this.locate(sessionId);
    if (file?.problem) throw file.problem;
    return file;
  }

  /** The same for a session that must be there. @throws {SessionNotFoundError} */
  async existing(sessionId: string): Promise<LogFile> {
    const file = await this.find(sessionId);
    if (file === null) throw new SessionNotFoundError(sessionId);
    return file;
  }

  /** The file of a session, whether it can be read or not; null when there is none. */
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
   * Whether a file of the directory is that session's. Which files there are is looked up once in each `generation`
   * of the directory's lock, since nobody else makes any meanwhile.
   */
  has(sessionId: string, generation: number): boolean {
    if (this.#scannedIn !== generation) this.scan();
    this.#scannedIn = generation;
    if (this.#byId.has(sessionId) || this.#opened.has(sessionId)) return true;
    return [...this.#unnamed].some((file) => file.identify() === sessionId);
  }

  /** Takes a file in by its path, whatever its name. Throws as `LogFile.refresh` does. */
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

  /** The files that were opened by path and are outside of the directory. */
  outside(): LogFile[] {
    return [...this.#opened.values()].filter(({ paths }) => dirname(paths.log) !== this.path);
  }

  /** A file of the directory that was just made. */
  expect(path: string, sessionId: string): LogFile {
    const file = this.fileOf(basename(path));
    this.#byId.set(sessionId, file);
    this.use(file);
    return file;
  }

  /** Forgets a file that is gone. */
  forget(file: LogFile): void {
    this.#files.delete(basename(file.paths.log));
    this.#unnamed.delete(file);
    this.#warm.delete(file);
    for (const index of [this.#byId, this.#opened]) {
      for (const [id, other] of index) if (other === file) index.delete(id);
    }
  }

  /** Finishes what is queued for its files. */
  async close(): Promise<void> {
    const files = new Set([...this.#files.values(), ...this.#opened.values()]);
    await Promise.all([...files].map((file) => file.close()));
  }

  /** Says that files were moved here or away, so that they are looked for anew. */
  changed(): void {
    this.#scannedIn = -1;
  }

  /** Notes that a file is in use, so that others give up what they keep in memory first. */
  use(file: LogFile): void {
    this.#warm.delete(file);
    this.#warm.add(file);
    if (this.#warm.size <= WARM_FILES_MAX) return;
    for (const oldest of this.#warm) {
      if (oldest.held) continue;
      oldest.slim();
      this.#warm.delete(oldest);
      return;
    }
  }

  /** The names of the files that may be sessions. */
  names(): string[] {
    return (ifThere(() => readdirSync(this.path)) ?? []).filter(isLogName);
  }

  /** Looks which files there are. */
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
      // Of a file and its beginnings, the finished one counts.
      if (id !== undefined && (!this.#byId.has(id) || isPartial(this.#byId.get(id)))) this.#byId.set(id, file);
    }
  }

  /** Looks at every file, and reads those that have changed. */
  async list(): Promise<ListedFiles> {
    this.scan();
    const failures = new Map<LogFile, unknown>();
    let reads = 0;
    for (const file of [...this.#files.values()]) {
      // Looking at a thousand files one after another is several times faster without a thread for each look.
      const stats = statSync(file.paths.log, { throwIfNoEntry: false });
      if (stats !== undefined && file.isFresh(stats)) continue;
      try {
        if (!(await file.refresh())) this.forget(file);
      } catch (error) {
        if (file.problem === null) failures.set(file, error);
      }
      if (!this.#warm.has(file)) file.slim();
      reads += 1;
      if (reads % READS_AT_ONCE === 0) await giveTurn();
    }
    return this.#listed(failures);
  }

  #listed(failures: ReadonlyMap<LogFile, unknown>): ListedFiles {
    const ids = new Map<string, LogFile>();
    const damaged: DamagedSession[] = [];
    for (const file of [...this.#files.values()].sort((a, b) => Number(isPartial(a)) - Number(isPartial(b)))) {
      const problem = failures.get(file) ?? file.problem;
      if (problem !== null) damaged.push(damagedOf(file, problem));
      // Where it is not known, it vanished while the others were read.
      if (problem !== null || !file.known) continue;
      const { id } = file.head.header;
      const first = ids.get(id);
      if (first !== undefined) {
        const reason = `its session ${id} is also in ${show(basename(first.paths.log))}`;
        damaged.push({ id, path: file.paths.log, reason });
        continue;
      }
      ids.set(id, file);
      // The header has the last word on whose file it is, not the name.
      this.#byId.set(id, file);
    }
    return { files: [...ids.values()], damaged };
  }

  /** The file that is known to be the session's, after a look whether it still is. */
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

  /** The file of that name. */
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
