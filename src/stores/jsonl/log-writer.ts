import type { CheckedDraft } from "../../session/draft.ts";
import { SessionBusyError } from "../../session/errors.ts";
import type { AppendOptions, AppendResult } from "../../session/store.ts";
import { LockedQueue } from "./locked-queue.ts";
import { type AppendJob, LogAppender, type WriteOptions } from "./log-appender.ts";
import type { LogFile } from "./log-file.ts";
import type { Places } from "./places.ts";
import { asStoreError } from "./store-failure.ts";

interface TaskJob {
  readonly task: () => Promise<void>;
  readonly reject: (error: unknown) => void;
}

type Job = AppendJob | TaskJob;

/** Appends to one session's file, in turn with other processes. */
export class LogWriter {
  readonly file: LogFile;
  readonly #appender: LogAppender;
  readonly #queue: LockedQueue<Job>;

  /** `leaseToken` finds the token of the session's live lease; it is asked under the lock. */
  constructor(file: LogFile, sessionId: string, options: WriteOptions, leaseToken: () => Promise<number | null>) {
    this.file = file;
    this.#appender = new LogAppender(file, sessionId, options, leaseToken);
    this.#queue = new LockedQueue(
      file.places.lock,
      {
        begin: () => this.#appender.begin(),
        run: (jobs) => this.#run(jobs),
        end: () => this.#appender.end(),
        refuse: (job, error) => job.reject(asStoreError(error)),
        busy: ({ pid, host }) => new SessionBusyError(sessionId, `process ${pid} on ${host}`),
      },
      options,
    );
  }

  append(drafts: readonly CheckedDraft[], options: AppendOptions): Promise<AppendResult> {
    if (this.#queue.ready && this.#appender.ready) {
      try {
        const result = this.#appender.appendNow(drafts, options);
        if (result !== null) {
          this.#queue.used({ more: this.#appender.indexIsDue });
          return Promise.resolve(result);
        }
      } catch (error) {
        return Promise.reject(error);
      }
    }
    return new Promise((resolve, reject) => this.#queue.push({ drafts, options, resolve, reject }));
  }

  /** Runs a task while no process appends to the file. */
  exclusively<T>(task: (places: Places) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) =>
      this.#queue.push({ task: () => task(this.file.places).then(resolve), reject }),
    );
  }

  /** Closes the file within a task that moves it away. */
  async detach(): Promise<void> {
    await this.#appender.end();
  }

  /** Finishes what is queued and lets go of the file. */
  close(): Promise<void> {
    return this.#queue.close();
  }

  async #run(jobs: readonly Job[]): Promise<() => void> {
    const done: (() => void)[] = [];
    const settle = (): void => {
      for (const tell of done) tell();
    };
    for (let next = 0; next < jobs.length; ) {
      // A task may have moved the file away.
      if (!this.#appender.ready && !(await this.#reopen(jobs.slice(next)))) return settle;
      const job = jobs[next] as Job;
      const group = appendsFrom(jobs, next);
      next += Math.max(1, group.length);
      if ("task" in job) await job.task().catch(job.reject);
      else done.push(...(await this.#appender.appendGroup(group)));
    }
    if (this.#appender.indexIsDue) await this.#appender.writeIndex();
    return settle;
  }

  async #reopen(jobs: readonly Job[]): Promise<boolean> {
    try {
      await this.#appender.begin();
      return true;
    } catch (error) {
      for (const job of jobs) job.reject(error);
      return false;
    }
  }
}

/** The appends that follow each other from a place in the queue on. */
function appendsFrom(jobs: readonly Job[], from: number): AppendJob[] {
  const appends: AppendJob[] = [];
  for (let at = from; at < jobs.length; at++) {
    const job = jobs[at] as Job;
    if ("task" in job) break;
    appends.push(job);
  }
  return appends;
}
