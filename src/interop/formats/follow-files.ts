import { checkArgument, checkStoreArgument, isObject } from "../../session/check-arguments.ts";
import { stat } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import type { ForeignFormat } from "./foreign-format.ts";
import { FileImport, type ImportedFile, readPieces } from "./import-file.ts";
import { type SessionFile, sessionFiles } from "./session-files.ts";
import type { ImportTarget } from "./stored-log.ts";

/** How files are followed. */
export interface FollowFilesOptions {
  /** How long a file must rest before its last answer is taken in, where the program has ended that (default 3 s). */
  readonly restMs?: number;
  /** How often the files are looked at (default 1 s). */
  readonly pollMs?: number;
  readonly signal: AbortSignal;
  /** Told of every file that became something. */
  readonly onImported?: (file: ImportedFile, format: ForeignFormat) => void;
  /** Told of what cannot be read or stored; the file is tried again when it changes. */
  readonly onFailure?: (error: unknown, path: string) => void;
}

/** A directory whose files are followed. */
export interface FollowedPlace {
  readonly format: ForeignFormat;
  /** A file or a directory (default: where the program keeps its sessions). */
  readonly path?: string;
}

/** Looking for new files takes longer than looking at those that are known. */
const ROUNDS_FOR_NEW_FILES = 3;
/** How long more is expected of a file after it was last read. */
const FORGET_MS = 10 * 60 * 1000;

/**
 * Imports files as they grow, until the signal aborts: those that change from now on, and new ones.
 *
 * - A line without its end is not read yet. The last answer is held back until the program has written what ends it: its stop
 *   reason, the next answer, or what the user says next. A file that has not changed for ten minutes is taken as it is.
 * - What goes on all the same is completed: the whole answer takes the place of the one that was read too early.
 * - A file that was replaced, became shorter or was changed in what was read of it is read from its beginning; what is there
 *   is not added again.
 */
export async function followFiles(
  target: ImportTarget,
  places: readonly FollowedPlace[],
  options: FollowFilesOptions,
): Promise<void> {
  checkStoreArgument(target?.store, "followFiles");
  checkArgument(Array.isArray(places), places, "followFiles", "a list of places");
  checkArgument(
    isObject(options) && options.signal instanceof AbortSignal,
    options,
    "followFiles",
    "options with a signal that ends it",
  );
  const { pollMs = 1000, signal } = options;
  const follower = new FileFollower(target, places, options, Date.now());
  while (!signal.aborted) {
    await follower.step(Date.now());
    await pause(pollMs, undefined, { signal }).catch(() => {});
  }
}

/** Files that are followed, a step at a time. */
export class FileFollower {
  readonly #target: ImportTarget;
  readonly #places: readonly FollowedPlace[];
  readonly #options: FollowFilesOptions;
  readonly #since: number;
  readonly #followed = new Map<string, FollowedFile>();
  /** When each file had last changed that nothing is expected of any more. */
  readonly #forgotten = new Map<string, number>();
  #steps = 0;

  constructor(
    target: ImportTarget,
    places: readonly FollowedPlace[],
    options: FollowFilesOptions,
    startedAtMs: number,
  ) {
    this.#target = target;
    this.#places = places;
    this.#options = options;
    this.#since = startedAtMs - FORGET_MS;
  }

