import { checkArgument, checkStoreArgument, isObject, isStream } from "../../session/check-arguments.ts";
import { open } from "node:fs/promises";
import { SessionError, show } from "../../session/errors.ts";
import type { ForeignFormat } from "./foreign-format.ts";
import type { ReadReport } from "./foreign-report.ts";
import { ForeignIntake } from "./read-foreign.ts";
import { type EntryCount, type ImportTarget, StoredLog } from "./stored-log.ts";

/** What became of one session of a file. */
export interface ImportedSession {
  readonly sessionId: string;
  /** Made, added to, as it was, or deleted here and left so. */
  readonly outcome: StoredLog["outcome"];
  /** How many entries it got. */
  readonly added: number;
}

/** What became of one file. */
export interface ImportedFile {
  readonly path: string | null;
  readonly sessions: readonly ImportedSession[];
  readonly report: ReadReport;
}

/** How much of a file is read before what it said is stored; a shorter one is stored when it has ended, in one step. */
const STORED_BYTES = 32 * 1024 * 1024;

const PIECE_BYTES = 1024 * 1024;

/**
 * A foreign file on its way into a store: bytes go in as they come, sessions come out as they become whole.
 *
 * - Each session of a file of up to 32 MiB is made in one step. Whoever ends the program in between leaves sessions that are
 *   whole, and none that is not.
 * - A longer file is stored in parts, which bounds the memory. If the program is ended, the next import adds what is missing.
 * - After an error, none of the sessions that this import made is there any more, those of sub-agents in the file included.
 */
export class FileImport {
  readonly #target: ImportTarget;
  readonly #format: ForeignFormat;
  readonly #path: string | null;
  readonly #intake: ForeignIntake;
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
    this.#intake = new ForeignIntake(format, path);
  }

  async take(piece: Uint8Array): Promise<void> {
    this.#intake.take(piece);
    this.#unstored += piece.length;
    if (this.#unstored >= STORED_BYTES) await this.store();
  }

  /** Takes back the sessions that this import has made; for an import that cannot be brought to its end. */
  async undo(): Promise<void> {
    for (const log of this.#logs) await log.undo();
  }

  /** Stores what is whole. */
  async store(): Promise<void> {
    this.#unstored = 0;
    for (const log of this.#intake.logs.slice(this.#logs.length))
      this.#logs.push(new StoredLog(this.#target, this.#format.name, log, this.#counted));
    for (const log of this.#logs) await log.store();
  }

  /** The file rests: what was held back is whole where the program has written what ends it. */
  async settle(): Promise<void> {
    this.#intake.settle();
    await this.store();
  }

  /** Whether something went on after the file rested: then all of the file must be imported anew. */
  get reopened(): boolean {
    return this.#intake.reopened;
  }

  /** The file has ended. */
  async end(): Promise<void> {
    this.#intake.end();
    await this.store();
  }

  get result(): ImportedFile {
    const sessions = this.#logs.map(({ sessionId, outcome, added }) => ({ sessionId, outcome, added }));
    return { path: this.#path, sessions, report: this.#intake.report };
  }
}

/** Imports one foreign session from the bytes of its file. */
export async function importForeign(
  target: ImportTarget,
  format: ForeignFormat,
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  path: string | null = null,
): Promise<ImportedFile> {
  checkArgument(isStream(source), source, "importForeign", "the bytes of a file, in pieces");
  const file = new FileImport(target, format, path);
  try {
    for await (const piece of source) await file.take(piece);
    await file.end();
  } catch (error) {
    // What cannot be taken back, as the store is gone, is completed by the next import.
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

/** The bytes of a file from a position on; each piece lies where the one before lay. */
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
