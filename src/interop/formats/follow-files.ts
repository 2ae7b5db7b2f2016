import { stat } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import type { ForeignFormat } from "./foreign-format.ts";
import { FileImport, type ImportedFile, readPieces } from "./import-file.ts";
import { type SessionFile, sessionFiles } from "./session-files.ts";
import type { ImportTarget } from "./stored-log.ts";

/** How files are followed. */
export interface FollowFilesOptions {
  /** How long a file must rest before an answer that its last line belongs to counts as whole (default 3 s). */
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
 * - A line without its end is not read yet. The last answer is held back until the next line shows that it is whole, or the
 *   file has rested.
 * - A file that is shorter than before was written anew, and is read from its beginning; what is there is not added again.
 */
export async function followFiles(
  target: ImportTarget,
  places: readonly FollowedPlace[],
  options: FollowFilesOptions,
): Promise<void> {
  const { restMs = 3000, pollMs = 1000, signal } = options;
  const started = Date.now();
  const followed = new Map<string, FollowedFile>();
  /** When each file had last changed that nothing is expected of any more. */
  const forgotten = new Map<string, number>();
  for (let round = 0; !signal.aborted; round++) {
    if (round % ROUNDS_FOR_NEW_FILES === 0) {
      for (const { format, path, mtimeMs } of await filesOf(places, started - FORGET_MS)) {
        if (!followed.has(path) && forgotten.get(path) !== mtimeMs)
          followed.set(path, new FollowedFile(target, format, path));
      }
    }
    for (const [path, file] of followed) {
      if (signal.aborted) break;
      try {
        if (await file.look(restMs)) options.onImported?.(file.result, file.format);
      } catch (error) {
        options.onFailure?.(error, path);
        file.begin();
      }
      if (!file.isOld) continue;
      followed.delete(path);
      forgotten.set(path, file.mtimeMs);
    }
    await pause(pollMs, undefined, { signal }).catch(() => {});
  }
}

async function filesOf(places: readonly FollowedPlace[], since: number) {
  const found: (SessionFile & { readonly format: ForeignFormat })[] = [];
  for (const { format, path } of places) {
    // A program that has not been used yet has no directory.
    const files = await sessionFiles(format, path ?? format.home(), since).catch(() => []);
    found.push(...files.map((file) => ({ ...file, format })));
  }
  return found;
}

/** One file that grows. */
class FollowedFile {
  readonly format: ForeignFormat;
  readonly #target: ImportTarget;
  readonly #path: string;
  #import: FileImport;
  /** When the file was last changed. */
  mtimeMs = 0;
  #position = 0;
  #changedAt = Date.now();
  #rested = false;

  constructor(target: ImportTarget, format: ForeignFormat, path: string) {
    this.format = format;
    this.#target = target;
    this.#path = path;
    this.#import = new FileImport(target, format, path);
  }

  get result(): ImportedFile {
    return this.#import.result;
  }

  get isOld(): boolean {
    return this.#rested && Date.now() - this.#changedAt > FORGET_MS;
  }

  /** Reads the file from its beginning the next time. */
  begin(): void {
    this.#import = new FileImport(this.#target, this.format, this.#path);
    this.#position = 0;
  }

  /** Reads what is new; whether something became of it. */
  async look(restMs: number): Promise<boolean> {
    const before = this.#added();
    const found = await stat(this.#path).catch(() => null);
    const size = found?.size ?? this.#position;
    this.mtimeMs = found?.mtimeMs ?? this.mtimeMs;
    if (size < this.#position || (this.format.unit === "document" && size !== this.#position)) this.begin();
    if (size > this.#position) {
      await this.#read();
      this.#changedAt = Date.now();
      this.#rested = false;
      await this.#import.store();
    } else if (!this.#rested && Date.now() - this.#changedAt >= restMs) {
      this.#rested = true;
      await (this.format.unit === "document" ? this.#import.end() : this.#import.rest());
    }
    return this.#added() !== before;
  }

  #added(): number {
    return this.#import.result.sessions.reduce((sum, { added }) => sum + added, 0);
  }

  async #read(): Promise<void> {
    for await (const piece of readPieces(this.#path, this.#position)) {
      this.#position += piece.length;
      await this.#import.take(piece);
    }
  }
}
