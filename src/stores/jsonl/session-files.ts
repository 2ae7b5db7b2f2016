import { join } from "node:path";
import { SessionError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { matchesQuery, pageOfHeads } from "../../session/query.ts";
import type { ListPosition } from "../../session/store-driver.ts";
import type { DamagedSession, SessionPage, SessionQuery } from "../../session/store.ts";
import { readLease } from "./file-leases.ts";
import { LockedTurns } from "./locked-turns.ts";
import type { FileOptions, LogFile } from "./log-file.ts";
import { INDEX_FOLDER, TRASH_FOLDER } from "./places.ts";
import { SessionDirectory } from "./session-directory.ts";

/** How a directory of session files is kept. */
export interface SessionFilesOptions extends FileOptions {
  /** An absolute path. */
  readonly directory: string;
  readonly readOnly: boolean;
}

/** What the parts of a store of files share: the directory, its trash and its lock. */
export class SessionFiles {
  readonly options: SessionFilesOptions;
  readonly live: SessionDirectory;
  readonly trash: SessionDirectory;
  /** Lets one caller at a time, of all processes, change which sessions the directory has. */
  readonly lock: LockedTurns;

  constructor(options: SessionFilesOptions) {
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

  /** Changes which sessions there are, or what is kept beside them, while no other process does. */
  async change<T>(task: () => Promise<T>): Promise<T> {
    this.checkWritable();
    return this.lock.run(task);
  }

  /** Forgets a file that was moved away, and lets go of its lock. */
  async forget(file: LogFile): Promise<void> {
    this.live.forget(file);
    this.trash.changed();
    await file.close();
  }

  /** One page of the sessions that a query asks for. Files that cannot be read are on the first page. */
  async list(query: SessionQuery, limit: number, after: ListPosition | null): Promise<Omit<SessionPage, "next">> {
    const { heads, damaged } = await this.find(query);
    // Of a file that cannot be read nobody knows whose it is, so it is not shown to one user among many.
    const shown = after === null && query.userId === undefined ? damaged : [];
    return { items: pageOfHeads(heads, limit, after), damaged: shown };
  }

  /** All the sessions that a query asks for, and the files that cannot be read. */
  async find(query: SessionQuery): Promise<{ heads: SessionHead[]; damaged: DamagedSession[] }> {
    const listed = await (query.deleted === true ? this.trash : this.live).list();
    const running = query.runs === "running";
    // Who has a session is asked below, and only of those that are left.
    const asked = { ...query, isHeld: () => running };
    const asksHolder = running || query.runs === "interrupted";
    const heads = listed.flatMap(({ head, file }) => {
      if (head === null || !matchesQuery(head, asked)) return [];
      const held = asksHolder && readLease(file.places.lease, head.header.id, this.now()) !== null;
      return held === running ? [head] : [];
    });
    return { heads, damaged: listed.flatMap(({ damaged }) => damaged ?? []) };
  }

  async close(): Promise<void> {
    await this.live.close();
    await this.lock.close();
  }
}
