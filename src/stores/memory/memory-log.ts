import type { AddedEntry, Found, StoredEntry, Wanted } from "../../session/log/append-plan.ts";
import type { Entry } from "../../session/log/entry.ts";
import type { SettingsNode } from "../../session/log/settings.ts";
import type { ReadRange } from "../../session/store-driver.ts";

/** The log of one session. A fork refers to the log of its source, so that forking costs the same at any length. */
export class MemoryLog {
  /** The log of the fork's source; null if this log is not a fork. */
  readonly #source: MemoryLog | null;
  /** How many entries it shares with its source. */
  readonly #start: number;
  readonly #entries: AddedEntry[] = [];
  /** Positions of its own entries by id. The map is built by the first look-up. */
  #positions: Map<string, number> | null = null;
  #cleared = false;

  constructor(source: MemoryLog | null = null, start = 0) {
    this.#source = source;
    this.#start = start;
  }

  get #version(): number {
    return this.#cleared ? 0 : this.#start + this.#entries.length;
  }

  /** A log that begins with the first `version` entries of this one. */
  fork(version: number): MemoryLog {
    return new MemoryLog(this, version);
  }

  /** The entry at a position and the head after it, or undefined outside the log. */
  at(seq: number): AddedEntry | undefined {
    if (seq < 0 || seq >= this.#version) return undefined;
    let log: MemoryLog = this;
    while (seq < log.#start) log = log.#source as MemoryLog;
    return log.#entries[seq - log.#start];
  }

  /** The settings of the `variables` node at a position. */
  settingsAt(seq: number): SettingsNode {
    return this.at(seq)?.path?.settings as SettingsNode;
  }

  /** The entry with an id and the head after it, or undefined. */
  find(id: string): AddedEntry | undefined {
    let end = this.#version;
    for (let log: MemoryLog | null = this; log !== null; log = log.#source) {
      log.#positions ??= new Map(log.#entries.map(({ entry }) => [entry.id, entry.seq]));
      const seq = log.#positions.get(id);
      if (seq !== undefined && seq < end) return this.at(seq);
      end = Math.min(end, log.#start);
    }
    return undefined;
  }

  /** The entries of a range, in the order that the range asks for. */
  *read({ after, before, limit, reverse }: ReadRange): Generator<Entry, undefined> {
    const first = Math.max(0, after + 1);
    const end = Math.min(before, this.#version);
    for (let i = 0; i < end - first && i < limit; i++) {
      const stored = this.at(reverse ? end - 1 - i : first + i);
      // The log was cleared while it was read, so there are no further entries.
      if (stored === undefined) return;
      yield stored.entry;
    }
  }

  /** Appends entries. */
  add(added: readonly AddedEntry[]): this {
    for (const each of added) {
      this.#entries.push(each);
      this.#positions?.set(each.entry.id, each.entry.seq);
    }
    return this;
  }

  /** Removes every entry. Forks keep the entries that they share with this log. */
  clear(): void {
    this.#cleared = true;
  }
}

/** Looks up what an append plan needs in a log that can be read synchronously. */
export function lookUpWanted(log: LogEntries, { ids, settings }: Wanted): Found {
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
