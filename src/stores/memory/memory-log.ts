import type { AppendPlan, StoredEntry } from "../../session/append-plan.ts";
import { EMPTY_PATH, type PathSummary, type SessionHead, stepHead } from "../../session/fold.ts";
import type { SettingsNode } from "../../session/settings.ts";

const SNAPSHOT_ENTRIES = 64;

/**
 * The log of one session: what it appended itself, after the beginning of another log that it was forked from.
 *
 * A fork refers to its source and a position, so making one costs the same whatever the length. Every log of a chain of
 * forks adds at least one entry to it, and each knows one further up, so that a position is found in a number of steps
 * that grows with the logarithm of the chain.
 */
export class MemoryLog {
  /** How many entries are the source's. */
  readonly base: number;
  readonly source: MemoryLog | null;
  readonly #depth: number;
  readonly #jump: MemoryLog;
  readonly #own: StoredEntry[] = [];
  readonly #positions = new Map<string, number>();
  /** Heads at some positions, in order, the first at `base`: the head anywhere else is a few steps from one. */
  #snapshots: SessionHead[];

  /** `head` is what the entries taken over add up to. */
  constructor(head: SessionHead, source: MemoryLog | null = null) {
    this.base = head.version;
    this.source = source;
    this.#snapshots = [head];
    this.#depth = source === null ? 0 : source.#depth + 1;
    this.#jump = source === null ? this : source.#jumpOfNext();
  }

  /** How many entries the log has. */
  get version(): number {
    return this.base + this.#own.length;
  }

  /** A log that begins with this one's first entries, as many as `head` says. */
  fork(head: SessionHead): MemoryLog {
    return new MemoryLog(head, head.version === 0 ? null : this.#holderOf(head.version - 1));
  }

  /** The entry at a position, or undefined outside the log. */
  at(seq: number): StoredEntry | undefined {
    if (seq < 0) return undefined;
    const log = this.#holderOf(seq);
    return log.#own[seq - log.base];
  }

  /** What the `variables` node at a position holds. */
  settingsAt(seq: number): SettingsNode {
    return this.at(seq)?.path?.settings as SettingsNode;
  }

  find(id: string): StoredEntry | undefined {
    let end = Number.POSITIVE_INFINITY;
    for (let log: MemoryLog | null = this; log !== null; log = log.source) {
      const seq = log.#positions.get(id);
      // What the source appended after the fork is not part of this log.
      if (seq !== undefined && seq < end) return log.#own[seq - log.base];
      end = log.base;
    }
    return undefined;
  }

  /** Adds what a plan on this log's head says. */
  add({ added, head }: AppendPlan): void {
    for (const { entry, path } of added) {
      this.#own.push({ entry, path });
      this.#positions.set(entry.id, entry.seq);
    }
    const last = this.#snapshots.at(-1) as SessionHead;
    if (head.version - last.version >= SNAPSHOT_ENTRIES) this.#snapshots.push(head);
  }

  /** What the first entries add up to, at least one of them; the header is that of the session that appended them. */
  headAt(version: number): SessionHead {
    return this.#holderOf(version - 1).#foldTo(version);
  }

  /** Forgets every entry from a position on. */
  cut(version: number): void {
    const dropped = this.#own.splice(Math.max(0, version - this.base));
    for (const { entry } of dropped) this.#positions.delete(entry.id);
    this.#snapshots = this.#snapshots.filter((head, index) => index === 0 || head.version <= version);
  }

  #foldTo(version: number): SessionHead {
    const index = lastAtMost(this.#snapshots, version);
    let head = this.#snapshots[index] as SessionHead;
    const filled: SessionHead[] = [];
    while (head.version < version) {
      const { entry, path } = this.#own[head.version - this.base] as StoredEntry;
      const target = entry.type === "leaf" ? this.#pathOf(entry.targetId) : EMPTY_PATH;
      head = stepHead(head, entry, path ?? target, head.updatedAt);
      // A large append leaves a gap in the snapshots, which the first who has to cross it fills.
      if ((head.version - this.base) % SNAPSHOT_ENTRIES === 0) filled.push(head);
    }
    if (filled.length > 0) {
      this.#snapshots = [...this.#snapshots.slice(0, index + 1), ...filled, ...this.#snapshots.slice(index + 1)];
    }
    return head;
  }

  #pathOf(id: string | null): PathSummary {
    return (id === null ? null : this.find(id)?.path) ?? EMPTY_PATH;
  }

  /** The log of the chain that appended the entry at a position. */
  #holderOf(seq: number): MemoryLog {
    let log: MemoryLog = this;
    while (seq < log.base) log = seq < log.#jump.base ? log.#jump : (log.source as MemoryLog);
    return log;
  }

  /** Where a fork of this log jumps to: jumps of equal length are joined, which keeps every way up short. */
  #jumpOfNext(): MemoryLog {
    const jump = this.#jump;
    return this.#depth - jump.#depth === jump.#depth - jump.#jump.#depth ? jump.#jump : this;
  }
}

function lastAtMost(snapshots: readonly SessionHead[], version: number): number {
  let [low, high] = [0, snapshots.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((snapshots[middle] as SessionHead).version <= version) low = middle;
    else high = middle - 1;
  }
  return low;
}
