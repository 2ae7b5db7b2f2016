import type { EntryDraft } from "../session/entry.ts";
import type { KeptEntries, RunSink } from "./run-sink.ts";

/**
 * Hands a run's entries to its sink in order, one append at a time. What comes while one is under way, or while the sink
 * is being opened, goes together in the next, so that many tools that start at once cost one write.
 */
export class RunWriter {
  readonly #sink: Promise<RunSink>;
  #opened: RunSink | null = null;
  #waiting: Waiting[] = [];
  #busy: Promise<unknown> | null = null;
  #failure: { readonly error: unknown } | null = null;

  constructor(sink: Promise<RunSink>) {
    this.#sink = sink;
  }

  /** Resolves to the entries once they are durable. After one failure everything fails the same way. */
  write(drafts: readonly EntryDraft[]): Promise<KeptEntries> {
    if (this.#busy === null && this.#opened !== null && this.#failure === null)
      return this.#writeNow(this.#opened, drafts);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ drafts, resolve, reject });
      this.#busy ??= this.#drain();
    });
  }

  /** Most of the time nothing else is being written, and then nobody has to stand in a line. */
  #writeNow(sink: RunSink, drafts: readonly EntryDraft[]): Promise<KeptEntries> {
    const writing = sink.append(drafts).then(this.#written, this.#failed);
    this.#busy = writing;
    return writing;
  }

  readonly #written = (kept: KeptEntries): KeptEntries => {
    this.#next();
    return kept;
  };

  readonly #failed = (error: unknown): never => {
    this.#failure ??= { error };
    this.#next();
    throw error;
  };

  #next(): void {
    this.#busy = this.#waiting.length === 0 ? null : this.#drain();
  }

  /** Resolves when nothing is under way; never rejects. */
  async idle(): Promise<void> {
    while (this.#busy !== null) await this.#busy.catch(() => {});
  }

  async #drain(): Promise<void> {
    const sink = await this.#sink.catch((error: unknown) => {
      this.#failure = { error };
      return null;
    });
    this.#opened = sink;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      await this.#append(sink, batch);
    }
    this.#busy = null;
  }

  async #append(sink: RunSink | null, batch: readonly Waiting[]): Promise<void> {
    try {
      if (this.#failure !== null || sink === null) throw this.#failure?.error;
      const { entries, others = [], ...rest } = await sink.append(batch.flatMap(({ drafts }) => drafts));
      let from = 0;
      for (const { drafts, resolve } of batch) {
        // What others added stands before all of them.
        const own = entries.slice(from, from + drafts.length);
        resolve(from === 0 ? { ...rest, entries: own, others } : { entries: own });
        from += drafts.length;
      }
    } catch (error) {
      // What follows would build on an entry that is not there.
      this.#failure ??= { error };
      for (const { reject } of batch) reject(error);
    }
  }
}

/** Drafts that are to be written, and whoever waits for them. */
interface Waiting {
  readonly drafts: readonly EntryDraft[];
  readonly resolve: (kept: KeptEntries) => void;
  readonly reject: (error: unknown) => void;
}
