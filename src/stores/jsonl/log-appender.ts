import { fstatSync, ftruncateSync, writeSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { keepPrivate } from "../../internal/private-file.ts";
import {
  type AppendPlan,
  type Found,
  NOTHING_FOUND,
  planAppend,
  planLater,
  type StoredEntry,
  type Wanted,
} from "../../session/append-plan.ts";
import type { CheckedDraft } from "../../session/draft.ts";
import { isNode } from "../../session/entry.ts";
import { SessionError, SessionNotFoundError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/fold.ts";
import { FORMAT_VERSION } from "../../session/header.ts";
import type { SettingsNode } from "../../session/settings.ts";
import type { AppendOptions, AppendResult } from "../../session/store.ts";
import { freezeHead } from "./freeze-head.ts";
import { type LogFile, timeOf } from "./log-file.ts";
import { formatLine, LINE_BYTES_MAX } from "./log-line.ts";
import { raiseVersion } from "./raise-version.ts";
import { asStoreError, storeFailed } from "./store-failure.ts";
import { writeIndex } from "./write-index.ts";

/** How many bytes of queued appends are written at once. */
const GROUP_BYTES_MAX = 8 * 1024 * 1024;
/** Up to how many bytes a copy to the system's cache takes less time than handing it to a thread. */
const SYNC_BYTES_MAX = 64 * 1024;

/** How a store writes. */
export interface WriteOptions {
  readonly durability: "flush" | "fsync";
  readonly lockTimeoutMs: number;
  readonly clock: () => Date;
  /** Whether the files' times are to follow the clock, since it is not the system's. */
  readonly setsTimes: boolean;
}

/** An append that someone waits for. */
export interface AppendJob {
  readonly drafts: readonly CheckedDraft[];
  readonly options: AppendOptions;
  readonly resolve: (result: AppendResult) => void;
  readonly reject: (error: unknown) => void;
}

/** An append that is decided and not written yet. */
interface PlannedAppend {
  readonly job: AppendJob;
  readonly plan: AppendPlan;
  readonly line: Buffer | null;
}

/** Appends to a session's file while its lock is held. */
export class LogAppender {
  readonly #file: LogFile;
  readonly #sessionId: string;
  readonly #options: WriteOptions;
  readonly #leaseToken: () => Promise<number | null>;
  #handle: FileHandle | null = null;
  /** Whether something may stand after the last whole line. */
  #torn = false;
  #sizeAtBegin = 0;

  /** `leaseToken` finds the token of the session's live lease. */
  constructor(file: LogFile, sessionId: string, options: WriteOptions, leaseToken: () => Promise<number | null>) {
    this.#file = file;
    this.#sessionId = sessionId;
    this.#options = options;
    this.#leaseToken = leaseToken;
  }

  /** Whether the file is open for appending. */
  get ready(): boolean {
    return this.#handle !== null;
  }

  /** Opens the file, once its lock is held, and reads what others have appended. @throws {SessionNotFoundError} */
  async begin(): Promise<void> {
    let handle: FileHandle;
    try {
      handle = await open(this.#file.places.log, "r+");
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === "ENOENT") throw new SessionNotFoundError(this.#sessionId);
      throw storeFailed(`${this.#file.places.log} could not be opened for writing`, cause);
    }
    try {
      await this.#file.hold(handle);
      const stats = await handle.stat();
      await keepPrivate(handle, stats);
      this.#torn = stats.size > this.#file.state.size;
      this.#sizeAtBegin = this.#file.state.size;
      this.#handle = handle;
    } catch (error) {
      this.#file.held = false;
      await handle.close();
      throw asStoreError(error);
    }
  }

  /** Closes the file, before its lock is let go. */
  async end(): Promise<void> {
    const handle = this.#handle;
    this.#handle = null;
    if (handle === null) return;
    try {
      const { state } = this.#file;
      if (state.size !== this.#sizeAtBegin) await writeIndex(state, handle, { resting: true });
      if (!this.#torn) this.#file.settle(await handle.stat());
    } catch {
      // Nothing here is needed: a log whose time is not the one that was noted is read anew.
    } finally {
      this.#file.held = false;
      await handle.close().catch(() => {});
    }
  }

  /** Whether a block of the index is due. */
  get indexIsDue(): boolean {
    return this.#handle !== null && this.#file.state.pending.due;
  }

  async writeIndex(): Promise<void> {
    if (this.#handle !== null) await writeIndex(this.#file.state, this.#handle, { resting: false });
  }

  /** Appends at once, when nothing has to be looked up or waited for; else null, and nothing is done. */
  appendNow(drafts: readonly CheckedDraft[], options: AppendOptions): AppendResult | null {
    const { durability, setsTimes, clock } = this.#options;
    if (durability === "fsync" || setsTimes || this.#torn || options.guard?.leaseToken !== undefined) return null;
    const { head } = this.#file.state;
    if (head.header.version !== FORMAT_VERSION) return null;
    const steps = planAppend({ head, drafts, options, now: clock().toISOString() });
    let step = steps.next();
    while (step.done !== true) {
      const found = this.#lookNow(step.value);
      if (found === null) return null;
      step = steps.next(found);
    }
    const { plan } = step.value;
    if (plan.added.length === 0) return { version: head.version, entries: plan.entries, head };
    const line = lineOf(plan.added, this.#sessionId);
    if (line.length > SYNC_BYTES_MAX) return null;
    try {
      return this.#commit({ plan, line }, this.#writeSync(line));
    } catch (cause) {
      throw this.#failed(cause);
    }
  }

  /** Does appends one after another, and writes them together. Gives what tells those who wait; does not throw. */
  async appendGroup(jobs: readonly AppendJob[]): Promise<(() => void)[]> {
    const done: (() => void)[] = [];
    const staged = jobs.length === 1 ? null : new Map<string, StoredEntry>();
    const now = this.#options.clock().toISOString();
    let planned: PlannedAppend[] = [];
    let head = raised(this.#file.state.head);
    let bytes = 0;
    for (const job of jobs) {
      try {
        const one = await this.#plan(job, head, staged, now);
        for (const stored of one.plan.added) staged?.set(stored.entry.id, stored);
        planned.push(one);
        head = one.plan.head;
        bytes += one.line?.length ?? 0;
      } catch (error) {
        done.push(() => job.reject(asStoreError(error)));
      }
      if (bytes < GROUP_BYTES_MAX) continue;
      done.push(...(await this.#write(planned)));
      planned = [];
      bytes = 0;
      head = raised(this.#file.state.head);
    }
    if (planned.length > 0) done.push(...(await this.#write(planned)));
    return done;
  }

  async #plan(
    job: AppendJob,
    head: SessionHead,
    staged: ReadonlyMap<string, StoredEntry> | null,
    now: string,
  ): Promise<PlannedAppend> {
    const { drafts, options } = job;
    const leaseToken = options.guard?.leaseToken === undefined ? null : await this.#leaseToken();
    const { plan } = await planLater({ head, drafts, options, leaseToken, now }, (wanted) =>
      this.#look(wanted, staged),
    );
    return { job, plan, line: plan.added.length === 0 ? null : lineOf(plan.added, this.#sessionId) };
  }

  /** What a plan wants, where it is known without reading; else null. */
  #lookNow({ ids, settings }: Wanted): Found | null {
    const { state } = this.#file;
    if (!ids.every((id) => state.surelyLacks(id))) return null;
    if (!settings.every((seq) => state.finder.settings.has(seq))) return null;
    return { ...NOTHING_FOUND, settings: new Map(settings.map((seq) => [seq, state.finder.settings.at(seq)])) };
  }

  async #look({ ids, settings }: Wanted, staged: ReadonlyMap<string, StoredEntry> | null): Promise<Found> {
    const entries = new Map<string, StoredEntry>();
    for (const id of ids) {
      const stored = staged?.get(id) ?? (await this.#findStored(id));
      if (stored !== null) entries.set(id, stored);
    }
    const { state } = this.#file;
    const nodes = new Map<number, SettingsNode>();
    for (const seq of settings) {
      const own = [...(staged?.values() ?? [])].find(({ entry }) => entry.seq === seq)?.path?.settings;
      nodes.set(seq, own ?? (await state.finder.settingsAt(seq, state.end)));
    }
    return { entries, settings: nodes };
  }

  async #findStored(id: string): Promise<StoredEntry | null> {
    const entry = await this.#file.getEntry(id);
    return entry === null ? null : { entry, path: isNode(entry) ? await this.#file.path(id) : null };
  }

  async #write(planned: readonly PlannedAppend[]): Promise<(() => void)[]> {
    const lines = planned.flatMap(({ line }) => line ?? []);
    let { updatedAt } = this.#file.head;
    try {
      if (lines.length > 0 && this.#file.head.header.version !== FORMAT_VERSION) await this.#raiseVersion();
      if (lines.length > 0) updatedAt = await this.#writeBytes(Buffer.concat(lines));
    } catch (cause) {
      const error = this.#failed(cause);
      return planned.map(
        ({ job }) =>
          () =>
            job.reject(error),
      );
    }
    return planned.map((one) => {
      const result = this.#commit(one, updatedAt);
      return () => one.job.resolve(result);
    });
  }

  async #raiseVersion(): Promise<void> {
    const old = this.#handle as FileHandle;
    if ((await raiseVersion(this.#file.state, old, this.#options)) === "in place") return;
    this.#handle = null;
    this.#file.held = false;
    await old.close();
    await this.begin();
  }

  /** Takes over what was written. */
  #commit({ plan, line }: Pick<PlannedAppend, "plan" | "line">, updatedAt: string): AppendResult {
    const { state } = this.#file;
    if (line !== null) {
      for (const { entry, path } of plan.added) if (path !== null) state.finder.addPath(entry.id, path);
      const raw = { offset: state.size, length: line.length, bytes: line.subarray(0, -1) };
      const entries = plan.added.map(({ entry }) => entry);
      // The time of an append is that of the file, so that whoever looks at the file sees the same one.
      state.advance(raw, entries, freezeHead({ ...plan.head, updatedAt }));
    }
    return { version: state.head.version, entries: plan.entries, head: state.head };
  }

  /** Writes bytes at the log's end, or leaves it as it was. Resolves to the file's new time. */
  async #writeBytes(bytes: Buffer): Promise<string> {
    const handle = this.#handle as FileHandle;
    const { size } = this.#file.state;
    const { durability, setsTimes, clock } = this.#options;
    if (this.#torn) await handle.truncate(size);
    this.#torn = true;
    try {
      const small = bytes.length <= SYNC_BYTES_MAX;
      const count = small
        ? writeSync(handle.fd, bytes, 0, bytes.length, size)
        : (await handle.write(bytes, 0, bytes.length, size)).bytesWritten;
      checkWritten(count, bytes);
      if (durability === "fsync") await handle.datasync();
      if (setsTimes) await handle.utimes(clock(), clock());
      return this.#written(handle);
    } catch (error) {
      this.#torn = !(await handle.truncate(size).then(
        () => true,
        () => false,
      ));
      throw error;
    }
  }

  #writeSync(bytes: Buffer): string {
    const handle = this.#handle as FileHandle;
    const { size } = this.#file.state;
    try {
      checkWritten(writeSync(handle.fd, bytes, 0, bytes.length, size), bytes);
      return this.#written(handle);
    } catch (error) {
      this.#torn = true;
      ftruncateSync(handle.fd, size);
      this.#torn = false;
      throw error;
    }
  }

  #written(handle: FileHandle): string {
    const stats = fstatSync(handle.fd);
    this.#file.settle(stats);
    this.#torn = false;
    return timeOf(stats.mtimeMs);
  }

  #failed(cause: unknown): SessionError {
    if (cause instanceof SessionError) return cause;
    return storeFailed(`${this.#file.places.log} could not be appended to, and is as it was`, cause);
  }
}

/** A head as an append leaves it, which raises the version first. */
function raised(head: SessionHead): SessionHead {
  const { header } = head;
  return header.version === FORMAT_VERSION ? head : { ...head, header: { ...header, version: FORMAT_VERSION } };
}

function checkWritten(count: number, bytes: Buffer): void {
  if (count !== bytes.length) throw new Error(`only ${count} of ${bytes.length} bytes could be written`);
}

function lineOf(added: readonly StoredEntry[], sessionId: string): Buffer {
  try {
    const line = Buffer.from(formatLine(added.map(({ entry }) => entry)));
    if (line.length <= LINE_BYTES_MAX) return line;
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
  }
  throw new SessionError(
    "TOO_LARGE",
    `An append to session ${sessionId} takes more than ${LINE_BYTES_MAX} bytes; append the entries in parts.`,
  );
}
