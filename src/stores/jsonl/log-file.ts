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
 * One session's file, and what is known of it. What others append is found by looking at the file's size and time;
 * only its writer writes.
 */
export class LogFile {
  readonly paths: LogPaths;
  readonly #options: JsonlSettings;
  #writer: LogWriter | null = null;
  #log: LogState | SalvagedLog | null = null;
  /** How the file looked when what is known was read; null while it must be read anew. */
  #stamp: FileStamp | null = null;
  /** What the log's last bytes were then. */
  #tail = 0;
  #problem: SessionError | null = null;
  /** What changes what is known does so one after the other. */
  #turn: Promise<unknown> = Promise.resolve();
  /** Whether a writer of this process holds the lock: then nobody else appends, and what is known is all there is. */
  held = false;

  constructor(path: string, options: JsonlSettings) {
    this.paths = pathsOf(path);
    this.#options = options;
  }

  /** Who appends to the file, once it has been read. */
  get writer(): LogWriter {
    this.#writer ??= new LogWriter(this, this.#options);
    return this.#writer;
  }

  /** What the log adds up to, as of the last `refresh`. */
  get head(): SessionHead {
    return this.#known.head;
  }

  /** Whether there was a file that could be read, as of the last `refresh`. */
  get known(): boolean {
    return this.#log !== null;
  }

