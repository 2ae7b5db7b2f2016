import { checkArgument, checkKeys, checkStoreArgument, isObject, type KeysOf } from "../../session/check-arguments.ts";
import { stat } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import type { ForeignFormat } from "./foreign-format.ts";
import { FileImport, type ImportedFile, readPieces } from "./import-file.ts";
import { type SessionFile, sessionFiles } from "./session-files.ts";
import type { ImportTarget } from "./stored-log.ts";

/** Options of `followFiles`. */
export interface FollowFilesOptions {
  /** How long a file must not change before its last answer, if finished, is imported (default 3 s). */
  readonly idleMs?: number;
  /** The interval between two checks of the files (default 1 s). */
  readonly pollMs?: number;
  readonly signal: AbortSignal;
  /** Called when entries of a file were imported. */
  readonly onImported?: (file: ImportedFile, format: ForeignFormat) => void;
  /** Called when a file cannot be read or stored. The file is read again when it changes. */
  readonly onFailure?: (error: unknown, path: string) => void;
}

const KEYS: KeysOf<FollowFilesOptions> = {
  idleMs: true,
  pollMs: true,
  signal: true,
  onImported: true,
  onFailure: true,
};

/** A file or directory that `followFiles` follows. */
export interface FollowedPath {
  readonly format: ForeignFormat;
  /** A file or a directory (default: where the program keeps its sessions). */
  readonly path?: string;
}

/** New files are searched for in every third poll only: a search costs more than checking the known files. */
const POLLS_PER_SEARCH = 3;
/** A file that has not changed for so long is closed and no longer polled. */
const CLOSE_AFTER_MS = 10 * 60 * 1000;

/**
 * Imports files as they grow, until the signal aborts: files that change from now on, and new ones.
 *
 * - A line is read once its newline is written. The last answer is buffered until the program has finished it: until its stop
 *   reason, the next answer or the next user message is written. After ten minutes without a change it is imported unfinished.
 * - If an answer continues after it was imported, the complete answer replaces it.
 * - A file that was replaced, became shorter, or was changed in the part already read is read again from its beginning;
 *   entries that are stored already are not added again.
 */
export async function followFiles(
  target: ImportTarget,
  paths: readonly FollowedPath[],
  options: FollowFilesOptions,
): Promise<void> {
  checkStoreArgument(target?.store, "followFiles");
  checkArgument(Array.isArray(paths), paths, "followFiles", "a list of paths");
  checkArgument(
    isObject(options) && options.signal instanceof AbortSignal,
    options,
    "followFiles",
    "options with a signal that ends it",
  );
  checkKeys(options, KEYS, "followFiles");
  const { pollMs = 1000, signal } = options;
  const follower = new FileFollower(target, paths, options, Date.now());
  while (!signal.aborted) {
    await follower.poll(Date.now());
    await pause(pollMs, undefined, { signal }).catch(() => {});
  }
}

/** Polls the followed files; each `poll` is one pass over all of them. */
export class FileFollower {
  readonly #target: ImportTarget;
  readonly #paths: readonly FollowedPath[];
  readonly #options: FollowFilesOptions;
  readonly #since: number;
  readonly #followed = new Map<string, FollowedFile>();
  /** The modification times of closed files: a closed file is polled again once its time differs. */
  readonly #closed = new Map<string, number>();
  #polls = 0;

  constructor(target: ImportTarget, paths: readonly FollowedPath[], options: FollowFilesOptions, startedAtMs: number) {
    this.#target = target;
    this.#paths = paths;
    this.#options = options;
    this.#since = startedAtMs - CLOSE_AFTER_MS;
  }

