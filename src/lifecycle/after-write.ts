import type { SessionHead } from "../session/log/fold.ts";
import type { SessionTurn } from "../session/state/state.ts";
import type { SessionStore } from "../session/store.ts";
import { checkTimeout } from "./check-health.ts";
import { readTurns } from "./read-state.ts";
import type { FailureContext, ReportFailure } from "./report-failure.ts";

const SETTLE_MS_DEFAULT = 10_000;

/** A turn as a working memory gets it. */
export interface MemoryEntry {
  readonly sessionId: string;
  readonly userId: string | null;
  readonly turn: SessionTurn;
}

/** Remembers what was said, beside the log. It gets each turn as soon as that is durable. */
export interface WorkingMemory {
  add(entry: MemoryEntry): unknown;
}

/** Makes something lasting of a session that has ended. It gets each session once, by the process that ended it. */
export interface Consolidator {
  consolidate(session: { readonly sessionId: string; readonly turns: readonly SessionTurn[] }): unknown;
}

/** What follows a write. */
export interface AfterWriteInit {
  readonly store: SessionStore;
  readonly memory: WorkingMemory | null;
  readonly consolidator: Consolidator | null;
  readonly report: ReportFailure;
}

/** Tells memory and consolidator after a durable write. Nobody waits for them, and their failures are only reported. */
export class AfterWrite {
  readonly #init: AfterWriteInit;
  readonly #underWay = new Set<Promise<void>>();

  constructor(init: AfterWriteInit) {
    this.#init = init;
  }

  remember(head: SessionHead, turn: SessionTurn): void {
    const { memory } = this.#init;
    if (memory === null) return;
    const { id: sessionId, userId } = head.header;
    this.#follow({ during: "memory", sessionId }, () => memory.add({ sessionId, userId, turn }));
  }

  consolidate(head: SessionHead): void {
    const { consolidator, store } = this.#init;
    if (consolidator === null) return;
    const sessionId = head.header.id;
    this.#follow({ during: "consolidator", sessionId }, async () => {
      const turns = await readTurns(store, sessionId, head.leafId);
      await consolidator.consolidate({ sessionId, turns });
    });
  }

  /** Resolves when nothing is under way, or when the time is over; false in the latter case. */
  async settled(timeoutMs: number = SETTLE_MS_DEFAULT): Promise<boolean> {
    checkTimeout(timeoutMs);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), timeoutMs);
    });
    const done = Promise.all(this.#underWay).then(() => true);
    const settled = await Promise.race([done, late]);
    clearTimeout(timer);
    return settled;
  }

  #follow(context: FailureContext, work: () => unknown): void {
    const following = (async () => {
      try {
        await work();
      } catch (error) {
        this.#init.report(error, context);
      }
    })();
    this.#underWay.add(following);
    void following.then(() => this.#underWay.delete(following));
  }
}