  /** What is known of a log that can be read as it is. */
  get state(): LogState {
    if (!(this.#log instanceof LogState)) throw new StaleView("The log has not been read.");
    return this.#log;
  }

  /** What cannot be read of the file. */
  get damage(): readonly Damage[] {
    if (this.#log instanceof SalvagedLog) return this.#log.damage;
    return this.#problem instanceof SessionDamagedError ? readDamage(this.paths.log) : [];
  }

  /** Whether what is known was read from a file that looked like this. */
  isFresh(stats: FileStamp): boolean {
    return this.held || sameStamp(this.#stamp, stats);
  }

  /** What keeps the file from being read, as of the last `refresh`. */
  get problem(): SessionError | null {
    return this.#log === null ? this.#problem : null;
  }

  /**
   * Looks at the file, and reads what is new. Resolves to false when there is none.
   *
   * @throws {SessionError} `DAMAGED`, `NOT_A_SESSION` or `UNSUPPORTED_VERSION`.
   */
  refresh(): Promise<boolean> {
    if (this.held) return Promise.resolve(true);
    return this.#exclusively(async () => {
      const stats = this.held ? null : statSync(this.paths.log, { throwIfNoEntry: false });
      const changed = stats === undefined || (stats !== null && !sameStamp(this.#stamp, stats));
      if (changed && !(await this.#read(false))) {
        this.#takeProblem(null, null);
        return false;
      }
      this.#throwProblem();
      return true;
    });
  }

  /** Brings what is known up to a file that a writer has opened and locked; from then on the writer keeps it so. */
  async hold(fd: number): Promise<void> {
    await this.#exclusively(async () => {
      await this.#update(fd, false);
      this.#throwProblem();
      this.held = true;
    });
  }

  /** Reads the log from its beginning, and not from its index. */
  async reload(): Promise<void> {
    await this.#exclusively(async () => {
      if (!(await this.#read(true))) throw new StaleView("The log's file is gone.");
      this.#throwProblem();
    });
  }

  /** The session's id, from the first line alone; null for a file that is not one, or not readable. */
  identify(): string | null {
    if (this.#log !== null) return this.#log.head.header.id;
    try {
      using file = new OpenFile(this.paths.log);
      return readHeader(file.fd, this.paths.log).header.id;
    } catch {
      return null;
    }
  }

  /** Takes over how the open file looks after writes of our own. */
  settle(fd: number): void {
    const stats = fstatSync(fd);
    this.#stamp = stats.size === this.state.size ? stampOf(stats) : null;
    this.#tail = tailAt(fd, this.state.size);
  }

  /** Writes the index of the open file. One that cannot be written is left as it is, since it only saves time. */
  index(fd: number): void {
    const { state } = this;
    if (state.size <= INDEXED_BYTES_MIN) return;
    try {
      state.reach = writeIndex(state.identity, fd, state.point, state.reach);
    } catch {
      state.reach = null;
    }
  }

  /** Makes the file be read anew. */
  distrust(): void {
    this.#stamp = null;
  }

  /** Takes over what the log adds up to that the file was just made with. The offset of its end is that after the header. */
  adopt({ end, head, settings }: LogPoint): void {
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
    this.#takeState(new LogState(identity, point, NO_INDEX), file.fd, stats);
    this.settle(file.fd);
  }

  /** Finishes what is queued, and lets go of the file. */
  async close(): Promise<void> {
    await this.#writer?.close();
  }

  /** Keeps only what a listing needs. */
  dropEntryIndex(): void {
    if (this.held || !(this.#log instanceof LogState)) return;
    const { identity, point, reach } = this.#log;
    this.#log = new LogState(identity, point, reach);
  }

  /** What is asked of the log, which is read through where that is needed. Call `refresh` first. */
  async ask<T>(question: (log: LogState | SalvagedLog) => T): Promise<T> {
    try {
      return question(this.#known);
    } catch (error) {
      if (!(error instanceof WholeLogNeeded || error instanceof StaleView)) throw error;
      await this.reload();
      return question(this.#known);
    }
  }

  get #known(): LogState | SalvagedLog {
    if (this.#log === null) throw new StaleView("The log has not been read.");
    return this.#log;
  }

  #exclusively<T>(task: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(task);
    this.#turn = turn.catch(() => {});
    return turn;
  }

  /** Reads what is new of the file, or the whole of it; false when there is none. */
  async #read(whole: boolean): Promise<boolean> {
    using file = nullIfMissing(() => new OpenFile(this.paths.log));
    if (file !== null) await this.#update(file.fd, whole);
    return file !== null;
  }

  /**
   * Takes over what is new in the file, or what is wrong with it, so that the file is not read again until it changes. Until
   * then what was known before stays, for those who are reading.
   */
  async #update(fd: number, whole: boolean): Promise<void> {
    const before = fstatSync(fd);
    if (!whole && sameStamp(this.#stamp, before)) return;
    try {
      const state = await this.#fold(fd, before, whole);
      // While others had a turn, a writer of this process may have appended: from here on nobody has one.
      const stats = fstatSync(fd);
      for (const lines of readLines(fd, state.size, stats.size)) state.fold(lines);
      this.#takeState(state, fd, stats);
    } catch (error) {
      if (!(error instanceof SessionError)) throw error;
      this.#takeProblem(error, before);
      if (this.#options.salvage && error instanceof SessionDamagedError)
        this.#log = trySalvage(fd, this.paths.log, before);
    }
  }

  /** What the log adds up to, from the nearest position that is sure; `whole` begins with the first entry. */
  async #fold(fd: number, stats: Stats, whole: boolean): Promise<LogState> {
    let problem: unknown;
    for (const start of this.#starts(fd, stats, whole)) {
      try {
        return await foldRest(fd, start);
      } catch (error) {
        // The log itself has the last word on whether it is damaged.
        if (!(error instanceof SessionDamagedError || error instanceof WholeLogNeeded)) throw error;
        problem = error;
      }
    }
    throw problem;
  }

  /** What a fold can begin with, the nearest first: what is known of the log, what its index says, its first entry. */
  *#starts(fd: number, stats: Stats, whole: boolean): Generator<LogState> {
    if (!whole && this.#log instanceof LogState && this.#hasGrown(this.#log, stats, fd)) {
      this.#log.reach = null;
      yield this.#log;
    }
    const { identity, ...first } = this.#start(fd, stats.ino);
    const index = !whole && stats.size > INDEXED_BYTES_MIN ? readIndex(identity, first.head.header, fd) : null;
    if (index !== null) yield new LogState(identity, index.point, index.reach);
    yield new LogState(identity, first, null);
  }

  /** Whether the file is the log as it was, and more. */
  #hasGrown({ identity, size, head }: LogState, stamp: FileStamp, fd: number): boolean {
    // The version is the one thing of a log that changes in place; whoever appends first changes it.
    if (head.header.version !== FORMAT_VERSION || identity.ino !== stamp.ino || size >= stamp.size) return false;
    return tailAt(fd, size) === this.#tail;
  }

  /** Which log an open file is, and where its first entry stands. */
  #start(fd: number, ino: number): LogPoint & { readonly identity: LogIdentity } {
    const { header, end, check } = readHeader(fd, this.paths.log);
    const identity = { paths: this.paths, ino, headerEnd: end, headerCheck: check };
    return { identity, end: { seq: 0, offset: end }, head: emptyHead(header), settings: [] };
  }

  #takeState(state: LogState, fd: number, stats: Stats): void {
    state.amend({ updatedAt: new Date(stats.mtimeMs).toISOString() });
    this.#log = state;
    this.#problem = null;
    this.#stamp = stampOf(stats);
    this.#tail = tailAt(fd, state.size);
  }

  /** Nothing is known of a file that is not there, or cannot be read. */
  #takeProblem(problem: SessionError | null, stats: Stats | null): void {
    this.#log = null;
    this.#problem = problem;
    this.#stamp = stats === null ? null : stampOf(stats);
  }

  #throwProblem(): void {
    if (this.problem !== null) throw this.problem;
  }
}

/** Folds what the file has more. */
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
