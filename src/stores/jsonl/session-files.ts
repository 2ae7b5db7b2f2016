import { join } from "node:path";
import { SessionError, SessionNotFoundError } from "../../session/errors.ts";
import { DirectoryLock } from "./directory-lock.ts";
import { readToken } from "./lease-file.ts";
import type { LogFile } from "./log-file.ts";
import type { WriteOptions } from "./log-appender.ts";
import { LogWriter } from "./log-writer.ts";
import { TRASH_FOLDER } from "./places.ts";
import { SessionDirectory } from "./session-directory.ts";

/** How a directory of session files is kept. */
export interface SessionFilesOptions extends WriteOptions {
  /** An absolute path. */
  readonly directory: string;
  readonly readOnly: boolean;
  readonly salvage: boolean;
}

/** What the parts of a store of files share: the directory, its trash, its lock, and who writes to which file. */
export class SessionFiles {
  readonly options: SessionFilesOptions;
  readonly live: SessionDirectory;
  readonly trash: SessionDirectory;
  readonly lock: DirectoryLock;
  readonly #writers = new Map<LogFile, LogWriter>();

  constructor(options: SessionFilesOptions) {
    this.options = options;
    this.live = new SessionDirectory(options.directory, options);
    this.trash = new SessionDirectory(join(options.directory, TRASH_FOLDER), options);
    this.lock = new DirectoryLock(options.directory, options);
  }

  /** The store's clock. */
  now(): Date {
    return this.options.clock();
  }

  /** @throws {SessionError} `READ_ONLY` when the store is not to write. */
  checkWritable(): void {
    const { readOnly, salvage, directory } = this.options;
    if (!readOnly && !salvage) return;
    const how = readOnly ? "readOnly" : "salvage";
    throw new SessionError(
      "READ_ONLY",
      `The sessions in ${directory} were opened with ${how}; open them without it to write.`,
    );
  }

  /** The file of a session, and who writes to it. @throws {SessionNotFoundError} */
  async writerOf(sessionId: string): Promise<LogWriter> {
    const file = await this.live.find(sessionId);
    if (file === null) throw new SessionNotFoundError(sessionId);
    return this.writerTo(file);
  }

  writerTo(file: LogFile): LogWriter {
    const known = this.#writers.get(file);
    if (known !== undefined) return known;
    const sessionId = file.head.header.id;
    const leaseToken = (): Promise<number | null> => readToken(file.places.lease, this.now());
    const writer = new LogWriter(file, sessionId, this.options, leaseToken);
    this.#writers.set(file, writer);
    return writer;
  }

  /** Forgets a file that was moved away, and lets go of its lock. */
  async forget(file: LogFile): Promise<void> {
    const writer = this.#writers.get(file);
    this.live.forget(file);
    this.trash.changed();
    await writer?.close();
    this.#writers.delete(file);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#writers.values()].map((writer) => writer.close()));
    await this.lock.close();
  }
}
