import type { SessionHead } from "../session/log/fold.ts";
import type { SessionTurn } from "../session/state/state.ts";
import type { SessionStore } from "../session/store.ts";
import { checkTimeout } from "./check-health.ts";
import { readTurns } from "./read-state.ts";
import type { FailureContext, ReportFailure } from "./report-failure.ts";

const SETTLE_MS_DEFAULT = 10_000;

/** A turn as it is passed to a working memory. */
export interface MemoryEntry {
  readonly sessionId: string;
  readonly userId: string | null;
  readonly turn: SessionTurn;
}

/** A memory beside the log. It receives each turn after the turn is durable. */
export interface WorkingMemory {
  add(entry: MemoryEntry): unknown;
}

/** Processes sessions that have ended. It receives each session once, in the process that ended it. */
export interface Consolidator {
  consolidate(session: { readonly sessionId: string; readonly turns: readonly SessionTurn[] }): unknown;
}

/** The parts of `AfterWrite`. */
export interface AfterWriteInit {
  readonly store: SessionStore;
  readonly memory: WorkingMemory | null;
  readonly consolidator: Consolidator | null;
  readonly report: ReportFailure;
}

/** Calls the memory and the consolidator after a durable write, in the background. Their failures are only reported. */
export class AfterWrite {
  readonly #init: AfterWriteInit;
  readonly #pending = new Set<Promise<void>>();

  constructor(init: AfterWriteInit) {
    this.#init = init;
  }

  remember(head: SessionHead, turn: SessionTurn): void {
    const { memory } = this.#init;
    if (memory === null) return;
    const { id: sessionId, userId } = head.header;
    this.#runInBackground({ during: "memory", sessionId }, () => memory.add({ sessionId, userId, turn }));
  }

  consolidate(head: SessionHead): void {
    const { consolidator, store } = this.#init;
    if (consolidator === null) return;
    const sessionId = head.header.id;
    this.#runInBackground({ during: "consolidator", sessionId }, async () => {
      const turns = await readTurns(store, sessionId, head.leafId);
      await consolidator.consolidate({ sessionId, turns });
    });
  }

  /** Resolves to true when no background work is left, or to false after the timeout. */
  async settled(timeoutMs: number = SETTLE_MS_DEFAULT): Promise<boolean> {
    checkTimeout(timeoutMs);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), timeoutMs);
    });
    const done = Promise.all(this.#pending).then(() => true);
    const settled = await Promise.race([done, late]);
    clearTimeout(timer);
    return settled;
  }

  #runInBackground(context: FailureContext, work: () => unknown): void {
    const task = (async () => {
      try {
        await work();
      } catch (error) {
        this.#init.report(error, context);
      }
    })();
    this.#pending.add(task);
    void task.then(() => this.#pending.delete(task));
  }
}
