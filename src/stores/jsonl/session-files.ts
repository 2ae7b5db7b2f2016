import { join } from "node:path";
import { SessionError } from "../../session/errors.ts";
import type { ScannedSessions } from "../complete/scanned-listing.ts";
import { readLease } from "./file-leases.ts";
import type { JsonlSettings } from "./jsonl-store.ts";
import { LockedTurns } from "./locked-turns.ts";
import type { LogFile } from "./log-file.ts";
import { INDEX_FOLDER, TRASH_FOLDER } from "./file-names.ts";
import { SessionDirectory } from "./session-directory.ts";
import { guarded } from "./store-failure.ts";

/** What the parts of a store of files share: the directory, its trash and its lock. */
export class SessionFiles {
  readonly options: JsonlSettings;
  readonly live: SessionDirectory;
  readonly trash: SessionDirectory;
  /** Lets one caller at a time, of all processes, change which sessions the directory has. */
  readonly lock: LockedTurns;
  /** The removal of what killed processes left half made: once is enough, under the lock. */
  tidied: Promise<void> | null = null;
  /** Sessions that are being written, which takes no lock. */
  making: Promise<unknown> = Promise.resolve();

  constructor(options: JsonlSettings) {
    const { directory, lockTimeoutMs } = options;
    this.options = options;
    this.live = new SessionDirectory(directory, options);
    this.trash = new SessionDirectory(join(directory, TRASH_FOLDER), options);
    this.lock = new LockedTurns(join(directory, INDEX_FOLDER, "directory.lock"), {
      lockTimeoutMs,
      busy: ({ pid, host }) =>
        new SessionError(
          "SESSION_BUSY",
          `${directory} is in use by process ${pid} on ${host}; try again when it is done.`,
        ),
    });
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

  /** Changes which sessions there are, or what is kept beside them, while no other process does. */
  change<T>(task: () => Promise<T>): Promise<T> {
    return guarded(() => {
      this.checkWritable();
      return this.lock.run(task);
    });
  }

  /** Forgets a file that was moved away, and lets go of its lock. */
  async forget(file: LogFile): Promise<void> {
    this.live.forget(file);
    this.trash.changed();
    await file.close();
  }

  /** All sessions, live or deleted, and the files that cannot be read. */
  async scan(deleted: boolean): Promise<ScannedSessions> {
    const { files, damaged } = await (deleted ? this.trash : this.live).list();
    const sessions = files.map(({ head, paths }) => ({
      head,
      isHeld: () => readLease(paths.lease, this.options.clock()) !== null,
    }));
    return { sessions, damaged };
  }

  async close(): Promise<void> {
    await this.making;
    await this.live.close();
    await this.lock.close();
  }
}
