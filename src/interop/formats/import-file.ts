import { open } from "node:fs/promises";
import type { ForeignFormat } from "./foreign-format.ts";
import type { ReadReport } from "./foreign-report.ts";
import { ForeignIntake } from "./read-foreign.ts";
import { type ImportTarget, StoredLog } from "./stored-log.ts";

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

/** How much of a file is read before what it said is stored. */
const STORED_BYTES = 8 * 1024 * 1024;

const PIECE_BYTES = 1024 * 1024;

/** A foreign file on its way into a store: bytes go in as they come, sessions come out as they become whole. */
export class FileImport {
  readonly #target: ImportTarget;
  readonly #format: ForeignFormat;
  readonly #path: string | null;
  readonly #intake: ForeignIntake;
  readonly #logs: StoredLog[] = [];
  #unstored = 0;

  constructor(target: ImportTarget, format: ForeignFormat, path: string | null) {
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

  /** Stores what is whole. */
  async store(): Promise<void> {
    this.#unstored = 0;
    for (const log of this.#intake.logs.slice(this.#logs.length))
      this.#logs.push(new StoredLog(this.#target, this.#format.name, log));
    for (const log of this.#logs) await log.store();
  }

  /** The file rests: also what was held back is whole. */
  async rest(): Promise<void> {
    this.#intake.rest();
    await this.store();
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
  const file = new FileImport(target, format, path);
  for await (const piece of source) await file.take(piece);
  await file.end();
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
  await using file = await open(path, "r");
  for (let at = position; ; ) {
    const { bytesRead } = await file.read(buffer, 0, PIECE_BYTES, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}
