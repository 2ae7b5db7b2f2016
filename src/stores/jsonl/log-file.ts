import type { Stats } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import type { Entry } from "../../session/entry.ts";
import { SessionDamagedError, SessionError } from "../../session/errors.ts";
import { emptyHead, type PathSummary, type SessionHead } from "../../session/fold.ts";
import { FORMAT_VERSION } from "../../session/header.ts";
import { readSettings, type Settings, type SettingsNode } from "../../session/settings.ts";
import type { ReadRange } from "../../session/store-driver.ts";
import { checksum, CHECK_BYTES, type FileStamp, headOf } from "./index-block.ts";
import { readLastBlock } from "./index-file.ts";
import { type LogIdentity, StaleView } from "./log-access.ts";
import { readHeader } from "./log-header.ts";
import { type LogStart, LogState } from "./log-state.ts";
import { INDEX_TO_REPLACE } from "./pending-index.ts";
import { type Places, placesOf } from "./places.ts";
import { type ByteSource, readAhead, readChunk, readLines } from "./read-lines.ts";
import { openRead, ReadMarks } from "./read-log.ts";
import { salvage, type SalvagedLog } from "./salvage.ts";

/** Up to which size a file is read as a whole, and no index is looked for, as there is none of so little. */
const SMALL_FILE_BYTES = 128 * 1024;
/** How often what is known is loaded anew when the file changes again meanwhile. */
const ATTEMPTS_MAX = 3;

/**
 * One session's file, and what is known of it. What others append is found by looking at the file's size and time;
 * nothing here writes.
 */
export class LogFile {
  readonly places: Places;
  readonly #salvages: boolean;
  #state: LogState | null = null;
  #salvaged: SalvagedLog | null = null;
  #marks = new ReadMarks();
  /** How the file looked when what is known was read; null while it must be read anew. */
  #stamp: FileStamp | null = null;
  #problem: SessionError | null = null;
  #running: Promise<boolean> | null = null;
  #next: Promise<boolean> | null = null;
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
  isFresh(stats: Pick<Stats, "ino" | "size" | "mtimeMs">): boolean {
    return this.held || isSame(this.#stamp, stats);
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
  async refresh(): Promise<boolean> {
    if (this.held) return true;
    // A look that began earlier may have been too early for what this caller must see.
    if (this.#running === null) return this.#start(() => this.#look());
    this.#next ??= this.#running.then(
      () => this.#startNext(),
      () => this.#startNext(),
    );
    return this.#next;
  }

  /** Brings what is known up to a file that a writer has opened and locked; from then on the writer keeps it so. */
  async hold(handle: FileHandle): Promise<void> {
    await this.#exclusively(async () => {
      await this.#update(await handle.stat(), handle);
      this.#throwProblem();
      this.held = true;
      return true;
    });
  }

