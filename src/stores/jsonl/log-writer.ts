import { closeSync, fdatasync, fstatSync, ftruncateSync, openSync, writeSync } from "node:fs";
import { unlink } from "node:fs/promises";
import { promisify } from "node:util";
import { narrowPrivateFile } from "../../internal/private-file.ts";
import { type AppendPlan, planNow, type StoredEntry } from "../../session/log/append-plan.ts";
import type { CheckedDraft } from "../../session/log/draft.ts";
import { SessionBusyError, SessionError, SessionNotFoundError } from "../../session/errors.ts";
import { FORMAT_VERSION } from "../../session/log/header.ts";
import type { Entry } from "../../session/log/entry.ts";
import type { AppendOptions, AppendResult } from "../../session/store.ts";
import { planRewrite } from "../complete/plan-rewrite.ts";
import { lookUpWanted } from "../memory/memory-log.ts";
import { readToken } from "./file-leases.ts";
import type { JsonlSettings } from "./jsonl-store.ts";
import { LockedQueue } from "./locked-queue.ts";
import type { LogFile } from "./log-file.ts";
import { readHeader } from "./log-header.ts";
import { formatEntry, formatLine, LINE_BYTES_MAX } from "./log-line.ts";
import { WholeLogNeeded } from "./log-state.ts";
import { markBefore, unmarkAfter } from "./open-run-marks.ts";
import { copyLog, writeFileAtomically, setTime, writeAll, writeLines } from "./write-file-atomically.ts";
import type { LogPaths } from "./file-names.ts";
import { asStoreError, withStoreErrors, missingAsNull, storeFailed } from "./store-failure.ts";

const datasync = promisify(fdatasync);

/** An append that was written to the end of the log; its length is 0 if there was nothing to write. */
interface WrittenAppend {
  readonly plan: AppendPlan;
  readonly length: number;
}

/** Appends to one session's file under the file's lock. */
export class LogWriter {
  readonly file: LogFile;
  readonly #sessionId: string;
  readonly #options: JsonlSettings;
  readonly #queue: LockedQueue;
  /** The open file while its lock is held. */
  #fd: number | null = null;
  #sizeAtOpen = 0;
  /** Whether there may be bytes of a torn write after the last complete line. */
  #torn = false;