  /** Checks each file once and imports what is new. `nowMs` is compared with the time of a file's last change. */
  async poll(nowMs: number): Promise<void> {
    const { idleMs = 3000, signal, onImported, onFailure } = this.#options;
    if (this.#polls++ % POLLS_PER_SEARCH === 0) await this.#findFiles(nowMs);
    for (const [path, file] of this.#followed) {
      if (signal.aborted) return;
      try {
        if (await file.poll(nowMs, idleMs)) onImported?.(file.result, file.format);
      } catch (error) {
        onFailure?.(error, path);
        file.restart();
      }
      if (!file.isStale) continue;
      this.#followed.delete(path);
      this.#closed.set(path, file.mtimeMs);
    }
  }

  async #findFiles(nowMs: number): Promise<void> {
    for (const { format, path, mtimeMs } of await filesOf(this.#paths, this.#since)) {
      if (this.#followed.has(path) || this.#closed.get(path) === mtimeMs) continue;
      this.#followed.set(path, new FollowedFile(this.#target, format, path, nowMs));
    }
  }
}

async function filesOf(paths: readonly FollowedPath[], since: number) {
  const found: (SessionFile & { readonly format: ForeignFormat })[] = [];
  for (const { format, path } of paths) {
    // A program that has not been used yet has no directory.
    const files = await sessionFiles(format, path ?? format.home(), since).catch(() => []);
    for (const file of files) found.push({ ...file, format });
  }
  return found;
}

/** How many bytes before the read position are compared with the file, to detect that it was rewritten. */
const TAIL_BYTES = 256;

/** One followed file and how far it has been read. */
class FollowedFile {
  readonly format: ForeignFormat;
  readonly #target: ImportTarget;
  readonly #path: string;
  #import: FileImport;
  /** The file's modification time at the last poll. */
  mtimeMs = 0;
  #inode = 0;
  #position = 0;
  /** The last bytes before the position. */
  #tail: Uint8Array = new Uint8Array();
  #changedAtMs: number;
  #idle = false;
  #stale = false;

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

  /** True once the file has not changed for `CLOSE_AFTER_MS`. */
  get isStale(): boolean {
    return this.#stale;
  }

  /** Makes the next poll read the file from its beginning. */
  restart(): void {
    this.#import = new FileImport(this.#target, this.format, this.#path);
    this.#position = 0;
    this.#tail = new Uint8Array();
    this.mtimeMs = 0;
  }

  /** Reads and imports what is new. Returns true if entries were added. */
  async poll(nowMs: number, idleMs: number): Promise<boolean> {
    const [begun, before] = [this.#import, this.#added()];
    const found = await stat(this.#path).catch(() => null);
    const changed = found !== null && (found.mtimeMs !== this.mtimeMs || found.size !== this.#position);
    if (changed) {
      const replaced = found.ino !== this.#inode || found.size < this.#position || this.format.unit === "document";
      if (replaced && this.#position > 0) this.restart();
      this.#inode = found.ino;
      if (await this.#read()) {
        this.#changedAtMs = nowMs;
        this.#idle = false;
      }
      this.mtimeMs = found.mtimeMs;
      await this.#import.store();
    } else if (!this.#idle && nowMs - this.#changedAtMs >= idleMs) {
      this.#idle = true;
      await (this.format.unit === "document" ? this.#import.end() : this.#import.flush());
    } else if (this.#idle && nowMs - this.#changedAtMs > CLOSE_AFTER_MS) {
      this.#stale = true;
      await this.#import.end();
    }
    return this.#added() > (this.#import === begun ? before : 0);
  }

  #added(): number {
    return this.#import.result.sessions.reduce((sum, { added }) => sum + added, 0);
  }

  /** Reads the new bytes, or the whole file if it does not continue what was read. Returns true if there were any. */
  async #read(): Promise<boolean> {
    const position = this.#position;
    if ((await this.#readNext()) && !this.#import.reopened) return this.#position > position;
    this.restart();
    await this.#readNext();
    return true;
  }

  /** Reads from the last position on. Returns false if the bytes before that position have changed. */
  async #readNext(): Promise<boolean> {
    const seen = this.#tail;
    let unseen = seen.length === 0;
    for await (const piece of readPieces(this.#path, this.#position - seen.length)) {
      if (!unseen && Buffer.compare(piece.subarray(0, seen.length), seen) !== 0) return false;
      const fresh = unseen ? piece : piece.subarray(seen.length);
      unseen = true;
      this.#position += fresh.length;
      this.#tail = Buffer.concat([this.#tail, fresh.subarray(-TAIL_BYTES)]).subarray(-TAIL_BYTES);
      await this.#import.write(fresh);
    }
    return unseen;
  }
}