  /** Forgets what is known, so that it is read from the log itself and not from its index. */
  async reload(): Promise<void> {
    if (this.held) return this.state.finder.distrustIndex();
    await this.#exclusively(async () => {
      const handle = await open(this.places.log, "r").catch(missingAsNull);
      if (handle === null) throw new StaleView("The log's file is gone.");
      try {
        await this.#load(handle, stampOf(await handle.stat()), { useIndex: false });
      } finally {
        await handle.close();
      }
      this.#throwProblem();
      return true;
    });
  }

  /** The session's id, from the first line alone; null for a file that is not one, or not readable. */
  async identify(): Promise<string | null> {
    if (this.#state !== null) return this.#state.head.header.id;
    const handle = await open(this.places.log, "r").catch(() => null);
    try {
      return handle === null ? null : (await readHeader(handle, this.places.log)).header.id;
    } catch {
      return null;
    } finally {
      await handle?.close();
    }
  }

  /** Takes over how the file looks after a write of our own. */
  settle(stats: Stats): void {
    this.#stamp = stampOf(stats);
  }

  /** Keeps only what a listing needs. */
  slim(): void {
    if (!this.held) this.#state?.slim();
  }

  /** The entry of that id, or null. Call `refresh` first. */
  async getEntry(id: string): Promise<Entry | null> {
    if (this.#salvaged !== null) return this.#salvaged.getEntry(id);
    return this.#retrying(() => this.state.finder.find(id, this.state.end));
  }

  /** The path of a node; null for a fact, or when there is no such entry. Call `refresh` first. */
  async path(id: string): Promise<PathSummary | null> {
    if (this.#salvaged !== null) return this.#salvaged.path(id);
    if (id === this.head.leafId) return this.head.path;
    return this.#retrying(async () => (await this.state.finder.pathOf(id, this.state.end)) ?? null);
  }

  /** All that was set on a path that ends in these settings. Call `refresh` first. */
  async settings(last: SettingsNode): Promise<Settings> {
    if (this.#salvaged !== null) return this.#salvaged.settings(last);
    return this.#retrying(() => readSettings(last, (seq) => this.state.finder.settingsAt(seq, this.state.end)));
  }

  /** Opens the entries of a range. Call `refresh` first. */
  async openRead(range: ReadRange): Promise<AsyncGenerator<Entry, undefined>> {
    if (this.#salvaged !== null) return this.#salvaged.read(range);
    return this.#retrying(() => openRead(this.state, this.#marks, range));
  }

  async #retrying<T>(task: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await task();
      } catch (error) {
        if (!(error instanceof StaleView) || attempt === ATTEMPTS_MAX) throw error;
        await this.reload();
      }
    }
  }

  #start(task: () => Promise<boolean>): Promise<boolean> {
    this.#running = task().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Runs a task that changes what is known while no other does. */
  async #exclusively(task: () => Promise<boolean>): Promise<void> {
    while (this.#running !== null) await this.#running.catch(() => false);
    await this.#start(task);
  }

  #startNext(): Promise<boolean> {
    this.#next = null;
    return this.refresh();
  }

  async #look(): Promise<boolean> {
    const stats = await stat(this.places.log).catch(missingAsNull);
    if (stats === null) {
      this.#forget();
      return false;
    }
    if (isSame(this.#stamp, stats)) {
      this.#throwProblem();
      return true;
    }
    const handle = await open(this.places.log, "r").catch(missingAsNull);
    if (handle === null) {
      this.#forget();
      return false;
    }
    try {
      await this.#update(await handle.stat(), handle);
    } finally {
      await handle.close();
    }
    this.#throwProblem();
    return true;
  }

  async #update(stats: Stats, handle: FileHandle): Promise<void> {
    const stamp = stampOf(stats);
    if (isSame(this.#stamp, stamp)) return;
    const state = this.#state;
    const grown = state !== null && state.identity.ino === stamp.ino && state.size < stamp.size;
    if (grown && (await isUnchanged(handle, state)))
      await this.#judge(handle, stamp, async () => {
        // The one thing of a log that changes in place; whoever appends first changes it.
        if (state.head.header.version !== FORMAT_VERSION)
          state.raise((await readHeader(handle, this.places.log)).header);
        return foldTail(handle, state, stamp);
      });
    else await this.#load(handle, stamp, { useIndex: true });
  }

  async #load(file: FileHandle, stamp: FileStamp, options: { readonly useIndex: boolean }): Promise<void> {
    const small = stamp.size <= SMALL_FILE_BYTES;
    const handle = small ? await readAhead(file, stamp.size) : file;
    await this.#judge(handle, stamp, async () => {
      const { header, end, check } = await readHeader(handle, this.places.log);
      const identity = { places: this.places, header, ino: stamp.ino, headerEnd: end, headerCheck: check };
      const head = emptyHead(header);
      const start = options.useIndex && !small ? await startFromIndex(handle, identity, head, stamp) : null;
      try {
        if (start !== null) return await foldTail(handle, new LogState(identity, start), stamp);
      } catch (error) {
        // The log itself has the last word on whether it is damaged.
        if (!(error instanceof SessionDamagedError || error instanceof StaleView)) throw error;
      }
      return foldTail(handle, new LogState(identity, await startFromHeader(handle, identity, head)), stamp);
    });
  }

  /**
   * Takes over what the task finds, or what it finds wrong with the file, so that the file is not read again until it
   * changes. Until then what was known before stays, for those who are reading.
   */
  async #judge(handle: ByteSource, stamp: FileStamp, task: () => Promise<LogState>): Promise<void> {
    let state: LogState | null = null;
    let problem: SessionError | null = null;
    let salvaged: SalvagedLog | null = null;
    try {
      state = await task();
    } catch (error) {
      if (!(error instanceof SessionError)) throw error;
      problem = error;
      if (this.#salvages && error instanceof SessionDamagedError)
        salvaged = await salvage(handle, this.places.log, stamp).catch(() => null);
    }
    if (this.#state?.identity !== state?.identity) this.#marks = new ReadMarks();
    this.#state = state;
    this.#problem = problem;
    this.#salvaged = salvaged;
    this.#stamp = stamp;
  }

  #throwProblem(): void {
    if (this.problem !== null) throw this.problem;
  }

  #forget(): void {
    this.#state = null;
    this.#salvaged = null;
    this.#stamp = null;
    this.#problem = null;
  }
}

