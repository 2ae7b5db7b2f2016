import { checkArgument, checkStoreArgument, isObject, isStream } from "../../session/check-arguments.ts";
import { open } from "node:fs/promises";
import { SessionError, show } from "../../session/errors.ts";
import type { ForeignFormat } from "./foreign-format.ts";
import type { ReadReport } from "./foreign-report.ts";
import { ForeignFileParser } from "./read-foreign.ts";
import { type EntryCount, type ImportTarget, StoredLog } from "./stored-log.ts";

/** The result of importing one session of a file. */
export interface ImportedSession {
  readonly sessionId: string;
  /** `new`: created; `grown`: entries were added; `same`: nothing to add; `deleted`: deleted here before, and not restored. */
  readonly outcome: StoredLog["outcome"];
  /** How many entries were added. */
  readonly added: number;
}

/** The result of importing one file. */
export interface ImportedFile {
  readonly path: string | null;
  readonly sessions: readonly ImportedSession[];
  readonly report: ReadReport;
}

/** How many bytes are read before they are stored. A shorter file is stored in one step at its end. */
const STORED_BYTES = 32 * 1024 * 1024;

const PIECE_BYTES = 1024 * 1024;

/**
 * Imports one foreign file into a store from a stream of bytes.
 *
 * - Each session of a file of up to 32 MiB is created in one atomic step: a crash leaves complete sessions only.
 * - A longer file is stored in parts, which bounds the memory. After a crash, the next import adds what is missing.
 * - `undo` removes all sessions that this import created, those of sub-agents in the file included.
 */
export class FileImport {
  readonly #target: ImportTarget;
  readonly #format: ForeignFormat;
  readonly #path: string | null;
  readonly #parser: ForeignFileParser;
  readonly #logs: StoredLog[] = [];
  readonly #counted: EntryCount = { entries: 0 };
  #unstored = 0;

  constructor(target: ImportTarget, format: ForeignFormat, path: string | null) {
    checkStoreArgument(target?.store, "An import");
    checkArgument(
      isObject(format) && typeof format.read === "function",
      format,
      "An import",
      'a format, such as foreignFormat("pi")',
    );
    this.#target = target;
    this.#format = format;
    this.#path = path;
    this.#parser = new ForeignFileParser(format, path);
  }

  async write(piece: Uint8Array): Promise<void> {
    this.#parser.write(piece);
    this.#unstored += piece.length;
    if (this.#unstored >= STORED_BYTES) await this.store();
  }

  /** Removes the sessions that this import created; for an import that failed. */
  async undo(): Promise<void> {
    for (const log of this.#logs) await log.undo();
  }

  /** Stores the entries that are complete. */
  async store(): Promise<void> {
    this.#unstored = 0;
    for (const log of this.#parser.logs.slice(this.#logs.length))
      this.#logs.push(new StoredLog(this.#target, this.#format.name, log, this.#counted));
    for (const log of this.#logs) await log.store();
  }

  /** Called when the file has been idle: also stores buffered entries that the program has finished. */
  async flush(): Promise<void> {
    this.#parser.flush();
    await this.store();
  }

  /** True if an entry continued after `flush` had stored it. The whole file must then be imported again. */
  get reopened(): boolean {
    return this.#parser.reopened;
  }

  /** Called at the end of the file: stores all entries, finished or not. */
  async end(): Promise<void> {
    this.#parser.end();
    await this.store();
  }

  get result(): ImportedFile {
    const sessions = this.#logs.map(({ sessionId, outcome, added }) => ({ sessionId, outcome, added }));
    return { path: this.#path, sessions, report: this.#parser.report };
  }
}

/** Imports the sessions of one foreign file from its bytes. After an error, the sessions that it created are removed. */
export async function importForeign(
  target: ImportTarget,
  format: ForeignFormat,
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  path: string | null = null,
): Promise<ImportedFile> {
  checkArgument(isStream(source), source, "importForeign", "the bytes of a file, in pieces");
  const file = new FileImport(target, format, path);
  try {
    for await (const piece of source) await file.write(piece);
    await file.end();
  } catch (error) {
    // If undo fails because the store is unreachable, the next import completes the sessions.
    await file.undo().catch(() => {});
    throw error;
  }
  return file.result;
}

/** Imports one foreign file. */
export async function importForeignFile(
  target: ImportTarget,
  format: ForeignFormat,
  path: string,
): Promise<ImportedFile> {
  return importForeign(target, format, readPieces(path), path);
}

/** Reads a file from a position on. All pieces share one buffer: each overwrites the one before. */
export async function* readPieces(path: string, position = 0): AsyncGenerator<Uint8Array, void, undefined> {
  const buffer = Buffer.allocUnsafe(PIECE_BYTES);
  await using file = await open(path, "r").catch((cause: unknown) => unreadable(path, cause));
  for (let at = position; ; ) {
    const { bytesRead } = await file
      .read(buffer, 0, PIECE_BYTES, at)
      .catch((cause: unknown) => unreadable(path, cause));
    if (bytesRead === 0) return;
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

function unreadable(path: string, cause: unknown): never {
  const message = `${show(path)} cannot be read: ${(cause as Error).message}`;
  throw new SessionError("INVALID_OPTION", message, { cause });
}
