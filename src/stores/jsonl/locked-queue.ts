import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { FileLock, FOREIGN_SILENCE_MS_MAX, type LockOwner } from "../../internal/file-lock.ts";

/** After how long without a task the lock is let go. */
const IDLE_MS = 15;
/** How long a busy holder keeps the lock before it looks whether others want it. */
const HOLD_MS = 25;
const WANT_CHECK_MS = 4;
/** How long a holder that gives way stays away: longer than those who wait sleep between two tries. */
const GIVE_WAY_MS = 14;
/** How long a holder works without showing that it lives. */
const SILENCE_MS_MAX = FOREIGN_SILENCE_MS_MAX / 4;

/** What goes with taking and letting go of a lock. */
export interface LockedQueueOptions {
  readonly lockTimeoutMs: number;
  /** Gets ready after the lock was taken. When it throws, the lock is let go and the tasks are refused. */
  begin?(): Promise<void>;
  /** Puts things in order before the lock is let go. Must not throw. */
  end?(): void;
  /** The error for someone who waited too long for the lock. */
  busy(holder: LockOwner): Error;
}

interface Waiting {
  readonly task: () => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Does tasks one after another under a lock among processes. The lock is kept while there is work, so that it costs
 * nothing a task, and let go soon after, or when another process has waited for a moment.
 */
export class LockedQueue {
  readonly #lock: FileLock;
  readonly #options: LockedQueueOptions;
  #waiting: Waiting[] = [];
  #draining: Promise<void> | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #heldSinceMs = 0;
  #usedAtMs = 0;
  #lookedAtMs = 0;
  #generation = 0;

  constructor(lockPath: string, options: LockedQueueOptions) {
    this.#lock = new FileLock(lockPath);
    this.#options = options;
  }

  /** Runs a task while no other one does. */
  run<T>(task: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ task, resolve: resolve as Waiting["resolve"], reject });
      this.#draining ??= this.#drain();
    });
  }

  /** How often the lock has been taken: while this stays the same, no other holder came between. */
  get generation(): number {
    return this.#generation;
  }

  /** Whether the lock is held and nothing is under way, so that something may be done at once; tell with `used` that it was. */
  get ready(): boolean {
    return this.#draining === null && this.#lock.held && this.#lock.silentMs < SILENCE_MS_MAX;
  }

  /** Notes that something was done outside of a turn. */
  used(): void {
    if (!this.#isLookDue()) return;
    this.#draining = this.#lock.isWanted() ? this.#letGo(GIVE_WAY_MS) : this.#giveTurn();
  }

  /** Finishes what waits and lets go of the lock. */
  async close(): Promise<void> {
    while (this.#draining !== null) await this.#draining;
    if (this.#lock.held) await (this.#draining = this.#letGo(0));
  }

  async #drain(): Promise<void> {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const { task, resolve, reject } = next;
      try {
        const mine = this.#lock.held && (this.#lock.silentMs < SILENCE_MS_MAX || (await this.#confirm()));
        if (!mine) await this.#take();
      } catch (error) {
        for (const refused of [next, ...this.#waiting.splice(0)]) refused.reject(error);
        break;
      }
      const settle = await task().then(
        (value) => () => resolve(value),
        (error: unknown) => () => reject(error),
      );
      const wanted = this.#isLookDue() && this.#lock.held && this.#lock.isWanted();
      // Whoever is told now and comes back at once must find nothing under way, so that it need not wait.
      if (this.#waiting.length === 0 && !wanted) this.#draining = null;
      settle();
      if (this.#draining === null) return;
      if (wanted) return this.#letGo(GIVE_WAY_MS);
    }
    this.#draining = null;
  }

  async #take(): Promise<void> {
    const holder = await this.#lock.acquire(this.#options.lockTimeoutMs);
    if (holder !== null) throw this.#options.busy(holder);
    this.#generation += 1;
    try {
      await this.#options.begin?.();
    } catch (error) {
      await this.#lock.release();
      throw error;
    }
    this.#heldSinceMs = this.#usedAtMs = this.#lookedAtMs = performance.now();
    this.#watchForIdleness(IDLE_MS);
  }

  /** A holder that was silent for long, as a sleeping machine is, may have lost the lock. */
  async #confirm(): Promise<boolean> {
    const mine = await this.#lock.refresh();
    if (!mine) this.#options.end?.();
    return mine;
  }

  /** Whether it is time to look if others wait for the lock; called after each use. */
  #isLookDue(): boolean {
    this.#usedAtMs = performance.now();
    if (this.#usedAtMs - this.#heldSinceMs <= HOLD_MS || this.#usedAtMs - this.#lookedAtMs < WANT_CHECK_MS)
      return false;
    this.#lookedAtMs = this.#usedAtMs;
    return true;
  }

  /** Lets others in this process have a turn, which a loop of things that are done at once never does. */
  async #giveTurn(): Promise<void> {
    await yieldToEventLoop();
    this.#draining = this.#waiting.length > 0 ? this.#drain() : null;
  }

  #watchForIdleness(ms: number): void {
    this.#timer = setTimeout(() => {
      this.#timer = null;
      const leftMs = this.#draining !== null ? IDLE_MS : IDLE_MS - (performance.now() - this.#usedAtMs);
      if (!this.#lock.held) return;
      if (leftMs > 0) this.#watchForIdleness(leftMs);
      else this.#draining = this.#letGo(0);
    }, ms);
    this.#timer.unref();
  }

  /** Lets go of the lock, and stays away for a while. */
  async #letGo(awayMs: number): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#options.end?.();
    // What cannot be removed is taken over from this process once it has ended.
    await this.#lock.release().catch(() => {});
    if (awayMs > 0) await new Promise((resolve) => setTimeout(resolve, awayMs));
    this.#draining = this.#waiting.length > 0 ? this.#drain() : null;
  }
}