/** The time that a file system gives, as entries write it. */
export function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

/** How a file looks. */
export function stampOf({ ino, size, mtimeMs }: Pick<Stats, "ino" | "size" | "mtimeMs">): FileStamp {
  return { ino, size, mtimeMs };
}

function isSame(stamp: FileStamp | null, { ino, size, mtimeMs }: FileStamp): boolean {
  return stamp !== null && stamp.size === size && stamp.mtimeMs === mtimeMs && stamp.ino === ino;
}

/** Reads and folds what the file has more. */
async function foldTail(handle: ByteSource, state: LogState, stamp: FileStamp): Promise<LogState> {
  for await (const lines of readLines(handle, state.size, stamp.size)) await state.fold(lines);
  state.touch(timeOf(stamp.mtimeMs));
  return state;
}

/** Whether the log still ends, where it ended, in the bytes that it ended in. */
async function isUnchanged(handle: ByteSource, { size, tail }: LogState): Promise<boolean> {
  return tail.equals(await readChunk(handle, size - tail.length, tail.length));
}

async function startFromHeader(handle: ByteSource, { headerEnd }: LogIdentity, head: SessionHead): Promise<LogStart> {
  const at = Math.max(0, headerEnd - CHECK_BYTES);
  return {
    head,
    end: { seq: 0, offset: headerEnd },
    lines: 1,
    settings: [],
    tail: await readChunk(handle, at, headerEnd - at),
    index: INDEX_TO_REPLACE,
  };
}

/** Where the index lets a fold begin; null when it is missing, or not of this file as it is now. */
async function startFromIndex(
  handle: ByteSource,
  identity: LogIdentity,
  { header }: SessionHead,
  stamp: FileStamp,
): Promise<LogStart | null> {
  const last = await readLastBlock(identity.places.index);
  if (last === null) return null;
  const { block, end, size, rest } = last;
  if (block.headerCheck !== identity.headerCheck || block.stamp.ino !== stamp.ino || block.end.offset > stamp.size)
    return null;
  // A file that was left at this size and has another time, or is shorter, was changed in place, wherever.
  if (stamp.size < rest.size || (stamp.size === rest.size && !isSame(rest, stamp))) return null;
  const at = Math.max(0, block.end.offset - CHECK_BYTES);
  const tail = await readChunk(handle, at, block.end.offset - at);
  if (checksum(tail) !== block.check || tail.at(-1) !== 10) return null;
  return {
    head: headOf(block, header, timeOf(stamp.mtimeMs)),
    end: block.end,
    lines: block.lines,
    settings: block.settings ?? [],
    tail,
    index: { at: end, size },
  };
}

/** For a call that fails because a file is missing: null. */
export function missingAsNull(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
  throw error;
}
