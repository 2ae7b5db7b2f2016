import type { AddedEntry } from "../../session/log/append-plan.ts";
import type { Entry } from "../../session/log/entry.ts";
import type { SettingsNode } from "../../session/log/settings.ts";
import type { ReadRange } from "../../session/store-driver.ts";

/**
 * The log of one session. A fork shares its list of entries with the log that it was forked from until one of the two
 * appends to it after the other did, so making one costs the same whatever the length.
 */
export class MemoryLog {
  /** The log's own are the first `#version` of them. */
  #entries: AddedEntry[];
  #version: number;
  /** Positions by id, made at the first look-up. */
  #positions: Map<string, number> | null = null;

  constructor(entries: AddedEntry[] = [], version = 0) {
    this.#entries = entries;
    this.#version = version;
  }

  /** A log that begins with so many of this one's first entries. */
  fork(version: number): MemoryLog {
    return new MemoryLog(this.#entries, version);
  }

  /** The entry at a position and the head after it, or undefined outside the log. */
  at(seq: number): AddedEntry | undefined {
    return seq < this.#version ? this.#entries[seq] : undefined;
  }

  /** What the `variables` node at a position holds. */
  settingsAt(seq: number): SettingsNode {
    return this.at(seq)?.path?.settings as SettingsNode;
  }

  /** The entry of that id and the head after it, or undefined. */
  find(id: string): AddedEntry | undefined {
    this.#positions ??= new Map(this.#entries.slice(0, this.#version).map(({ entry }) => [entry.id, entry.seq]));
    return this.at(this.#positions.get(id) ?? -1);
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
  add(added: readonly AddedEntry[]): void {
    if (this.#entries.length > this.#version) this.#entries = this.#entries.slice(0, this.#version);
    for (const each of added) {
      this.#entries.push(each);
      this.#positions?.set(each.entry.id, each.entry.seq);
    }
    this.#version += added.length;
  }

  /** Forgets every entry; forks keep what they begin with. */
  clear(): void {
    this.#entries = [];
  }
}
