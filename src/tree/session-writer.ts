import { checkOptionsOf, type KeysOf } from "../session/check-arguments.ts";
import { createHeader, type SessionHeader } from "../session/log/header.ts";
import type { SessionHead } from "../session/log/fold.ts";
import { checkIsSession, type Session } from "../session/value/session.ts";
import { type RowInit, rowOf } from "../session/value/transcript.ts";
import { RunFile } from "./run-file.ts";

/** How a session's file is written. */
export interface SessionWriterOptions {
  /** The file's final name (default: one made of the time and the session's id, in the directory). */
  readonly path?: string;
  /** Where the file is when no path says so (default: `defaultSessionDirectory()`). */
  readonly directory?: string;
  /** What to record as the sandbox's handle instead of its own. */
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
 * Writes the rows of one session to a file, each durable before the next.
 *
 * - In flight the file is `partialPath`; `close` writes the trailer and renames it to `path`.
 * - A writer that is disposed of without `close`, or whose process dies, leaves the partial file, without a trailer.
 * - Opening another writer for the same session or path goes on with the file that is there.
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

  /** The same as `openSessionWriter`. */
  static async open(session: Session, options: SessionWriterOptions = {}): Promise<SessionWriter> {
    checkIsSession(session, "openSessionWriter");
    checkOptionsOf(options, WRITER_KEYS, "openSessionWriter");
    const { sandboxHandleId, ...where } = options;
    const file = await RunFile.open({ ...where, header: headerOf(session, sandboxHandleId), entries: [] });
    try {
      return new SessionWriter(file, await file.head());
    } catch (error) {
      await file.leave();
      throw error;
    }
  }

  /** The file's name after `close`. */
  get path(): string {
    return this.#file.path;
  }

  /** The file's name until then. */
  get partialPath(): string {
    return this.#file.partialPath;
  }

  /** How many rows the file holds. */
  get rowsWritten(): number {
    return this.#rowsWritten;
  }

  /** Resolves once the row is durable. A row that the file holds already is not written again. */
  async writeRow(row: RowInit): Promise<void> {
    const { id, message } = rowOf(row);
    const { entries, version } = await this.#file.append([{ type: "message", id, message }], { below: this.#last.id });
    if ((entries[0]?.seq ?? 0) < this.#last.version) return;
    this.#last = { id, version };
    this.#rowsWritten += 1;
  }

  /** Writes the trailer and gives the file its final name; safe to call twice. */
  close(): Promise<void> {
    this.#closing ??= this.#file.finish().catch((error: unknown) => {
      this.#closing = null;
      throw error;
    });
    return this.#closing;
  }

  /** Lets go of the file as it is, for another writer to go on with; does nothing after `close`. */
  async abandon(): Promise<void> {
    await this.#closing?.catch(() => {});
    await this.#file.leave();
  }

  /** Abandons the file, unless it was closed. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.abandon();
  }
}

/**
 * Opens the file of one session for writing; a new one holds the header at once, and no rows.
 *
 * @throws {SessionBusyError} while another writer has the file.
 * @throws {SessionError} `SESSION_EXISTS` when the path holds another session.
 */
export function openSessionWriter(session: Session, options: SessionWriterOptions = {}): Promise<SessionWriter> {
  return SessionWriter.open(session, options);
}

/** The header of a session value's log; what the log builds on may have an owner and a project. */
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
