import { fstatSync, type Stats, statSync } from "node:fs";
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { SessionDamagedError, SessionError } from "../../session/errors.ts";
import { emptyHead, type SessionHead } from "../../session/log/fold.ts";
import { FORMAT_VERSION } from "../../session/log/header.ts";
import type { JsonlSettings } from "./jsonl-store.ts";
import { readHeader } from "./log-header.ts";
import {
  type FileStamp,
  INDEXED_BYTES_MIN,
  type LogIdentity,
  type LogPoint,
  NO_INDEX,
  readIndex,
  sameStamp,
  stampOf,
  tailAt,
  writeIndex,
} from "./log-index.ts";
import { LogState, WholeLogNeeded } from "./log-state.ts";
import { LogWriter } from "./log-writer.ts";
import { type LogPaths, pathsOf } from "./file-names.ts";
import { OpenFile, readLines } from "./read-lines.ts";
import { type Damage, readDamage, salvage, SalvagedLog } from "./salvage.ts";
import { nullIfMissing, StaleView } from "./store-failure.ts";

/**
 * One session's file, and a cache of its fold. Appends of other processes are detected by the file's size and modification
 * time. Only the file's `LogWriter` writes to it.
 */
export class LogFile {
  readonly paths: LogPaths;
  readonly #options: JsonlSettings;
  #writer: LogWriter | null = null;
  #log: LogState | SalvagedLog | null = null;
  /** The stamp of the file when the cached state was read; null if it must be read again. */
  #stamp: FileStamp | null = null;
  /** The checksum of the log's last bytes at that time. */
  #tail = 0;
  #problem: SessionError | null = null;
  /** A queue for the operations that change the cached state. */
  #queue: Promise<unknown> = Promise.resolve();
  /** Whether a writer of this process holds the lock: then no other process appends, and the cached state is complete. */
  held = false;

  constructor(path: string, options: JsonlSettings) {
    this.paths = pathsOf(path);
    this.#options = options;
  }

  /** The writer of the file. Read the file first. */
  get writer(): LogWriter {
    this.#writer ??= new LogWriter(this, this.#options);
    return this.#writer;
  }

  /** The log's head, as of the last `refresh`. */
  get head(): SessionHead {
    return this.#known.head;
  }

  /** Whether the session may have open runs, as far as is known. */
  get mayHaveOpenRuns(): boolean {
    return this.#log === null || this.#log.head.openRuns.length > 0;
  }

  /** Whether the file existed and could be read, as of the last `refresh`. */
  get known(): boolean {
    return this.#log !== null;
  }