  /** Looks at the files once, and imports what is new in them; `nowMs` is the time by which they rest. */
  async step(nowMs: number): Promise<void> {
    const { restMs = 3000, signal, onImported, onFailure } = this.#options;
    if (this.#steps++ % ROUNDS_FOR_NEW_FILES === 0) await this.#findFiles(nowMs);
    for (const [path, file] of this.#followed) {
      if (signal.aborted) return;
      try {
        if (await file.look(nowMs, restMs)) onImported?.(file.result, file.format);
      } catch (error) {
        onFailure?.(error, path);
        file.begin();
      }
      if (!file.isOld) continue;
      this.#followed.delete(path);
      this.#forgotten.set(path, file.mtimeMs);
    }
  }

  async #findFiles(nowMs: number): Promise<void> {
    for (const { format, path, mtimeMs } of await filesOf(this.#places, this.#since)) {
      if (this.#followed.has(path) || this.#forgotten.get(path) === mtimeMs) continue;
      this.#followed.set(path, new FollowedFile(this.#target, format, path, nowMs));
    }
  }
}

async function filesOf(places: readonly FollowedPlace[], since: number) {
  const found: (SessionFile & { readonly format: ForeignFormat })[] = [];
  for (const { format, path } of places) {
    // A program that has not been used yet has no directory.
    const files = await sessionFiles(format, path ?? format.home(), since).catch(() => []);
    for (const file of files) found.push({ ...file, format });
  }
  return found;
}

/** How much of what was read last is compared with the file before more of it is read. */
const TAIL_BYTES = 256;

/** One file that grows. */
class FollowedFile {
  readonly format: ForeignFormat;
  readonly #target: ImportTarget;
  readonly #path: string;
  #import: FileImport;
  /** When the file was last changed. */
  mtimeMs = 0;
  #inode = 0;
  #position = 0;
  /** The last bytes before the position. */
  #tail: Uint8Array = new Uint8Array();
  #changedAtMs: number;
  #rested = false;
  #old = false;

  constructor(target: ImportTarget, format: ForeignFormat, path: string, nowMs: number) {
    this.format = format;
    this.#target = target;
    this.#path = path;
    this.#changedAtMs = nowMs;
    this.#import = new FileImport(target, format, path);
  }

  get result(): ImportedFile {
    return this.#import.result;
  }

  /** Whether it has not changed for so long that nothing is expected of it. */
  get isOld(): boolean {
    return this.#old;
  }

  /** Reads the file from its beginning the next time. */
  begin(): void {
    this.#import = new FileImport(this.#target, this.format, this.#path);
    this.#position = 0;
    this.#tail = new Uint8Array();
    this.mtimeMs = 0;
  }

  /** Reads what is new; whether something became of it. */
  async look(nowMs: number, restMs: number): Promise<boolean> {
    const [begun, before] = [this.#import, this.#added()];
    const found = await stat(this.#path).catch(() => null);
    const changed = found !== null && (found.mtimeMs !== this.mtimeMs || found.size !== this.#position);
    if (changed) {
      const replaced = found.ino !== this.#inode || found.size < this.#position || this.format.unit === "document";
      if (replaced && this.#position > 0) this.begin();
      this.#inode = found.ino;
      if (await this.#read()) {
        this.#changedAtMs = nowMs;
        this.#rested = false;
      }
      this.mtimeMs = found.mtimeMs;
      await this.#import.store();
    } else if (!this.#rested && nowMs - this.#changedAtMs >= restMs) {
      this.#rested = true;
      await (this.format.unit === "document" ? this.#import.end() : this.#import.settle());
    } else if (this.#rested && nowMs - this.#changedAtMs > FORGET_MS) {
      this.#old = true;
      await this.#import.end();
    }
    return this.#added() > (this.#import === begun ? before : 0);
  }

  #added(): number {
    return this.#import.result.sessions.reduce((sum, { added }) => sum + added, 0);
  }

  /** Reads what is new, and all of it where that is no continuation; whether there was something. */
  async #read(): Promise<boolean> {
    const position = this.#position;
    if ((await this.#readOn()) && !this.#import.reopened) return this.#position > position;
    this.begin();
    await this.#readOn();
    return true;
  }

  /** False where the file is not what was read of it. */
  async #readOn(): Promise<boolean> {
    const seen = this.#tail;
    let unseen = seen.length === 0;
    for await (const piece of readPieces(this.#path, this.#position - seen.length)) {
      if (!unseen && Buffer.compare(piece.subarray(0, seen.length), seen) !== 0) return false;
      const fresh = unseen ? piece : piece.subarray(seen.length);
      unseen = true;
      this.#position += fresh.length;
      this.#tail = Buffer.concat([this.#tail, fresh.subarray(-TAIL_BYTES)]).subarray(-TAIL_BYTES);
      await this.#import.take(fresh);
    }
    return unseen;
  }
}