  constructor(file: LogFile, options: JsonlSettings) {
    const sessionId = file.head.header.id;
    this.file = file;
    this.#sessionId = sessionId;
    this.#options = options;
    this.#queue = new LockedQueue(file.paths.lock, {
      lockTimeoutMs: options.lockTimeoutMs,
      onAcquired: () => this.#open(),
      onRelease: () => this.detach(),
      busy: ({ pid, host }) => new SessionBusyError(sessionId, `process ${pid} on ${host}`),
    });
  }

  append(drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    if (this.#fd !== null && this.#queue.ready && this.#options.durability === "flush") {
      try {
        const written = this.#write(drafts, options);
        if (typeof written !== "string") {
          this.#queue.markUsed();
          return Promise.resolve(this.#apply(written));
        }
      } catch (error) {
        return Promise.reject(asStoreError(error));
      }
    }
    return withStoreErrors(() => this.exclusively(() => this.#appendQueued(drafts, options)));
  }

  /** Runs a task while no process appends to the file. */
  exclusively<T>(task: (paths: LogPaths) => Promise<T>): Promise<T> {
    return this.#queue.run(async () => {
      if (this.#fd === null) await this.#open();
      return task(this.file.paths);
    });
  }

  /** Replaces the log of the file if it has `version` entries now. */
  replace(version: number, entries: readonly Entry[]): Promise<boolean> {
    return this.exclusively(async ({ log, index }) => {
      const { head } = this.file;
      if (head.version !== version) return false;
      const { plan } = planRewrite({ ...head, header: { ...head.header, version: FORMAT_VERSION } }, entries);
      const lines = [JSON.stringify(plan.head.header), ...plan.added.map(({ entry }) => formatEntry(entry))];
      // The index holds content of the old log, so it is deleted. The next writer builds a new one.
      await unlink(index).catch(missingAsNull);
      const clock = (): Date => new Date(head.updatedAt);
      await writeFileAtomically(log, (fd) => writeLines(fd, lines), { ...this.#options, clock, replaces: true });
      this.#closeFile();
      await this.#open();
      return true;
    });
  }

  /** Closes the file. Called before its lock is released, and by a task that moves the file. */
  detach(): void {
    if (this.#fd === null) return;
    try {
      if (this.file.state.size !== this.#sizeAtOpen) this.file.index(this.#fd);
      this.file.recordStamp(this.#fd);
    } catch {
      this.file.invalidate();
    }
    this.#closeFile();
  }

  /** Finishes queued appends, closes the file and releases its lock. */
  close(): Promise<void> {
    return this.#queue.close();
  }

  /** Opens the file after its lock was acquired, and reads the appends of other processes. @throws {SessionNotFoundError} */
  async #open(): Promise<void> {
    const { log } = this.file.paths;
    let fd: number;
    try {
      fd = openSync(log, "r+");
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === "ENOENT") throw new SessionNotFoundError(this.#sessionId);
      throw storeFailed(`${log} could not be opened for writing`, cause);
    }
    try {
      await this.file.hold(fd);
      narrowPrivateFile(log);
      this.#sizeAtOpen = this.file.state.size;
      this.#torn = fstatSync(fd).size > this.#sizeAtOpen;
      this.#fd = fd;
    } catch (error) {
      this.file.held = false;
      closeSync(fd);
      throw asStoreError(error);
    }
  }

  #closeFile(): void {
    this.file.held = false;
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
  }

  async #appendQueued(drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    for (;;) {
      const written = this.#write(drafts, options);
      if (written === "whole log needed") await this.file.reload();
      else if (written === "version to be raised") await this.#raiseVersion();
      else {
        if (written.length > 0 && this.#options.durability === "fsync")
          await datasync(this.#fd as number).catch((cause) => Promise.reject(this.#undo(cause)));
        return this.#apply(written);
      }
    }
  }

  /** Writes an append to the log's end, or returns what must be done first. Does not update the cached state. */
  #write(
    drafts: readonly CheckedDraft[],
    options: AppendOptions,
  ): WrittenAppend | "whole log needed" | "version to be raised" {
    const { state, paths } = this.file;
    const { head } = state;
    const now = this.#options.clock();
    try {
      const leaseToken = options.guard?.leaseToken === undefined ? null : readToken(paths.lease, now);
      const input = { head, drafts, options, leaseToken, now: now.toISOString() };
      const { plan } = planNow(input, (wanted) => lookUpWanted(state, wanted));
      if (plan.added.length === 0) return { plan, length: 0 };
      if (head.header.version !== FORMAT_VERSION) return "version to be raised";
      markBefore(paths, head, plan.head);
      return { plan, length: this.#writeLine(this.#lineOf(plan.added), now) };
    } catch (error) {
      if (error instanceof WholeLogNeeded) return "whole log needed";
      throw error;
    }
  }

  /** Adds a written append to the cached state. */
  #apply({ plan: { head, added, entries }, length }: WrittenAppend): AppendResult {
    const { state } = this.file;
    if (length > 0) {
      const before = state.head;
      for (const stored of added) state.addEntry(stored);
      state.advance(length, head);
      unmarkAfter(this.file.paths, before, head);
    }
    return { version: head.version, entries, head };
  }

  /** Writes a line to the log's end, or restores the file. Returns the length in bytes. */
  #writeLine(line: string, now: Date): number {
    const fd = this.#fd as number;
    const { size } = this.file.state;
    try {
      const length = writeAll(fd, line, size);
      // The torn write of a crashed process may be longer than this line.
      if (this.#torn) ftruncateSync(fd, size + length);
      this.#torn = false;
      setTime(fd, now);
      return length;
    } catch (cause) {
      throw this.#undo(cause);
    }
  }

  /** Truncates the file to the log's end after a failed write. */
  #undo(cause: unknown): SessionError {
    try {
      ftruncateSync(this.#fd as number, this.file.state.size);
      this.#torn = false;
    } catch {
      this.#torn = true;
    }
    return storeFailed(`${this.file.paths.log} could not be appended to, and is unchanged`, cause);
  }

  /** Raises the version in the header of an older log, before an entry of the current version is written to it. */
  async #raiseVersion(): Promise<void> {
    const fd = this.#fd as number;
    const { state, paths } = this.file;
    // Another process may have raised it already: the cached state may be older than the first line.
    const { header, versionAt } = readHeader(fd, paths.log);
    const raised = { ...header, version: FORMAT_VERSION } as const;
    if (header.version !== FORMAT_VERSION && versionAt === null) {
      const options = { ...this.#options, replaces: true };
      await writeFileAtomically(
        paths.log,
        (to) => copyLog(state.identity, state.prefixOf(state.head.version), raised, to),
        options,
      );
      this.#closeFile();
      return this.#open();
    }
    if (versionAt !== null) writeSync(fd, String(FORMAT_VERSION), versionAt);
    if (this.#options.durability === "fsync") await datasync(fd);
    state.amend({ header: raised });
  }

  #lineOf(added: readonly StoredEntry[]): string {
    try {
      const line = formatLine(added.map(({ entry }) => entry));
      if (Buffer.byteLength(line) <= LINE_BYTES_MAX) return line;
    } catch (cause) {
      if (!(cause instanceof RangeError)) throw cause;
    }
    throw new SessionError(
      "TOO_LARGE",
      `An append to session ${this.#sessionId} takes more than ${LINE_BYTES_MAX} bytes; append the entries in parts.`,
    );
  }
}
