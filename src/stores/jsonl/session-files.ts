import { join } from "node:path";
import { SessionError } from "../../session/errors.ts";
import type { ScannedPart, ScannedSessions } from "../complete/scanned-listing.ts";
import { readLease } from "./file-leases.ts";
import type { JsonlSettings } from "./jsonl-store.ts";
import { LockedQueue } from "./locked-queue.ts";
import type { LogFile } from "./log-file.ts";
import { INDEX_FOLDER, TRASH_FOLDER } from "./file-names.ts";
import { SessionDirectory } from "./session-directory.ts";
import { withStoreErrors } from "./store-failure.ts";

/** The directory of a JSONL store, its trash and its lock, which all parts of the store share. */
export class SessionFiles {
  readonly options: JsonlSettings;
  readonly live: SessionDirectory;
  readonly trash: SessionDirectory;
  /** The directory's lock: one caller at a time, among all processes, may add, move or remove sessions. */
  readonly lock: LockedQueue;
  /** Removes the temporary files of killed processes. Runs once, under the lock. */
  cleanup: Promise<void> | null = null;
  /** Settles when all sessions that are being written are done: they are written before the lock is taken. */
  pendingCreates: Promise<unknown> = Promise.resolve();

  constructor(options: JsonlSettings) {
    const { directory, lockTimeoutMs } = options;
    this.options = options;
    this.live = new SessionDirectory(directory, options);
    this.trash = new SessionDirectory(join(directory, TRASH_FOLDER), options);
    this.lock = new LockedQueue(join(directory, INDEX_FOLDER, "directory.lock"), {
      lockTimeoutMs,
      busy: ({ pid, host }) =>
        new SessionError(
          "SESSION_BUSY",
          `${directory} is in use by process ${pid} on ${host}; try again when it is done.`,
        ),
    });
  }

  /** @throws {SessionError} `READ_ONLY` if the store was opened with `readOnly` or `salvage`. */
  checkWritable(): void {
    const { readOnly, salvage, directory } = this.options;
    if (!readOnly && !salvage) return;
    const how = readOnly ? "readOnly" : "salvage";
    throw new SessionError(
      "READ_ONLY",
      `The sessions in ${directory} were opened with ${how}; open them without it to write.`,
    );
  }

  /** Runs a task under the directory's lock. It may add, move or remove sessions and write the files beside them. */
  change<T>(task: () => Promise<T>): Promise<T> {
    return withStoreErrors(() => {
      this.checkWritable();
      return this.lock.run(task);
    });
  }

  /** Forgets a file that was moved, and releases its lock. */
  async forget(file: LogFile): Promise<void> {
    this.live.forget(file);
    this.trash.invalidate();
    await file.close();
  }

  /** All live or all deleted sessions, or only live ones with open runs, and the files that cannot be read. */
  async scan(deleted: boolean, part: ScannedPart = "all"): Promise<ScannedSessions> {
    const isOfRuns = part === "with open runs" && !deleted;
    const { files, damaged } = isOfRuns
      ? { files: await this.live.listOpen(), damaged: [] }
      : await (deleted ? this.trash : this.live).list();
    const sessions = files.map(({ head, paths }) => ({
      head,
      isHeld: () => readLease(paths.lease, this.options.clock()) !== null,
    }));
    return { sessions, damaged };
  }

  async close(): Promise<void> {
    await this.pendingCreates;
    await this.live.close();
    await this.lock.close();
  }
}