  /** The cached state of a log that is not damaged. */
  get state(): LogState {
    if (!(this.#log instanceof LogState)) throw new StaleView("The log has not been read.");
    return this.#log;
  }

  /** The parts of the file that cannot be read. */
  get damage(): readonly Damage[] {
    if (this.#log instanceof SalvagedLog) return this.#log.damage;
    return this.#problem instanceof SessionDamagedError ? readDamage(this.paths.log) : [];
  }

  /** Whether the cached state is current for a file with these stats. */
  isFresh(stats: FileStamp): boolean {
    return this.held || sameStamp(this.#stamp, stats);
  }

  /** Why the file cannot be read, as of the last `refresh`; null if it can. */
  get problem(): SessionError | null {
    return this.#log === null ? this.#problem : null;
  }

  /**
   * Checks the file for changes, and reads new lines. Resolves to false if the file does not exist.
   *
   * @throws {SessionError} `DAMAGED`, `NOT_A_SESSION` or `UNSUPPORTED_VERSION`.
   */
  refresh(): Promise<boolean> {
    if (this.held) return Promise.resolve(true);
    return this.#exclusively(async () => {
      const stats = this.held ? null : statSync(this.paths.log, { throwIfNoEntry: false });
      const changed = stats === undefined || (stats !== null && !sameStamp(this.#stamp, stats));
      if (changed && !(await this.#read(false))) {
        this.#setProblem(null, null);
        return false;
      }
      this.#throwProblem();
      return true;
    });
  }

  /** Reads the new lines of a file that a writer has opened and locked. Afterwards the writer keeps the state current. */
  async hold(fd: number): Promise<void> {
    await this.#exclusively(async () => {
      await this.#update(fd, false);
      this.#throwProblem();
      this.held = true;
    });
  }

  /** Reads the log from its beginning instead of from its index. */
  async reload(): Promise<void> {
    await this.#exclusively(async () => {
      if (!(await this.#read(true))) throw new StaleView("The log's file was removed.");
      this.#throwProblem();
    });
  }

  /** The session's id, read from the first line only; null if the file is not a session's or cannot be read. */
  identify(): string | null {
    if (this.#log !== null) return this.#log.head.header.id;
    try {
      using file = new OpenFile(this.paths.log);
      return readHeader(file.fd, this.paths.log).header.id;
    } catch {
      return null;
    }
  }

  /** Records the stamp of the open file after writes of this process, so that they do not count as changes. */
  recordStamp(fd: number): void {
    const stats = fstatSync(fd);
    this.#stamp = stats.size === this.state.size ? stampOf(stats) : null;
    this.#tail = tailAt(fd, this.state.size);
  }

  /** Writes the index of the open file. Ignores failures, since the index only saves time. */
  index(fd: number): void {
    const { state } = this;
    if (state.size <= INDEXED_BYTES_MIN) return;
    try {
      state.coverage = writeIndex(state.identity, fd, state.point, state.coverage);
    } catch {
      state.coverage = null;
    }
  }

  /** Makes the next `refresh` read the file again. */
  invalidate(): void {
    this.#stamp = null;
  }

  /** Sets the state of a file that was just created, without reading it. `end.offset` counts from the end of the header. */
  setCreatedState({ end, head, settings }: LogPoint): void {
    using file = new OpenFile(this.paths.log);
    const stats = fstatSync(file.fd);
    const { identity, head: empty } = this.#start(file.fd, stats.ino);
    const { header } = empty;
    const modifiedAt = head.messageCount === 0 ? header.createdAt : head.modifiedAt;
    const point = {
      end: { seq: end.seq, offset: identity.headerEnd + end.offset },
      head: { ...head, header, modifiedAt },
      settings,
    };
    this.#setState(new LogState(identity, point, NO_INDEX), file.fd, stats);
    this.recordStamp(file.fd);
  }

  /** Finishes queued appends and closes the file. */
  async close(): Promise<void> {
    await this.#writer?.close();
  }

  /** Frees the memory of everything that a listing does not need. */
  dropEntryIndex(): void {
    if (this.held || !(this.#log instanceof LogState)) return;
    const { identity, point, coverage } = this.#log;
    this.#log = new LogState(identity, point, coverage);
  }

  /** Runs a query on the log, and reads the whole log if the query needs that. Call `refresh` first. */
  async query<T>(query: (log: LogState | SalvagedLog) => T): Promise<T> {
    try {
      return query(this.#known);
    } catch (error) {
      if (!(error instanceof WholeLogNeeded || error instanceof StaleView)) throw error;
      await this.reload();
      return query(this.#known);
    }
  }

  get #known(): LogState | SalvagedLog {
    if (this.#log === null) throw new StaleView("The log has not been read.");
    return this.#log;
  }

  #exclusively<T>(task: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(task);
    this.#queue = done.catch(() => {});
    return done;
  }

  /** Reads the new lines of the file, or all of them. Resolves to false if the file does not exist. */
  async #read(whole: boolean): Promise<boolean> {
    using file = nullIfMissing(() => new OpenFile(this.paths.log));
    if (file !== null) await this.#update(file.fd, whole);
    return file !== null;
  }

  /**
   * Reads the changes of the file and stores the result, or the problem, so that the file is not read again until it
   * changes. The old state stays in place until then, for concurrent readers.
   */
  async #update(fd: number, whole: boolean): Promise<void> {
    const before = fstatSync(fd);
    if (!whole && sameStamp(this.#stamp, before)) return;
    try {
      const state = await this.#fold(fd, before, whole);
      // `#fold` yields, and a writer of this process may have appended meanwhile. The code from here on is synchronous.
      const stats = fstatSync(fd);
      for (const lines of readLines(fd, state.size, stats.size)) state.fold(lines);
      this.#setState(state, fd, stats);
    } catch (error) {
      if (!(error instanceof SessionError)) throw error;
      this.#setProblem(error, before);
      if (this.#options.salvage && error instanceof SessionDamagedError)
        this.#log = trySalvage(fd, this.paths.log, before);
    }
  }

  /** Folds the log from the nearest valid starting point; `whole` makes it the first entry. */
  async #fold(fd: number, stats: Stats, whole: boolean): Promise<LogState> {
    let problem: unknown;
    for (const start of this.#foldStarts(fd, stats, whole)) {
      try {
        return await foldRest(fd, start);
      } catch (error) {
        // The starting point may be wrong: only a fold from the first entry shows whether the log is damaged.
        if (!(error instanceof SessionDamagedError || error instanceof WholeLogNeeded)) throw error;
        problem = error;
      }
    }
    throw problem;
  }

  /** Starting points of a fold, the nearest first: the cached state, the index, the first entry. */
  *#foldStarts(fd: number, stats: Stats, whole: boolean): Generator<LogState> {
    if (!whole && this.#log instanceof LogState && this.#hasGrown(this.#log, stats, fd)) {
      this.#log.coverage = null;
      yield this.#log;
    }
    const { identity, ...first } = this.#start(fd, stats.ino);
    const index = !whole && stats.size > INDEXED_BYTES_MIN ? readIndex(identity, first.head.header, fd) : null;
    if (index !== null) yield new LogState(identity, index.point, index.coverage);
    yield new LogState(identity, first, null);
  }

  /** Whether the file still begins with the log that was read, and is longer. */
  #hasGrown({ identity, size, head }: LogState, stamp: FileStamp, fd: number): boolean {
    // The version in the header is the only part of a log that changes in place: the first append of a newer Skein raises it.
    if (head.header.version !== FORMAT_VERSION || identity.ino !== stamp.ino || size >= stamp.size) return false;
    return tailAt(fd, size) === this.#tail;
  }

  /** The identity of an open log, and the starting point before its first entry. */
  #start(fd: number, ino: number): LogPoint & { readonly identity: LogIdentity } {
    const { header, end, check } = readHeader(fd, this.paths.log);
    const identity = { paths: this.paths, ino, headerEnd: end, headerCheck: check };
    return { identity, end: { seq: 0, offset: end }, head: emptyHead(header), settings: [] };
  }

  #setState(state: LogState, fd: number, stats: Stats): void {
    state.amend({ updatedAt: new Date(stats.mtimeMs).toISOString() });
    this.#log = state;
    this.#problem = null;
    this.#stamp = stampOf(stats);
    this.#tail = tailAt(fd, state.size);
  }

  /** Clears the cached state of a file that is missing or cannot be read. */
  #setProblem(problem: SessionError | null, stats: Stats | null): void {
    this.#log = null;
    this.#problem = problem;
    this.#stamp = stats === null ? null : stampOf(stats);
  }

  #throwProblem(): void {
    if (this.problem !== null) throw this.problem;
  }
}

/** Folds the lines of the file that follow the state. */
async function foldRest(fd: number, state: LogState): Promise<LogState> {
  let groups = 0;
  for (const lines of readLines(fd, state.size, fstatSync(fd).size)) {
    if (groups > 0) await yieldToEventLoop();
    state.fold(lines);
    groups += 1;
  }
  return state;
}

function trySalvage(fd: number, path: string, stamp: FileStamp): SalvagedLog | null {
  try {
    return salvage(fd, path, stamp);
  } catch {
    return null;
  }
}
