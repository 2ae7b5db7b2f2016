import { closeSync, fstatSync, openSync, type Stats, statSync } from "node:fs";
import type { Entry } from "../../session/entry.ts";
import { SessionDamagedError, SessionError } from "../../session/errors.ts";
import { emptyHead, type PathSummary, type SessionHead } from "../../session/fold.ts";
import { FORMAT_VERSION } from "../../session/header.ts";
import { readSettings, type Settings, type SettingsNode } from "../../session/settings.ts";
import type { ReadRange } from "../../session/store-driver.ts";
import { readHeader } from "./log-header.ts";
import { type FileStamp, INDEXED_BYTES_MIN, NO_INDEX, readIndex, readTail, sameStamp, stampOf } from "./log-index.ts";
import { LogState, StaleView, WholeLogNeeded } from "./log-state.ts";
import { type Places, placesOf } from "./places.ts";
import { giveTurn, readLines } from "./read-lines.ts";
import { readLog } from "./read-log.ts";
import { salvage, type SalvagedLog } from "./salvage.ts";
import { ifThere } from "./store-failure.ts";

/** How often what is known is loaded anew when the file changes again meanwhile. */
const ATTEMPTS_MAX = 3;

/** What a log adds up to, and how its file looked before its end was read. */
interface Folded {
  readonly state: LogState;
  readonly stats: Stats;
}

/**
 * One session's file, and what is known of it. What others append is found by looking at the file's size and time;
 * nothing here writes.
 */
export class LogFile {
  readonly places: Places;
  readonly #salvages: boolean;
  #state: LogState | null = null;
  #salvaged: SalvagedLog | null = null;
  /** How the file looked when what is known was read; null while it must be read anew. */
  #stamp: FileStamp | null = null;
  #problem: SessionError | null = null;
  /** What changes what is known does so one after the other. */
  #turn: Promise<unknown> = Promise.resolve();
  /** Whether a writer of this process holds the lock: then nobody else appends, and what is known is all there is. */
  held = false;

  constructor(path: string, options: { readonly salvage: boolean }) {
    this.places = placesOf(path);
    this.#salvages = options.salvage;
  }

  /** What the log adds up to, as of the last `refresh`. */
  get head(): SessionHead {
    return this.#salvaged?.head ?? this.state.head;
  }

  /** Whether there was a file that could be read, as of the last `refresh`. */
  get known(): boolean {
    return this.#state !== null || this.#salvaged !== null;
  }

