import type { AddedEntry } from "../../session/append-plan.ts";
import type { Entry } from "../../session/entry.ts";
import type { SettingsNode } from "../../session/settings.ts";
import type { ReadRange } from "../../session/store-driver.ts";

/**
 * The log of one session: what it appended itself, after the beginning of another log that it was forked from. A fork refers
 * to its source and a position, so making one costs the same whatever the length.
 */
export class MemoryLog {
  /** How many entries are the source's. */
  #base: number;
  #source: MemoryLog | null;
  #own: AddedEntry[] = [];
  readonly #positions = new Map<string, number>();

  constructor(base = 0, source: MemoryLog | null = null) {
    this.#base = base;
    this.#source = source;
  }

  /** How many entries the log has. */
  get version(): number {
    return this.#base + this.#own.length;
  }

  /** A log that begins with so many of this one's first entries. */
  fork(version: number): MemoryLog {
    // A log that added nothing is not referred to, so that every step up a chain of forks leads to entries.
    return new MemoryLog(version, version === 0 ? null : this.#holderOf(version - 1));
  }

  /** The entry at a position and the head after it, or undefined outside the log. */
  at(seq: number): AddedEntry | undefined {
    if (seq < 0) return undefined;
    const log = this.#holderOf(seq);
    return log.#own[seq - log.#base];
  }

  /** What the `variables` node at a position holds. */
  settingsAt(seq: number): SettingsNode {
    return this.at(seq)?.path?.settings as SettingsNode;
  }

  /** The entry of that id and the head after it, or undefined. */
  find(id: string): AddedEntry | undefined {
    let end = Number.POSITIVE_INFINITY;
    for (let log: MemoryLog | null = this; log !== null; log = log.#source) {
      const seq = log.#positions.get(id);
      // What the source appended after the fork is not part of this log.
      if (seq !== undefined && seq < end) return log.#own[seq - log.#base];
      end = log.#base;
    }
    return undefined;
  }

  /** The entries of a range, in the order that it asks for. */
  *read({ after, before, limit, reverse }: ReadRange): Generator<Entry, undefined> {
    const first = Math.max(0, after + 1);
    const end = Math.min(before, this.version);
    for (let i = 0; i < end - first && i < limit; i++) {
      const stored = this.at(reverse ? end - 1 - i : first + i);
      // A log that was forgotten under the reader has nothing more to give.
      if (stored === undefined) return;
      yield stored.entry;
    }
  }

  /** Adds the entries that follow. */
  add(added: readonly AddedEntry[]): void {
    for (const each of added) {
      this.#own.push(each);
      this.#positions.set(each.entry.id, each.entry.seq);
    }
  }

  /** Takes over what it begins with from logs that are about to be forgotten. */
  outlive(logs: ReadonlySet<MemoryLog>): void {
    for (let source = this.#source; source !== null && logs.has(source); source = this.#source) {
      const own = this.#own;
      this.#own = [];
      this.add(source.#own.slice(0, this.#base - source.#base));
      for (const each of own) this.#own.push(each);
      this.#base = source.#base;
      this.#source = source.#source;
    }
  }

  /** Forgets every entry that it added. */
  clear(): void {
    this.#own = [];
    this.#positions.clear();
  }

  /** The log of the chain that appended the entry at a position. */
  #holderOf(seq: number): MemoryLog {
    let log: MemoryLog = this;
    while (seq < log.#base) log = log.#source as MemoryLog;
    return log;
  }
}
