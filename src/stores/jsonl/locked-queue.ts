import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { FileLock, REMOTE_STALE_MS, type LockOwner } from "../../internal/file-lock.ts";

/** After this long without a task the lock is released. */
const IDLE_MS = 15;
/** How long a busy holder keeps the lock before it checks whether other processes wait for it. */
const HOLD_MS = 25;
/** How often a busy holder checks for waiters after that. */
const WAITERS_CHECK_MS = 4;
/**
 * How long a holder that released the lock for another process waits before it acquires it again: longer than the pause
 * between two tries of a waiting process.
 */
const BACKOFF_MS = 14;
/** How long a holder works without a heartbeat. */
const HEARTBEAT_AGE_MS_MAX = REMOTE_STALE_MS / 4;

/** Options and callbacks of a `LockedQueue`. */
export interface LockedQueueOptions {
  readonly lockTimeoutMs: number;
  /** Called after the lock was acquired. If it throws, the lock is released and all queued tasks reject. */
  onAcquired?(): Promise<void>;
  /** Called before the lock is released, and when it was lost. Must not throw. */
  onRelease?(): void;
  /** Makes the error for tasks that could not get the lock in time. */
  busy(holder: LockOwner): Error;
}

interface QueuedTask {
  readonly task: () => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * A queue whose tasks run one after another under a file lock. The lock is kept while there are tasks, so that most tasks
 * do not acquire it. It is released when the queue has been idle for 15 ms, or when another process waits for it and this
 * one has had it for 25 ms.
 */
export class LockedQueue {
  readonly #lock: FileLock;
  readonly #options: LockedQueueOptions;
  #queued: QueuedTask[] = [];
  #draining: Promise<void> | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #heldSinceMs = 0;
  #usedAtMs = 0;
  #checkedAtMs = 0;
  #generation = 0;

  constructor(lockPath: string, options: LockedQueueOptions) {
    this.#lock = new FileLock(lockPath);
    this.#options = options;
  }

  /** Queues a task. It runs while no other task does, in this or another process. */
  run<T>(task: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#queued.push({ task, resolve: resolve as QueuedTask["resolve"], reject });
      this.#draining ??= this.#drain();
    });
  }

  /** How often the lock was acquired. While this number stays the same, no other process has held the lock. */
  get generation(): number {
    return this.#generation;
  }

  /** Whether the lock is held and the queue is empty, so that the caller may write synchronously and then call `markUsed`. */
  get ready(): boolean {
    return this.#draining === null && this.#lock.held && this.#lock.heartbeatAgeMs < HEARTBEAT_AGE_MS_MAX;
  }

  /** Records a synchronous use of the lock outside of the queue. */
  markUsed(): void {
    if (!this.#isCheckDue()) return;
    this.#draining = this.#lock.hasWaiters() ? this.#release(BACKOFF_MS) : this.#yieldOnce();
  }

  /** Runs all queued tasks and releases the lock. */
  async close(): Promise<void> {
    while (this.#draining !== null) await this.#draining;
    if (this.#lock.held) await (this.#draining = this.#release(0));
  }

  async #drain(): Promise<void> {
    for (let next = this.#queued.shift(); next !== undefined; next = this.#queued.shift()) {
      const { task, resolve, reject } = next;
      try {
        const stillHeld =
          this.#lock.held && (this.#lock.heartbeatAgeMs < HEARTBEAT_AGE_MS_MAX || (await this.#confirm()));
        if (!stillHeld) await this.#acquire();
      } catch (error) {
        for (const refused of [next, ...this.#queued.splice(0)]) refused.reject(error);
        break;
      }
      const settle = await task().then(
        (value) => () => resolve(value),
        (error: unknown) => () => reject(error),
      );
      const wanted = this.#isCheckDue() && this.#lock.held && this.#lock.hasWaiters();
      // Mark the queue as empty before the caller's promise settles, so that its next append can be synchronous.
      if (this.#queued.length === 0 && !wanted) this.#draining = null;
      settle();
      if (this.#draining === null) return;
      if (wanted) return this.#release(BACKOFF_MS);
    }
    this.#draining = null;
  }

  async #acquire(): Promise<void> {
    const holder = await this.#lock.acquire(this.#options.lockTimeoutMs);
    if (holder !== null) throw this.#options.busy(holder);
    this.#generation += 1;
    try {
      await this.#options.onAcquired?.();
    } catch (error) {
      await this.#lock.release();
      throw error;
    }
    this.#heldSinceMs = this.#usedAtMs = this.#checkedAtMs = performance.now();
    this.#watchForIdleness(IDLE_MS);
  }

  /** Sends a heartbeat. Another process may have taken over the lock if the last one is old, as after a machine's sleep. */
  async #confirm(): Promise<boolean> {
    const stillHeld = await this.#lock.heartbeat();
    if (!stillHeld) this.#options.onRelease?.();
    return stillHeld;
  }

  /** Whether it is time to check for processes that wait for the lock. Called after each use. */
  #isCheckDue(): boolean {
    this.#usedAtMs = performance.now();
    if (this.#usedAtMs - this.#heldSinceMs <= HOLD_MS || this.#usedAtMs - this.#checkedAtMs < WAITERS_CHECK_MS)
      return false;
    this.#checkedAtMs = this.#usedAtMs;
    return true;
  }

  /** Yields to the event loop: a caller that appends synchronously in a loop never does. */
  async #yieldOnce(): Promise<void> {
    await yieldToEventLoop();
    this.#draining = this.#queued.length > 0 ? this.#drain() : null;
  }

  #watchForIdleness(ms: number): void {
    this.#timer = setTimeout(() => {
      this.#timer = null;
      const leftMs = this.#draining !== null ? IDLE_MS : IDLE_MS - (performance.now() - this.#usedAtMs);
      if (!this.#lock.held) return;
      if (leftMs > 0) this.#watchForIdleness(leftMs);
      else this.#draining = this.#release(0);
    }, ms);
    this.#timer.unref();
  }

  /** Releases the lock, and does not acquire it again for `awayMs`. */
  async #release(awayMs: number): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#options.onRelease?.();
    // If the lock file cannot be removed, another process takes the lock over when this one has ended.
    await this.#lock.release().catch(() => {});
    if (awayMs > 0) await new Promise((resolve) => setTimeout(resolve, awayMs));
    this.#draining = this.#queued.length > 0 ? this.#drain() : null;
  }
}
