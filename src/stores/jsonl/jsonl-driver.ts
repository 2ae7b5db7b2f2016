import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { basename } from "node:path";
import type { BlobStore } from "../../session/blob.ts";
import type { StoredEntry } from "../../session/log/append-plan.ts";
import type { CheckedDraft } from "../../session/log/draft.ts";
import { type Entry, entryCharacters } from "../../session/log/entry.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import { isOpen } from "../../session/query.ts";
import type { LedgerTable } from "../../session/ledger.ts";
import { NO_SETTINGS, readSettings, type Settings, type SettingsNode } from "../../session/log/settings.ts";
import type {
  CheckpointTable,
  DriverPurge,
  LeaseTable,
  ReadRange,
  SessionListing,
  StoreDriver,
} from "../../session/store-driver.ts";
import type {
  AppendOptions,
  AppendResult,
  ForkOptions,
  StoreCapabilities,
  StoreEraser,
  UndeleteOptions,
} from "../../session/store.ts";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import { nextSlice } from "../../internal/long-work.ts";
import { PagedItems } from "../../internal/paged-items.ts";
import { ScannedListing } from "../complete/scanned-listing.ts";
import { createBlobFiles } from "./blob-files.ts";
import { CheckpointFiles } from "./checkpoint-files.ts";
import { createFileEraser } from "./file-eraser.ts";
import { createFileLeases } from "./file-leases.ts";
import { createFileLedger } from "./file-ledger.ts";
import type { JsonlSettings } from "./jsonl-store.ts";
import type { LogFile } from "./log-file.ts";
import { checkCapacity, createSession, forkSession } from "./make-session.ts";
import { moveFromTrash, moveToTrash, removeFromTrash } from "./move-session.ts";
import { trashedName } from "./file-names.ts";
import { SessionFiles } from "./session-files.ts";
import { asStoreError, withStoreErrors, missingAsNull, StaleView } from "./store-failure.ts";

/** How often a read is tried if the session's file is moved or replaced meanwhile. */
const ATTEMPTS_MAX = 3;
/** A log whose entries are larger than this on average lets other tasks of this process run before the first is read. */
const SLICE_CHARACTERS = 256 * 1024;

/** Keeps each session in its own append-only file. */
export class JsonlDriver implements StoreDriver {
  readonly capabilities: StoreCapabilities;
  readonly leases: LeaseTable;
  readonly eraser: StoreEraser;
  readonly ledger: LedgerTable;
  readonly checkpoints: CheckpointTable;
  readonly listing: SessionListing;
  readonly files: SessionFiles;
  readonly blobs: BlobStore;

  constructor(options: JsonlSettings) {
    this.capabilities = {
      durable: true,
      shared: true,
      forkByReference: false,
      search: "scan",
      watch: "poll",
      lease: "shared",
      path: options.directory,
    };
    this.files = new SessionFiles(options);
    const checkpoints = new CheckpointFiles(this.files);
    this.checkpoints = checkpoints;
    this.listing = new ScannedListing((deleted, part) => withStoreErrors(() => this.files.scan(deleted, part)));
    this.blobs = createBlobFiles(this.files);
    this.leases = createFileLeases(this.files);
    this.eraser = createFileEraser(this.files, checkpoints);
    this.ledger = createFileLedger(this.files);
  }

  async create(
    header: SessionHeader,
    drafts: readonly CheckedDraft[],
    options: { maxOpenPerUser?: number },
  ): Promise<SessionHead> {
    return withStoreErrors(() => createSession(this.files, header, drafts, options));
  }

  append(sessionId: string, drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    const held = this.files.live.held(sessionId);
    if (held !== null) return held.writer.append(drafts, options);
    return withStoreErrors(async () => {
      this.files.checkWritable();
      return (await this.files.live.existing(sessionId)).writer.append(drafts, options);
    });
  }

  async head(sessionId: string): Promise<SessionHead | null> {
    return this.#withFile(sessionId, null, async ({ head }) => head);
  }

  read(sessionId: string, range: ReadRange): AsyncIterable<Entry> {
    return new PagedItems(this.#pages(sessionId, range), (entry) => entry);
  }

  async find(sessionId: string, entryId: string): Promise<StoredEntry | null> {
    return this.#withFile(sessionId, null, async (file) =>
      freezeDeep((await file.query<StoredEntry | undefined>((log) => log.find(entryId))) ?? null),
    );
  }

