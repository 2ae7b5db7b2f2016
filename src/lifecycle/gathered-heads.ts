import type { SessionHead } from "../session/log/fold.ts";
import type { SessionStore } from "../session/store.ts";

interface Asked {
  readonly id: string;
  answer(head: SessionHead | null | PromiseLike<SessionHead | null>): void;
}

/**
 * Looks up together what is asked for in one turn of the event loop. Requests come in several at a time, and for a store
 * the way there and back costs more than what is read. Whoever asks gets what was stored after they asked, never before.
 */
export class GatheredHeads {
  readonly #store: Pick<SessionStore, "head" | "heads">;
  #asked: Asked[] = [];

  constructor(store: Pick<SessionStore, "head" | "heads">) {
    this.#store = store;
  }

  /** What the store's `head` gives. */
  head(id: string): Promise<SessionHead | null> {
    return new Promise((answer) => {
      if (this.#asked.push({ id, answer }) === 1) setImmediate(() => this.#answerAll());
    });
  }

  #answerAll(): void {
    const asked = this.#asked;
    this.#asked = [];
    // One that cannot be read must not keep the others from theirs.
    const askEach = (): void => {
      for (const { id, answer } of asked) answer(this.#store.head(id));
    };
    const answerEach = (heads: readonly (SessionHead | null)[]): void => {
      for (const [index, { answer }] of asked.entries()) answer(heads[index] ?? null);
    };
    if (asked.length === 1) askEach();
    else this.#store.heads(asked.map(({ id }) => id)).then(answerEach, askEach);
  }
}
