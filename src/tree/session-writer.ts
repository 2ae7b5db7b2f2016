import { checkOptionsOf, type KeysOf } from "../session/check-arguments.ts";
import { createHeader, type SessionHeader } from "../session/log/header.ts";
import type { SessionHead } from "../session/log/fold.ts";
import { checkIsSession, type Session } from "../session/value/session.ts";
import { type RowInit, rowOf } from "../session/value/transcript.ts";
import { RunFile } from "./run-file.ts";

/** Options of `openSessionWriter`. */
export interface SessionWriterOptions {
  /** The final path of the file (default: a name made from the time and the session's id, in the directory). */
  readonly path?: string;
  /** The directory of the file if no path is given (default: `defaultSessionDirectory()`). */
  readonly directory?: string;
  /** The sandbox handle to record, instead of the handle of the session's sandbox. */
  readonly sandboxHandleId?: string;
  /** `"flush"` (default): a row survives the process; `"fsync"`: it survives a power cut too. */
  readonly durability?: "flush" | "fsync";
}

const WRITER_KEYS: KeysOf<SessionWriterOptions> = {
  path: true,
  directory: true,
  sandboxHandleId: true,
  durability: true,
};

/**
 * Writes the rows of one session to a file. Each row is durable before the next one is written.
 *
 * - The file is `partialPath` until `close`, which writes the trailer and renames it to `path`.
 * - A writer that is disposed without `close`, or whose process dies, leaves the partial file without a trailer.
 * - Opening another writer for the same session or path continues the existing file.
 */
export class SessionWriter implements AsyncDisposable {
  readonly #file: RunFile;
  #last: { readonly id: string | null; readonly version: number };
  #rowsWritten: number;
  #closing: Promise<void> | null = null;

  private constructor(file: RunFile, { leafId, version, path }: SessionHead) {
    this.#file = file;
    this.#last = { id: leafId, version };
    this.#rowsWritten = path.turnCount;
  }

  /** Opens a writer; see `openSessionWriter`. */
  static async open(session: Session, options: SessionWriterOptions = {}): Promise<SessionWriter> {
    checkIsSession(session, "openSessionWriter");
    checkOptionsOf(options, WRITER_KEYS, "openSessionWriter");
    const { sandboxHandleId, ...where } = options;
    const file = await RunFile.open({ ...where, header: headerOf(session, sandboxHandleId), entries: [] });
    try {
      return new SessionWriter(file, await file.head());
    } catch (error) {
      await file.release();
      throw error;
    }
  }

  /** The path of the file after `close`. */
  get path(): string {
    return this.#file.path;
  }

  /** The path of the file before `close`. */
  get partialPath(): string {
    return this.#file.partialPath;
  }

  /** How many rows the file holds. */
  get rowsWritten(): number {
    return this.#rowsWritten;
  }

  /** Writes a row, and resolves when it is durable. A row that the file already holds is not written again. */
  async writeRow(row: RowInit): Promise<void> {
    const { id, message } = rowOf(row);
    const { entries, version } = await this.#file.append([{ type: "message", id, message }], { below: this.#last.id });
    if ((entries[0]?.seq ?? 0) < this.#last.version) return;
    this.#last = { id, version };
    this.#rowsWritten += 1;
  }

  /** Writes the trailer and renames the file to its final path. A second call does nothing. */
  close(): Promise<void> {
    this.#closing ??= this.#file.finish().catch((error: unknown) => {
      this.#closing = null;
      throw error;
    });
    return this.#closing;
  }

  /** Closes the file without finishing it, so that another writer can continue it. Does nothing after `close`. */
  async abandon(): Promise<void> {
    await this.#closing?.catch(() => {});
    await this.#file.release();
  }

  /** Calls `abandon`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.abandon();
  }
}

/**
 * Opens the file of one session for writing. A new file holds the header and no rows.
 *
 * @throws {SessionBusyError} while another writer has the file open.
 * @throws {SessionError} `SESSION_EXISTS` if the file holds another session.
 */
export function openSessionWriter(session: Session, options: SessionWriterOptions = {}): Promise<SessionWriter> {
  return SessionWriter.open(session, options);
}

/** The header for the log of a session value. Owner, project and metadata come from the source of the log, if there is one. */
export function headerOf(
  session: Session,
  sandboxHandleId: string | undefined,
  source: Partial<Pick<SessionHeader, "userId" | "cwd" | "metadata">> = {},
): SessionHeader {
  const { id, lineage, sandboxPlacement } = session;
  const handleId = sandboxHandleId ?? sandboxPlacement?.handleId ?? null;
  const { userId = null, cwd = null, metadata = {} } = source;
  const sandbox = sandboxPlacement === null ? null : { ...sandboxPlacement, handleId };
  return createHeader({ id, lineage, sandbox, userId, cwd, metadata });
}
