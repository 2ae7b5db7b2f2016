import { closeSync, fstatSync, openSync } from "node:fs";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import type { StoredEntry } from "../../session/log/append-plan.ts";
import { type Entry, isNode } from "../../session/log/entry.ts";
import { SessionDamagedError, show } from "../../session/errors.ts";
import { EMPTY_PATH, type PathSummary, type SessionHead, stepHead, stepPath } from "../../session/log/fold.ts";
import type { SettingsNode } from "../../session/log/settings.ts";
import type { ReadRange } from "../../session/store-driver.ts";
import type { Anchor, IndexReach, LogIdentity, LogPoint } from "./log-index.ts";
import { countEntries, entriesIn, parseLine, type RawLine } from "./log-line.ts";
import { countLines, readLines, readLinesBackward } from "./read-lines.ts";

/** For how many reads it is remembered where the next one goes on. */
const CONTINUATIONS_MAX = 64;

/** What is known of a log does not fit its file any more: it must be loaded anew. */
export class StaleView extends Error {}

/** Thrown where the whole log must be read, as it was begun from its index. */
export class WholeLogNeeded extends Error {}

/**
 * What a log adds up to as far as it has been read. One that was read from its beginning finds entries by id and the paths
 * of nodes. One that was begun from the index has the head, and reads ranges.
 */
export class LogState {
  readonly identity: LogIdentity;
  /** How far the index reaches; null where others may have written to it. */
  reach: IndexReach | null;
  /** Where it was begun. All that follows up to `#paths` is of the entries from there on, by position. */
  readonly #start: Anchor;
  readonly #seqs = new Map<string, number>();
  /** Where the lines begin that the entries stand in. */
  readonly #offsets: number[] = [];
  readonly #paths: (PathSummary | null)[] = [];
  /** Settings from before the start that later ones lead to. */
  readonly #settings: ReadonlyMap<number, SettingsNode>;
  /** Where reads before the start go on, by the first position that is left; in reverse, by its negative. */
  readonly #continuations = new Map<number, Anchor>();
  #head: SessionHead;
  #size: number;

  constructor(identity: LogIdentity, { end, head, settings }: LogPoint, reach: IndexReach | null) {
    this.identity = identity;
    this.reach = reach;
    this.#start = end;
    this.#settings = new Map(settings.map((node) => [node.seq, node]));
    this.#head = head;
    this.#size = end.offset;
  }

  get head(): SessionHead {
    return this.#head;
  }

  /** The offset after the last whole line. */
  get size(): number {
    return this.#size;
  }

