import type { AddedEntry, Found, StoredEntry, Wanted } from "../../session/log/append-plan.ts";
import type { Entry } from "../../session/log/entry.ts";
import type { SettingsNode } from "../../session/log/settings.ts";
import type { ReadRange } from "../../session/store-driver.ts";

/** The log of one session. A fork refers to the log that it begins with, so that making one costs the same whatever the length. */
export class MemoryLog {
  readonly #before: MemoryLog | null;
  /** How many entries it has of the one before. */
  readonly #start: number;
  readonly #entries: AddedEntry[] = [];
  /** Positions of its own entries by id, made at the first look-up. */
  #positions: Map<string, number> | null = null;
  #forgotten = false;

  constructor(before: MemoryLog | null = null, start = 0) {
    this.#before = before;
    this.#start = start;
  }

  get #version(): number {
    return this.#forgotten ? 0 : this.#start + this.#entries.length;
  }

  /** A log that begins with so many of this one's first entries. */
  fork(version: number): MemoryLog {
    return new MemoryLog(this, version);
  }

  /** The entry at a position and the head after it, or undefined outside the log. */
  at(seq: number): AddedEntry | undefined {
    if (seq < 0 || seq >= this.#version) return undefined;
    let log: MemoryLog = this;
    while (seq < log.#start) log = log.#before as MemoryLog;
    return log.#entries[seq - log.#start];
  }

  /** What the `variables` node at a position holds. */
  settingsAt(seq: number): SettingsNode {
    return this.at(seq)?.path?.settings as SettingsNode;
  }

  /** The entry of that id and the head after it, or undefined. */
  find(id: string): AddedEntry | undefined {
    let end = this.#version;
    for (let log: MemoryLog | null = this; log !== null; log = log.#before) {
      log.#positions ??= new Map(log.#entries.map(({ entry }) => [entry.id, entry.seq]));
      const seq = log.#positions.get(id);
      if (seq !== undefined && seq < end) return this.at(seq);
      end = Math.min(end, log.#start);
    }
    return undefined;
  }

  /** The entries of a range, in the order that it asks for. */
  *read({ after, before, limit, reverse }: ReadRange): Generator<Entry, undefined> {
    const first = Math.max(0, after + 1);
    const end = Math.min(before, this.#version);
    for (let i = 0; i < end - first && i < limit; i++) {
      const stored = this.at(reverse ? end - 1 - i : first + i);
      // A log that was forgotten under the reader has nothing more to give.
      if (stored === undefined) return;
      yield stored.entry;
    }
  }

  /** Adds the entries that follow. */
  add(added: readonly AddedEntry[]): this {
    for (const each of added) {
      this.#entries.push(each);
      this.#positions?.set(each.entry.id, each.entry.seq);
    }
    return this;
  }

  /** Forgets every entry; forks keep what they begin with. */
  clear(): void {
    this.#forgotten = true;
  }
}

/** What a plan wants to know of a log that answers at once. */
export function lookInto(log: LogEntries, { ids, settings }: Wanted): Found {
  const entries = new Map<string, StoredEntry>();
  for (const id of ids) {
    const stored = log.find(id);
    if (stored !== undefined) entries.set(id, stored);
  }
  return { entries, settings: new Map(settings.map((seq) => [seq, log.settingsAt(seq)])) };
}

interface LogEntries {
  find(id: string): StoredEntry | undefined;
  settingsAt(seq: number): SettingsNode;
}