  async settings(sessionId: string, last: SettingsNode): Promise<Settings> {
    return this.#withFile(sessionId, NO_SETTINGS, async (file) =>
      freezeDeep(await readSettings(last, (seq) => file.query((log) => log.settingsAt(seq)))),
    );
  }

  async fork(sourceId: string, header: SessionHeader, options: ForkOptions): Promise<SessionHead> {
    return this.files.change(() => forkSession(this.files, sourceId, header, options));
  }

  async delete(sessionId: string): Promise<boolean> {
    return this.files.change(async () => {
      const file = await this.files.live.find(sessionId);
      if (file === null) return false;
      await moveToTrash(this.files, file);
      return true;
    });
  }

  async undelete(sessionId: string, options: UndeleteOptions): Promise<boolean> {
    return this.files.change(async () => {
      const file = await this.files.trash.locate(sessionId);
      if (file === null) return false;
      const head = options.maxOpenPerUser === undefined ? null : (await this.files.trash.find(sessionId))?.head;
      if (head && isOpen(head)) await checkCapacity(this.files, head.header, options);
      await moveFromTrash(file);
      this.files.trash.forget(file);
      this.files.live.invalidate();
      return true;
    });
  }

  async purge({ before, sessionId, userId }: DriverPurge): Promise<number> {
    return this.files.change(async () => {
      const { trash } = this.files;
      const named = sessionId === undefined ? null : await trash.locate(sessionId);
      const names = sessionId === undefined ? trash.names() : named === null ? [] : [basename(named.paths.log)];
      let count = 0;
      for (const name of names) {
        const deletedAt = trashedName(name)?.deletedAt;
        if (deletedAt === undefined || deletedAt >= before) continue;
        const file = trash.fileOf(name);
        const purged = userId === undefined || (await belongsTo(file, userId));
        if (purged) await removeFromTrash(file);
        if (purged) count += 1;
        // A file that was not purged is found again by the next look-up of its session.
        trash.forget(file);
      }
      this.files.trash.invalidate();
      return count;
    });
  }

  async ping(): Promise<void> {
    const { directory, readOnly, salvage } = this.files.options;
    const writes = !readOnly && !salvage;
    // A missing directory is no failure for a store that may write: it is made with the first session.
    const missing = writes ? missingAsNull : undefined;
    await withStoreErrors(
      () => access(directory, constants.R_OK | (writes ? constants.W_OK : 0)).catch(missing) as Promise<void>,
    );
  }

  async close(): Promise<void> {
    await this.files.close();
  }

  async *#pages(sessionId: string, range: ReadRange): AsyncGenerator<readonly Entry[]> {
    type Pages = Iterable<readonly Entry[]>;
    try {
      // If the entries are large on average, wait for a slice before the first one is read. Only the size of the file is known.
      const expected = (file: LogFile): Promise<number> =>
        file.query((log) => ("size" in log ? log.size / Math.max(1, log.head.version) : 0));
      const bytes = await this.#withFile(sessionId, 0, expected, range.deleted);
      if (bytes > SLICE_CHARACTERS) await nextSlice(bytes);
      const open = (file: LogFile): Promise<Pages> => file.query((log) => log.readPages(range));
      let read = 0;
      for (const page of await this.#withFile<Pages>(sessionId, [], open, range.deleted)) {
        if (read > 0) await nextSlice(read);
        read = page.reduce((sum, entry) => sum + entryCharacters(entry), 0);
        yield page;
      }
    } catch (error) {
      throw asStoreError(error);
    }
  }

  /** Runs a task on a session's file, or returns `missing` if there is no such session. */
  #withFile<T>(sessionId: string, missing: T, task: (file: LogFile) => Promise<T>, deleted = false): Promise<T> {
    const directory = deleted ? this.files.trash : this.files.live;
    return withStoreErrors(async () => {
      for (let attempt = 1; ; attempt++) {
        const file = directory.held(sessionId) ?? (await directory.find(sessionId));
        try {
          return file === null ? missing : await task(file);
        } catch (error) {
          // The file may have been moved since it was found.
          if (!(error instanceof StaleView) || attempt === ATTEMPTS_MAX) throw error;
        }
      }
    });
  }
}

/** Whether a file's session belongs to a user; false if the file cannot be read. */
async function belongsTo(file: LogFile, userId: string): Promise<boolean> {
  const readable = await file.refresh().catch(() => false);
  return readable && file.head.header.userId === userId;
}
