import type { EntryDraft } from "../session/entry.ts";
import type { RunSink } from "./run-sink.ts";

/**
 * Hands a run's entries to its sink in order, one append at a time. What comes while one is under way, or while the sink
 * is being opened, goes together in the next, so that many tools that start at once cost one write.
 */
export class RunWriter {
  readonly #sink: Promise<RunSink>;
  #waiting: { readonly drafts: readonly EntryDraft[]; readonly settle: (error?: unknown) => void }[] = [];
  #busy: Promise<void> | null = null;
  #failure: { readonly error: unknown } | null = null;

  constructor(sink: Promise<RunSink>) {
    this.#sink = sink;
  }

  /** Resolves once the entries are durable. After one failure everything fails the same way. */
  write(drafts: readonly EntryDraft[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ drafts, settle: (error) => (error === undefined ? resolve() : reject(error)) });
      this.#busy ??= this.#drain();
    });
  }

  /** Resolves when nothing is under way; never rejects. */
  async idle(): Promise<void> {
    while (this.#busy !== null) await this.#busy;
  }

  async #drain(): Promise<void> {
    const sink = await this.#sink.catch((error: unknown) => {
      this.#failure = { error };
      return null;
    });
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      const error = await this.#append(
        sink,
        batch.flatMap(({ drafts }) => drafts),
      );
      for (const { settle } of batch) settle(error);
    }
    this.#busy = null;
  }

  async #append(sink: RunSink | null, drafts: readonly EntryDraft[]): Promise<unknown> {
    if (this.#failure !== null || sink === null) return this.#failure?.error;
    try {
      await sink.append(drafts);
      return undefined;
    } catch (error) {
      // What follows would build on an entry that is not there.
      this.#failure = { error };
      return error;
    }
  }
}
