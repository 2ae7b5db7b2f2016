import { FileLock, FOREIGN_SILENCE_MS_MAX, type LockOwner } from "../../internal/file-lock.ts";

/** After how long without a job the lock is let go. */
const IDLE_MS = 15;
/** How long a busy holder keeps the lock before it looks whether others want it. */
const HOLD_MS = 25;
const WANT_CHECK_MS = 4;
/** How long a holder that gives way stays away: longer than those who wait sleep between two tries. */
const GIVE_WAY_MS = 14;
/** How long a holder works without showing that it lives. */
const SILENCE_MS_MAX = FOREIGN_SILENCE_MS_MAX / 4;

/** What a queue does with its jobs and its lock. */
export interface QueueWork<J> {
  /** Gets ready after the lock was taken. When it throws, the lock is let go and the jobs are refused. */
  begin(): Promise<void>;
  /** Does jobs in order. Must not throw. What it resolves to tells those who wait how it went. */
  run(jobs: J[]): Promise<() => void>;
  /** Puts things in order before the lock is let go. Must not throw. */
  end(): Promise<void>;
  refuse(job: J, error: unknown): void;
  /** The error for someone who waited too long for the lock. */
  busy(holder: LockOwner): Error;
}

/**
 * Does jobs one after another under a lock among processes. The lock is kept while there is work, so that it costs
 * nothing a job, and let go soon after, or when another process has waited for a moment.
 */
export class LockedQueue<J> {
  readonly #lock: FileLock;
  readonly #work: QueueWork<J>;
  readonly #timeoutMs: number;
  #jobs: J[] = [];
  #draining: Promise<void> | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #heldSinceMs = 0;
  #usedAtMs = 0;
  #lookedAtMs = 0;
  #generation = 0;

  constructor(lockPath: string, work: QueueWork<J>, options: { readonly lockTimeoutMs: number }) {
    this.#lock = new FileLock(lockPath);
    this.#work = work;
    this.#timeoutMs = options.lockTimeoutMs;
  }

  push(job: J): void {
    this.#jobs.push(job);
    this.#draining ??= this.#drain();
  }

  /** How often the lock has been taken: while this stays the same, no other holder came between. */
  get generation(): number {
    return this.#generation;
  }

  /**
   * Whether the lock is held and nothing is under way, so that a job may be done at once; tell with `used` that it
   * was.
   */
  get ready(): boolean {
    return this.#draining === null && this.#lock.held && this.#lock.silentMs < SILENCE_MS_MAX;
  }

  /** Notes that a job was done outside of the queue. `more`: there is more to do, which `run` will find. */
  used(options: { readonly more: boolean }): void {
    this.#usedAtMs = performance.now();
    if (options.more || this.#isLookDue()) this.#draining = this.#drain();
  }

  /** Finishes what is queued and lets go of the lock. */
  async close(): Promise<void> {
    while (this.#draining !== null) await this.#draining;
    if (this.#lock.held) await (this.#draining = this.#letGo());
  }

  async #drain(): Promise<void> {
    do {
      const jobs = this.#jobs;
      this.#jobs = [];
      try {
        const mine = this.#lock.held && (this.#lock.silentMs < SILENCE_MS_MAX || (await this.#confirm()));
        if (!mine) await this.#take();
      } catch (error) {
        for (const job of jobs) this.#work.refuse(job, error);
        continue;
      }
      const settle = await this.#work.run(jobs);
      this.#usedAtMs = performance.now();
      const resting = this.#jobs.length === 0 && !this.#isLookDue();
      // Whoever is told now and comes back at once must find the queue at rest, so that the next job need not queue.
      if (resting) this.#draining = null;
      settle();
      if (resting) return;
      if (this.#isLookDue()) await this.#giveWay();
    } while (this.#jobs.length > 0);
    this.#draining = null;
  }

  async #take(): Promise<void> {
    const holder = await this.#lock.acquire(this.#timeoutMs);
    if (holder !== null) throw this.#work.busy(holder);
    this.#generation += 1;
    try {
      await this.#work.begin();
    } catch (error) {
      await this.#lock.release();
      throw error;
    }
    this.#heldSinceMs = this.#usedAtMs = performance.now();
    this.#watchForIdleness(IDLE_MS);
  }

  /** A holder that was silent for long, as a sleeping machine is, may have lost the lock. */
  async #confirm(): Promise<boolean> {
    const mine = await this.#lock.refresh();
    if (!mine) await this.#work.end();
    return mine;
  }

  /** Whether it is time to look if others wait for the lock. */
  #isLookDue(): boolean {
    return this.#usedAtMs - this.#heldSinceMs > HOLD_MS && this.#usedAtMs - this.#lookedAtMs >= WANT_CHECK_MS;
  }

  async #giveWay(): Promise<void> {
    this.#lookedAtMs = this.#usedAtMs;
    if (!(await this.#lock.isWanted().catch(() => false))) return;
    await this.#release();
    await new Promise((resolve) => setTimeout(resolve, GIVE_WAY_MS));
  }

  #watchForIdleness(ms: number): void {
    this.#timer = setTimeout(() => {
      this.#timer = null;
      const leftMs = this.#draining !== null ? IDLE_MS : IDLE_MS - (performance.now() - this.#usedAtMs);
      if (!this.#lock.held) return;
      if (leftMs > 0) this.#watchForIdleness(leftMs);
      else this.#draining = this.#letGo();
    }, ms);
    this.#timer.unref();
  }

  async #letGo(): Promise<void> {
    await this.#release();
    this.#draining = null;
    if (this.#jobs.length > 0) this.#draining = this.#drain();
  }

  async #release(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    await this.#work.end();
    // What cannot be removed is taken over from this process once it has ended.
    await this.#lock.release().catch(() => {});
  }
}
