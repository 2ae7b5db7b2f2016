import { untilAborted } from "../../agent/follow-abort.ts";

/** Wakes those of this process who wait for a session. Nobody relies on it: who waits looks again by itself. */
export class SessionBell {
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Wakes everyone who waits for a session. */
  ring(sessionId: string): void {
    for (const wake of this.#waiting.get(sessionId) ?? []) wake();
  }

  /** Resolves when the bell rings for a session, or after a time; rejects with the reason of an abort. */
  async wait(sessionId: string, ms: number, signal: AbortSignal): Promise<void> {
    let wake: () => void = () => {};
    const woken = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const waiting = this.#waiting.get(sessionId) ?? new Set();
    this.#waiting.set(sessionId, waiting.add(wake));
    const timer = setTimeout(wake, ms);
    try {
      await untilAborted(woken, signal);
    } finally {
      clearTimeout(timer);
      waiting.delete(wake);
      if (waiting.size === 0) this.#waiting.delete(sessionId);
    }
  }
}