  /** What an index says of the log's present end. */
  get point(): LogPoint {
    const settings: SettingsNode[] = [];
    for (let node = this.#head.path.settings; node !== null; ) {
      settings.push(node);
      node = node.before === null ? null : this.settingsAt(node.before);
    }
    return { end: { seq: this.#head.version, offset: this.#size }, head: this.#head, settings };
  }

  /** Folds whole lines that follow. @throws {SessionDamagedError} at the first that cannot follow. */
  fold(lines: readonly RawLine[]): void {
    for (const line of lines) {
      const entries = parseLine(line, this.#head.version);
      if (typeof entries === "string") throw damageAt(this.identity, line, entries);
      let head = this.#head;
      for (const entry of entries) {
        if (this.#seqs.has(entry.id))
          throw damageAt(this.identity, line, `the id ${show(entry.id)} stands before it already`);
        const path = this.#pathAfter(head, entry, line);
        head = stepHead(head, entry, path, head.updatedAt);
        this.learn({ entry, path: isNode(entry) ? path : null });
      }
      this.advance(line.length, head);
    }
  }

  /** Takes over an entry of the next line. */
  learn({ entry, path }: StoredEntry): void {
    this.#seqs.set(entry.id, entry.seq);
    this.#offsets.push(this.#size);
    this.#paths.push(path);
  }

  /** Takes over the next line, whose entries were learned, with what it makes of the head. */
  advance(length: number, head: SessionHead): void {
    this.#head = head;
    this.#size += length;
  }

  /** Takes over what the file says of itself: the header in its first line, and the time of its last append. */
  amend(fields: Partial<Pick<SessionHead, "header" | "updatedAt">>): void {
    this.#head = freezeDeep({ ...this.#head, ...fields });
  }

  /** The entry of that id, or null. @throws {WholeLogNeeded} */
  find(id: string): Entry | null {
    const seq = this.#seqOf(id);
    if (seq === undefined) return null;
    const [entry] = this.read({ after: seq - 1, before: seq + 1, limit: 1, reverse: false });
    if (entry?.id !== id) throw new StaleView("The log is not what it was.");
    return entry;
  }

  /** The path of the node of that id; null for a fact, undefined when there is no such entry. @throws {WholeLogNeeded} */
  pathOf(id: string | null): PathSummary | null | undefined {
    if (id === null) return EMPTY_PATH;
    if (id === this.#head.leafId) return this.#head.path;
    const seq = this.#seqOf(id);
    return seq === undefined ? undefined : this.#paths[seq - this.#start.seq];
  }

  /** What the `variables` node at a position holds. @throws {WholeLogNeeded} */
  readonly settingsAt = (seq: number): SettingsNode => {
    const node = this.#paths[seq - this.#start.seq]?.settings ?? this.#settings.get(seq);
    if (node === undefined) throw new WholeLogNeeded();
    return node;
  };

  /**
   * Opens the entries of a range, in the order that it asks for. What is appended meanwhile is not among them. Null is a
   * moment to let others have a turn.
   *
   * @throws {StaleView} when another file is in the log's place.
   */
  read({ after, before, limit, reverse }: ReadRange): Generator<Entry | null, undefined> {
    const low = Math.max(0, after + 1);
    const high = Math.min(before, this.#head.version);
    const left = Math.min(limit, high - low);
    if (left <= 0) return nothing();
    const first = reverse ? this.#endOf(high) : this.#beginningOf(low);
    const to = reverse ? this.identity.headerEnd : this.#endOf(high).offset;
    return this.#readEntries(openLog(this.identity), { low, high, left, reverse, first, to });
  }

  /** What of the log is its first entries, as many as `version` says. @throws {WholeLogNeeded} */
  upTo(version: number): LogPart {
    if (version === this.#head.version) return { offset: this.#size, rest: [] };
    if (version > 0 && version < this.#start.seq) throw new WholeLogNeeded();
    const { seq, offset } = this.#beginningOf(version);
    const range = { after: seq - 1, before: version, limit: version - seq, reverse: false };
    return { offset, rest: [...this.read(range)].filter((entry) => entry !== null) };
  }

  *#readEntries(fd: number, { low, high, reverse, first, to, ...read }: Read): Generator<Entry | null, undefined> {
    let { left } = read;
    let { seq } = first;
    const groups = reverse ? readLinesBackward(fd, first.offset, to) : readLines(fd, first.offset, to);
    try {
      for (const lines of groups) {
        for (const line of lines) {
          const count = countEntries(line);
          if (typeof count === "string") throw damageAt(this.identity, line, count);
          const from = reverse ? seq - count : seq;
          seq = reverse ? from : from + count;
          if (from >= high || from + count <= low) continue;
          const entries = entriesIn(line, from);
          if (typeof entries === "string") throw damageAt(this.identity, line, entries);
          if (reverse) entries.reverse();
          for (const entry of entries) {
            if (entry.seq < low || entry.seq >= high) continue;
            if (left === 1) this.#continueAt(entry.seq, line, { first: from, count, reverse });
            yield entry;
            if (--left === 0) return;
          }
        }
        yield null;
      }
    } finally {
      closeSync(fd);
    }
    throw new StaleView("The log is shorter than it was.");
  }

  /** The place of the line that holds the entry at a position, or one before it. */
  #beginningOf(seq: number): Anchor {
    const { seq: start } = this.#start;
    if (seq < start) return this.#continuations.get(seq) ?? { seq: 0, offset: this.identity.headerEnd };
    const offset = this.#offsets[seq - start] as number;
    let first = seq;
    while (this.#offsets[first - 1 - start] === offset) first -= 1;
    return { seq: first, offset };
  }

  /** The place after the line that holds the entry before a position, or a later one. */
  #endOf(seq: number): Anchor {
    const { seq: start } = this.#start;
    if (seq <= start) return this.#continuations.get(-seq) ?? this.#start;
    let next = seq;
    while (next < this.#head.version && this.#offsets[next - start] === this.#offsets[seq - 1 - start]) next += 1;
    return { seq: next, offset: next === this.#head.version ? this.#size : (this.#offsets[next - start] as number) };
  }

  /** Remembers where a read goes on that ended with an entry of a line, as the next one often does. */
  #continueAt(
    seq: number,
    { offset, length }: RawLine,
    { first, count, reverse }: { readonly first: number; readonly count: number; readonly reverse: boolean },
  ): void {
    if (seq >= this.#start.seq) return;
    const [oldest] = this.#continuations.keys();
    if (this.#continuations.size === CONTINUATIONS_MAX) this.#continuations.delete(oldest as number);
    // Where entries of the line are left, the next read begins with it again.
    const whole = seq === (reverse ? first : first + count - 1);
    const before = { seq: first, offset };
    const after = { seq: first + count, offset: offset + length };
    this.#continuations.set(reverse ? -seq : seq + 1, whole === reverse ? before : after);
  }

  #seqOf(id: string): number | undefined {
    const seq = this.#seqs.get(id);
    if (seq === undefined && this.#start.seq > 0) throw new WholeLogNeeded();
    return seq;
  }

  /** The path that a step with this entry leads to. */
  #pathAfter(head: SessionHead, entry: Entry, line: RawLine): PathSummary {
    const pathOf = (id: string | null): PathSummary | null | undefined =>
      id === head.leafId ? head.path : this.pathOf(id);
    if (isNode(entry)) {
      const parent = pathOf(entry.parentId);
      if (parent) return stepPath(parent, entry, head.header, this.settingsAt);
      const problem = parent === null ? "is a fact, not a node" : "does not stand before it";
      throw damageAt(this.identity, line, `its parent ${show(entry.parentId)} ${problem}`);
    }
    if (entry.type !== "leaf") return EMPTY_PATH;
    const target = pathOf(entry.targetId);
    if (target) return target;
    const problem = target === null ? "is a fact, not a node" : "does not stand before it";
    throw damageAt(this.identity, line, `it moves the leaf to ${show(entry.targetId)}, which ${problem}`);
  }
}

/** The first entries of a log. */
export interface LogPart {
  /** Where those end that are whole lines. */
  readonly offset: number;
  /** Those that are a part of the next line. */
  readonly rest: readonly Entry[];
}

/** A read that is under way. */
interface Read {
  /** The first position, and the one after the last. */
  readonly low: number;
  readonly high: number;
  /** How many entries at most, and at least one. */
  readonly left: number;
  readonly reverse: boolean;
  /** The first line that is read; in reverse, the one after it. */
  readonly first: Anchor;
  /** The offset up to which it is read. */
  readonly to: number;
}

function* nothing(): Generator<null, undefined> {}

/** A log's file, opened for reading. @throws {StaleView} when another file is in its place. */
export function openLog({ places, ino }: LogIdentity): number {
  let fd: number;
  try {
    fd = openSync(places.log, "r");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") throw new StaleView("The log's file is gone.", { cause });
    throw cause;
  }
  if (fstatSync(fd).ino === ino) return fd;
  closeSync(fd);
  throw new StaleView("Another file is in the log's place.");
}

function damageAt(identity: LogIdentity, { offset }: RawLine, reason: string): SessionDamagedError {
  const fd = openLog(identity);
  try {
    return new SessionDamagedError({ path: identity.places.log, line: countLines(fd, offset) + 1, offset, reason });
  } finally {
    closeSync(fd);
  }
}