  /** What is known of the log, for the one who appends. */
  get state(): LogState {
    if (this.#state === null) throw new StaleView("The log has not been read.");
    return this.#state;
  }

  /** The lost entries that are shown as such. */
  get salvaged(): SalvagedLog | null {
    return this.#salvaged;
  }

  /** Whether what is known was read from a file that looked like this. */
  isFresh(stats: FileStamp): boolean {
    return this.held || sameStamp(this.#stamp, stats);
  }

  /** What keeps the file from being read, as of the last `refresh`. */
  get problem(): SessionError | null {
    return this.#salvaged === null ? this.#problem : null;
  }

  /**
   * Looks at the file, and reads what is new. Resolves to false when there is none.
   *
   * @throws {SessionError} `DAMAGED`, `NOT_A_SESSION` or `UNSUPPORTED_VERSION`.
   */
  refresh(): Promise<boolean> {
    if (this.held) return Promise.resolve(true);
    return this.#exclusively(async () => {
      const stats = this.held ? null : statSync(this.places.log, { throwIfNoEntry: false });
      if (stats !== null && (stats === undefined || !sameStamp(this.#stamp, stats)) && !(await this.#look()))
        return false;
      this.#throwProblem();
      return true;
    });
  }

  /** Brings what is known up to a file that a writer has opened and locked; from then on the writer keeps it so. */
  async hold(fd: number): Promise<void> {
    await this.#exclusively(async () => {
      await this.#update(fd);
      this.#throwProblem();
      this.held = true;
    });
  }

  /** What is known of the log, read from its beginning. */
  async whole(): Promise<LogState> {
    if (!this.state.whole) await this.reload();
    return this.state;
  }

  /** Reads the log anew, and not from its index. */
  async reload(): Promise<void> {
    await this.#exclusively(async () => {
      const fd = ifThere(() => openSync(this.places.log, "r"));
      if (fd === null) throw new StaleView("The log's file is gone.");
      try {
        await this.#load(fd, { useIndex: false });
      } finally {
        closeSync(fd);
      }
      this.#throwProblem();
    });
  }

  /** The session's id, from the first line alone; null for a file that is not one, or not readable. */
  identify(): string | null {
    if (this.#state !== null) return this.#state.head.header.id;
    let fd: number | null = null;
    try {
      fd = openSync(this.places.log, "r");
      return readHeader(fd, this.places.log).header.id;
    } catch {
      return null;
    } finally {
      if (fd !== null) closeSync(fd);
    }
  }

  /** Takes over how the file looks after a write of our own; null makes it be read anew. */
  settle(stats: Stats | null): void {
    this.#stamp = stats === null ? null : stampOf(stats);
  }

  /** Takes over what another log adds up to, of which this one is a copy under another header. Call it under its lock. */
  adopt(source: LogState): void {
    const fd = openSync(this.places.log, "r");
    try {
      const stats = fstatSync(fd);
      const { header, end, check, tail } = readHeader(fd, this.places.log);
      const { point, identity } = source;
      const { head } = point;
      const modifiedAt = head.messageCount === 0 ? header.createdAt : head.modifiedAt;
      const offset = end + source.size - identity.headerEnd;
      const state = new LogState(
        { places: this.places, ino: stats.ino, headerEnd: end, headerCheck: check },
        {
          ...point,
          end: { seq: head.version, offset },
          tail: head.version === 0 ? tail : point.tail,
          // A run of the source goes on there, or not at all.
          head: { ...head, header, modifiedAt, openRuns: [] },
        },
        NO_INDEX,
      );
      state.touch(new Date(stats.mtimeMs).toISOString());
      this.#take(state, stampOf(stats), null, null);
    } finally {
      closeSync(fd);
    }
  }

  /** Keeps only what a listing needs. */
  slim(): void {
    if (!this.held) this.#state?.slim();
  }

  /** The entry of that id, or null. Call `refresh` first. */
  async getEntry(id: string): Promise<Entry | null> {
    return this.#salvaged !== null ? this.#salvaged.getEntry(id) : this.#ask((state) => state.find(id));
  }

  /** The path of a node; null for a fact, or when there is no such entry. Call `refresh` first. */
  async path(id: string): Promise<PathSummary | null> {
    return this.#salvaged !== null ? this.#salvaged.path(id) : this.#ask((state) => state.pathOf(id) ?? null);
  }

  /** All that was set on a path that ends in these settings. Call `refresh` first. */
  async settings(last: SettingsNode): Promise<Settings> {
    if (this.#salvaged !== null) return this.#salvaged.settings(last);
    return readSettings(last, (seq) => this.#ask((state) => state.settingsAt(seq)));
  }

  /** Opens the entries of a range; null is a moment to let others have a turn. Call `refresh` first. */
  async openRead(range: ReadRange): Promise<Generator<Entry | null, undefined>> {
    if (this.#salvaged !== null) return this.#salvaged.read(range);
    return this.#ask((state) => readLog(state, range));
  }

  async #ask<T>(question: (state: LogState) => T): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return question(this.state);
      } catch (error) {
        const reads = error instanceof WholeLogNeeded || error instanceof StaleView;
        if (!reads || attempt === ATTEMPTS_MAX) throw error;
        await this.reload();
      }
    }
  }

  #exclusively<T>(task: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(task);
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #look(): Promise<boolean> {
    const fd = ifThere(() => openSync(this.places.log, "r"));
    if (fd === null) {
      this.#take(null, null, null, null);
      return false;
    }
    try {
      await this.#update(fd);
    } finally {
      closeSync(fd);
    }
    return true;
  }

  async #update(fd: number): Promise<void> {
    const stamp = stampOf(fstatSync(fd));
    if (sameStamp(this.#stamp, stamp)) return;
    const state = this.#state;
    if (state === null || !hasGrown(state, stamp, fd)) return this.#load(fd, { useIndex: true });
    try {
      await this.#judge(fd, () => {
        // The one thing of a log that changes in place; whoever appends first changes it.
        if (state.head.header.version !== FORMAT_VERSION) state.raise(readHeader(fd, this.places.log).header);
        state.reach = null;
        return foldRest(fd, state);
      });
    } catch (error) {
      if (!(error instanceof WholeLogNeeded)) throw error;
      await this.#load(fd, { useIndex: false });
    }
  }

  async #load(fd: number, { useIndex }: { readonly useIndex: boolean }): Promise<void> {
    await this.#judge(fd, async () => {
      const { header, end, check, tail } = readHeader(fd, this.places.log);
      const stamp = stampOf(fstatSync(fd));
      const identity = { places: this.places, ino: stamp.ino, headerEnd: end, headerCheck: check };
      const log = { path: this.places.index, headerCheck: check, ino: stamp.ino, fd, stamp, header };
      const start = useIndex && stamp.size > INDEXED_BYTES_MIN ? readIndex(log) : null;
      try {
        if (start !== null) return await foldRest(fd, new LogState(identity, start.point, start.reach));
      } catch (error) {
        // The log itself has the last word on whether it is damaged.
        if (!(error instanceof SessionDamagedError || error instanceof WholeLogNeeded)) throw error;
      }
      const first = { end: { seq: 0, offset: end }, lines: 1, tail, head: emptyHead(header), settings: [] };
      return foldRest(fd, new LogState(identity, first, null));
    });
  }

  /**
   * Takes over what the task finds, or what it finds wrong with the file, so that the file is not read again until it
   * changes. Until then what was known before stays, for those who are reading.
   */
  async #judge(fd: number, task: () => Promise<Folded>): Promise<void> {
    const stamp = stampOf(fstatSync(fd));
    try {
      const { state, stats } = await task();
      state.touch(new Date(stats.mtimeMs).toISOString());
      this.#take(state, stampOf(stats), null, null);
    } catch (error) {
      if (!(error instanceof SessionError)) throw error;
      const salvages = this.#salvages && error instanceof SessionDamagedError;
      this.#take(null, stamp, error, salvages ? trySalvage(fd, this.places.log, stamp) : null);
    }
  }

  #take(
    state: LogState | null,
    stamp: FileStamp | null,
    problem: SessionError | null,
    salvaged: SalvagedLog | null,
  ): void {
    this.#state = state;
    this.#stamp = stamp;
    this.#problem = problem;
    this.#salvaged = salvaged;
  }

  #throwProblem(): void {
    if (this.problem !== null) throw this.problem;
  }
}

/** Whether the file is the log as it was, and more. */
function hasGrown({ identity, size, tail }: LogState, stamp: FileStamp, fd: number): boolean {
  if (identity.ino !== stamp.ino || size >= stamp.size) return false;
  return readTail(fd, size, tail.length)?.equals(tail) === true;
}

/** Folds what the file has more, up to its end. Resolves to how it looked then. */
async function foldRest(fd: number, state: LogState): Promise<Folded> {
  for (;;) {
    const stats = fstatSync(fd);
    let groups = 0;
    for (const lines of readLines(fd, state.size, stats.size)) {
      if (groups > 0) await giveTurn();
      state.fold(lines);
      groups += 1;
    }
    // While others had a turn, the log may have grown.
    if (groups < 2) return { state, stats };
  }
}

function trySalvage(fd: number, path: string, stamp: FileStamp): SalvagedLog | null {
  try {
    return salvage(fd, path, stamp);
  } catch {
    return null;
  }
}
