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
import { planAgain } from "../complete/plan-again.ts";
import { lookUpWanted } from "../memory/memory-log.ts";
import { readToken } from "./file-leases.ts";
import type { JsonlSettings } from "./jsonl-store.ts";
import { LockedQueue } from "./locked-queue.ts";
import type { LogFile } from "./log-file.ts";
import { readHeader } from "./log-header.ts";
import { formatEntry, formatLine, LINE_BYTES_MAX } from "./log-line.ts";
import { WholeLogNeeded } from "./log-state.ts";
import { copyLog, putFile, setTime, writeAll, writeLines } from "./new-file.ts";
import type { LogPaths } from "./file-names.ts";
import { asStoreError, withStoreErrors, missingAsNull, storeFailed } from "./store-failure.ts";

const datasync = promisify(fdatasync);

/** An append that stands at the log's end; nothing was written where its length is 0. */
interface WrittenAppend {
  readonly plan: AppendPlan;
  readonly length: number;
}

/** Appends to one session's file, in turn with other processes. */
export class LogWriter {
  readonly file: LogFile;
  readonly #sessionId: string;
  readonly #options: JsonlSettings;
  readonly #turns: LockedQueue;
  /** The file, while its lock is held. */
  #fd: number | null = null;
  #sizeAtBegin = 0;
  /** Whether something may stand after the last whole line. */
  #torn = false;

  constructor(file: LogFile, options: JsonlSettings) {
    const sessionId = file.head.header.id;
    this.file = file;
    this.#sessionId = sessionId;
    this.#options = options;
    this.#turns = new LockedQueue(file.paths.lock, {
      lockTimeoutMs: options.lockTimeoutMs,
      begin: () => this.#begin(),
      end: () => this.detach(),
      busy: ({ pid, host }) => new SessionBusyError(sessionId, `process ${pid} on ${host}`),
    });
  }

  append(drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    if (this.#fd !== null && this.#turns.ready && this.#options.durability === "flush") {
      try {
        const written = this.#write(drafts, options);
        if (typeof written !== "string") {
          this.#turns.used();
          return Promise.resolve(this.#take(written));
        }
      } catch (error) {
        return Promise.reject(asStoreError(error));
      }
    }
    return withStoreErrors(() => this.exclusively(() => this.#appendSoon(drafts, options)));
  }

  /** Runs a task while no process appends to the file. */
  exclusively<T>(task: (paths: LogPaths) => Promise<T>): Promise<T> {
    return this.#turns.run(async () => {
      if (this.#fd === null) await this.#begin();
      return task(this.file.paths);
    });
  }

  /** Gives the file another log, if it has `version` entries now. */
  replace(version: number, entries: readonly Entry[]): Promise<boolean> {
    return this.exclusively(async ({ log, index }) => {
      const { head } = this.file;
      if (head.version !== version) return false;
      const { plan } = planAgain({ ...head, header: { ...head.header, version: FORMAT_VERSION } }, entries);
      const lines = [JSON.stringify(plan.head.header), ...plan.added.map(({ entry }) => formatEntry(entry))];
      // What is known of the log says what was in it; it is made again from the new one.
      await unlink(index).catch(missingAsNull);
      const clock = (): Date => new Date(head.updatedAt);
      await putFile(log, (fd) => writeLines(fd, lines), { ...this.#options, clock, replaces: true });
      this.#letGo();
      await this.#begin();
      return true;
    });
  }

  /** Closes the file: before its lock is let go, and within a task that moves it away. */
  detach(): void {
    if (this.#fd === null) return;
    try {
      if (this.file.state.size !== this.#sizeAtBegin) this.file.index(this.#fd);
      this.file.settle(this.#fd);
    } catch {
      this.file.distrust();
    }
    this.#letGo();
  }

  /** Finishes what is queued and lets go of the file. */
  close(): Promise<void> {
    return this.#turns.close();
  }

  /** Opens the file, once its lock is held, and reads what others have appended. @throws {SessionNotFoundError} */
  async #begin(): Promise<void> {
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
      this.#sizeAtBegin = this.file.state.size;
      this.#torn = fstatSync(fd).size > this.#sizeAtBegin;
      this.#fd = fd;
    } catch (error) {
      this.file.held = false;
      closeSync(fd);
      throw asStoreError(error);
    }
  }

  #letGo(): void {
    this.file.held = false;
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
  }

  async #appendSoon(drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    for (;;) {
      const written = this.#write(drafts, options);
      if (written === "whole log needed") await this.file.reload();
      else if (written === "version to be raised") await this.#raiseVersion();
      else {
        if (written.length > 0 && this.#options.durability === "fsync")
          await datasync(this.#fd as number).catch((cause) => Promise.reject(this.#undo(cause)));
        return this.#take(written);
      }
    }
  }

  /** Writes an append at the log's end, or says what must come first. What is known of the log does not have it yet. */
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
      return { plan, length: this.#writeLine(this.#lineOf(plan.added), now) };
    } catch (error) {
      if (error instanceof WholeLogNeeded) return "whole log needed";
      throw error;
    }
  }

  /** Takes over what was written. */
  #take({ plan: { head, added, entries }, length }: WrittenAppend): AppendResult {
    const { state } = this.file;
    if (length > 0) {
      for (const stored of added) state.learn(stored);
      state.advance(length, head);
    }
    return { version: head.version, entries, head };
  }

  /** Writes a line at the log's end, or leaves it as it was. Gives how many bytes it took. */
  #writeLine(line: string, now: Date): number {
    const fd = this.#fd as number;
    const { size } = this.file.state;
    try {
      const length = writeAll(fd, line, size);
      // What a crash left after the last whole line may be longer than this one.
      if (this.#torn) ftruncateSync(fd, size + length);
      this.#torn = false;
      setTime(fd, now);
      return length;
    } catch (cause) {
      throw this.#undo(cause);
    }
  }

  /** Takes away what was written after the log's end. */
  #undo(cause: unknown): SessionError {
    try {
      ftruncateSync(this.#fd as number, this.file.state.size);
      this.#torn = false;
    } catch {
      this.#torn = true;
    }
    return storeFailed(`${this.file.paths.log} could not be appended to, and is as it was`, cause);
  }

  /** Gives a log of an earlier version the present one, before anything of the present one is in it. */
  async #raiseVersion(): Promise<void> {
    const fd = this.#fd as number;
    const { state, paths } = this.file;
    // Another process may have done it already: what is known of the file may be older than its first line.
    const { header, versionAt } = readHeader(fd, paths.log);
    const raised = { ...header, version: FORMAT_VERSION } as const;
    if (header.version !== FORMAT_VERSION && versionAt === null) {
      const options = { ...this.#options, replaces: true };
      await putFile(paths.log, (to) => copyLog(state.identity, state.upTo(state.head.version), raised, to), options);
      this.#letGo();
      return this.#begin();
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
