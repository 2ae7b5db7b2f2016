import type { SessionHead } from "../session/log/fold.ts";
import type { SessionStore } from "../session/store.ts";

interface Lookup {
  readonly id: string;
  answer(head: SessionHead | null | PromiseLike<SessionHead | null>): void;
}

/**
 * Batches lookups of heads: all lookups in one turn of the event loop become one call of the store, since a round trip costs more
 * than the read. A caller always gets a head read after its call, never a cached one.
 */
export class HeadBatcher {
  readonly #store: Pick<SessionStore, "head" | "heads">;
  #lookups: Lookup[] = [];

  constructor(store: Pick<SessionStore, "head" | "heads">) {
    this.#store = store;
  }

  /** Like the store's `head`, batched. */
  head(id: string): Promise<SessionHead | null> {
    return new Promise((answer) => {
      if (this.#lookups.push({ id, answer }) === 1) setImmediate(() => this.#flush());
    });
  }

  #flush(): void {
    const lookups = this.#lookups;
    this.#lookups = [];
    // If one session is unreadable, the others are still read, one by one.
    const readEach = (): void => {
      for (const { id, answer } of lookups) answer(this.#store.head(id));
    };
    const answerEach = (heads: readonly (SessionHead | null)[]): void => {
      for (const [index, { answer }] of lookups.entries()) answer(heads[index] ?? null);
    };
    if (lookups.length === 1) readEach();
    else this.#store.heads(lookups.map(({ id }) => id)).then(answerEach, readEach);
  }
}
