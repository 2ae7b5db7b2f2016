import { fstatSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { type AppendPlan, idsToFind, planAppend, type StoredEntry } from "../../session/append-plan.ts";
import type { CheckedDraft } from "../../session/draft.ts";
import { isNode } from "../../session/entry.ts";
import { SessionBusyError, SessionError, SessionNotFoundError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/fold.ts";
import type { AppendOptions, AppendResult } from "../../session/store.ts";
import { freezeDeep } from "../memory/freeze-deep.ts";
import { writeIndex } from "./write-index.ts";
import { formatLine, LINE_BYTES_MAX, type RawLine } from "./log-line.ts";
import type { Places } from "./places.ts";
import { LockedQueue } from "./locked-queue.ts";
import { type LogFile, timeOf } from "./log-file.ts";
import { asStoreError, storeFailed } from "./store-failure.ts";

/** How many bytes of queued appends are written at once. */
const GROUP_BYTES_MAX = 8 * 1024 * 1024;

/** How a store writes. */
export interface WriteOptions {
  readonly durability: "flush" | "fsync";
  readonly lockTimeoutMs: number;
  readonly clock: () => Date;
  /** Whether the files' times are to follow the clock, since it is not the system's. */
  readonly setsTimes: boolean;
}

interface AppendJob {
  readonly drafts: readonly CheckedDraft[];
  readonly options: AppendOptions;
  readonly resolve: (result: AppendResult) => void;
  readonly reject: (error: unknown) => void;
}

interface TaskJob {
  readonly task: () => Promise<void>;
  readonly reject: (error: unknown) => void;
}

/** An append that is decided and not written yet. */
interface PlannedAppend {
  readonly job: AppendJob;
  readonly plan: AppendPlan;
  readonly line: Buffer | null;
}

const NOTHING_FOUND: ReadonlyMap<string, StoredEntry> = new Map();

/** Appends to one session's file, in turn with other processes. */
export class LogWriter {
  readonly file: LogFile;
  readonly #sessionId: string;
  readonly #options: WriteOptions;
  readonly #leaseToken: () => Promise<number | null>;
  readonly #queue: LockedQueue<AppendJob | TaskJob>;
  #handle: FileHandle | null = null;
  /** Whether something stands after the last whole line. */
  #torn = false;

  /** `leaseToken` finds the token of the session's live lease; it is asked under the lock. */
  constructor(file: LogFile, sessionId: string, options: WriteOptions, leaseToken: () => Promise<number | null>) {
    this.file = file;
    this.#sessionId = sessionId;
    this.#options = options;
    this.#leaseToken = leaseToken;
    this.#queue = new LockedQueue(
      file.places.lock,
      {
        begin: () => this.#begin(),
        run: (jobs) => this.#run(jobs),
        end: () => this.#end(),
        refuse: (job, error) => job.reject(error),
        busy: ({ pid, host }) => new SessionBusyError(sessionId, `process ${pid} on ${host}`),
      },
      options,
    );
  }

  append(drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    return new Promise((resolve, reject) => this.#queue.push({ drafts, options, resolve, reject }));
  }

  /** Runs a task while no process appends to the file. */
  exclusively<T>(task: (places: Places) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) =>
      this.#queue.push({ task: () => task(this.file.places).then(resolve), reject }),
    );
  }

  /** Lets the file go within a task that moves it away. */
  async detach(): Promise<void> {
    await this.#end();
  }

  /** Finishes what is queued and lets go of the file. */
  close(): Promise<void> {
    return this.#queue.close();
  }

  async #begin(): Promise<void> {
    let handle: FileHandle;
    try {
      handle = await open(this.file.places.log, "r+");
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === "ENOENT") throw new SessionNotFoundError(this.#sessionId);
      throw storeFailed(`${this.file.places.log} could not be opened for writing`, cause);
    }
    try {
      await this.file.hold(handle);
      this.#torn = (await handle.stat()).size > this.file.state.size;
      this.#handle = handle;
    } catch (error) {
      this.file.held = false;
      await handle.close();
      throw error;
    }
  }

  async #end(): Promise<void> {
    const handle = this.#handle;
    this.#handle = null;
    if (handle === null) return;
    try {
      const { state } = this.file;
      if (state.pending.isWorthwhile(state.size)) await writeIndex(state, handle, { resting: true });
      // After a failed cut the file is looked at anew by whoever comes next.
      if (!this.#torn) this.file.settle(await handle.stat());
    } catch {
      // Nothing here is needed: the log is whole, and is read anew when its time is not the one that was noted.
    } finally {
      this.file.held = false;
      await handle.close().catch(() => {});
    }
  }

  async #run(jobs: (AppendJob | TaskJob)[]): Promise<void> {
    if (this.#handle === null) return this.#reopen(jobs);
    for (let next = 0; next < jobs.length; ) {
      const job = jobs[next] as AppendJob | TaskJob;
      if ("task" in job) {
        next += 1;
        await job.task().catch(job.reject);
        // A task may have moved the file away, and others may wait behind it.
        if (this.#handle === null && next < jobs.length) await this.#reopen(jobs.splice(next));
      } else {
        const group = groupFrom(jobs, next);
        next += group.length;
        await this.#appendGroup(group);
      }
    }
  }

  async #reopen(jobs: (AppendJob | TaskJob)[]): Promise<void> {
    try {
      await this.#begin();
    } catch (error) {
      for (const job of jobs) job.reject(error);
      return;
    }
    await this.#run(jobs);
  }

  async #appendGroup(jobs: readonly AppendJob[]): Promise<void> {
    const staged = jobs.length === 1 ? null : new Map<string, StoredEntry>();
    const now = this.#options.clock().toISOString();
    let planned: PlannedAppend[] = [];
    let head = this.file.state.head;
    let bytes = 0;
    for (const job of jobs) {
      try {
        const one = await this.#plan(job, head, staged, now);
        for (const stored of one.plan.added) staged?.set(stored.entry.id, stored);
        planned.push(one);
        head = one.plan.head;
        bytes += one.line?.length ?? 0;
      } catch (error) {
        job.reject(asStoreError(error));
      }
      if (bytes < GROUP_BYTES_MAX) continue;
      await this.#write(planned);
      planned = [];
      bytes = 0;
      head = this.file.state.head;
    }
    if (planned.length > 0) await this.#write(planned);
  }

  async #plan(
    job: AppendJob,
    head: SessionHead,
    staged: ReadonlyMap<string, StoredEntry> | null,
    now: string,
  ): Promise<PlannedAppend> {
    const { drafts, options } = job;
    const ids = idsToFind(head, drafts, options);
    const found = ids.length === 0 ? NOTHING_FOUND : await this.#find(ids, staged);
    const leaseToken = options.guard?.leaseToken === undefined ? null : await this.#leaseToken();
    const plan = planAppend({ head, drafts, options, found, leaseToken, now });
    return { job, plan, line: plan.added.length === 0 ? null : lineOf(plan.added, this.#sessionId) };
  }

  async #find(
    ids: readonly string[],
    staged: ReadonlyMap<string, StoredEntry> | null,
  ): Promise<Map<string, StoredEntry>> {
    const found = new Map<string, StoredEntry>();
    for (const id of ids) {
      const stored = staged?.get(id) ?? (await this.#findStored(id));
      if (stored !== null) found.set(id, stored);
    }
    return found;
  }

  async #findStored(id: string): Promise<StoredEntry | null> {
    const entry = await this.file.getEntry(id);
    return entry === null ? null : { entry, path: isNode(entry) ? await this.file.path(id) : null };
  }

  async #write(planned: readonly PlannedAppend[]): Promise<void> {
    const lines = planned.flatMap(({ line }) => line ?? []);
    const { version } = this.file.head;
    let { updatedAt } = this.file.head;
    try {
      if (lines.length > 0)
        updatedAt = await this.#writeBytes(lines.length === 1 ? (lines[0] as Buffer) : Buffer.concat(lines));
    } catch (cause) {
      const error = storeFailed(`${this.file.places.log} could not be appended to, and is as it was`, cause);
      for (const { job } of planned) job.reject(error);
      return;
    }
    for (const { job, plan, line } of planned) {
      // The time of an append is that of the file, so that whoever looks at the file sees the same one.
      const head = freezeDeep(plan.head.version === version ? plan.head : { ...plan.head, updatedAt });
      if (line !== null) this.#commit(line, plan.added, head);
      job.resolve({ version: head.version, entries: plan.entries, head });
    }
    const { state } = this.file;
    if (state.pending.due) await writeIndex(state, this.#handle as FileHandle, { resting: false });
  }

  #commit(line: Buffer, added: readonly StoredEntry[], head: SessionHead): void {
    const { state } = this.file;
    const raw: RawLine = { offset: state.size, length: line.length, bytes: line.subarray(0, -1) };
    for (const { entry, path } of added) if (path !== null) state.finder.addPath(entry.id, path);
    const entries = added.map(({ entry }) => entry);
    state.advance(raw, entries, head);
  }

  /** Writes bytes at the log's end, or leaves it as it was. Resolves to the file's new time. */
  async #writeBytes(bytes: Buffer): Promise<string> {
    const handle = this.#handle as FileHandle;
    const { size } = this.file.state;
    const { durability, setsTimes, clock } = this.#options;
    if (this.#torn) await handle.truncate(size);
    this.#torn = true;
    try {
      const { bytesWritten } = await handle.write(bytes, 0, bytes.length, size);
      if (bytesWritten !== bytes.length)
        throw new Error(`only ${bytesWritten} of ${bytes.length} bytes could be written`);
      if (durability === "fsync") await handle.datasync();
      if (setsTimes) await handle.utimes(clock(), clock());
      // Not worth a thread: it would take longer than the rest of an append.
      const stats = fstatSync(handle.fd);
      this.file.settle(stats);
      this.#torn = false;
      return timeOf(stats.mtimeMs);
    } catch (error) {
      const cut = await handle.truncate(size).then(
        () => true,
        () => false,
      );
      this.#torn = !cut;
      throw error;
    }
  }
}

/** The appends that follow each other from a place in the queue on. */
function groupFrom(jobs: readonly (AppendJob | TaskJob)[], from: number): AppendJob[] {
  const group: AppendJob[] = [];
  for (let at = from; at < jobs.length; at++) {
    const job = jobs[at] as AppendJob | TaskJob;
    if ("task" in job) break;
    group.push(job);
  }
  return group;
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
