import { fstatSync } from "node:fs";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import type { StoredEntry } from "../../session/log/append-plan.ts";
import { type Entry, isNode } from "../../session/log/entry.ts";
import { SessionDamagedError, show } from "../../session/errors.ts";
import { EMPTY_PATH, type PathSummary, type SessionHead, stepHead, stepPath } from "../../session/log/fold.ts";
import type { SettingsNode } from "../../session/log/settings.ts";
import type { ReadRange } from "../../session/store-driver.ts";
import type { Anchor, IndexReach, LogIdentity, LogPoint } from "./log-index.ts";
import { jsonErrorOf, knownEntries, parseLine, type RawLine, textsIn } from "./log-line.ts";
import { countLines, OpenFile, type Piece, readLines, readPieces } from "./read-lines.ts";
import { nullIfMissing, StaleView } from "./store-failure.ts";

/** Thrown where the whole log must be read, as it was begun from its index. */
export class WholeLogNeeded extends Error {}

/**
 * What a log adds up to as far as it has been read. One that was read from its beginning finds entries by id, the paths of
 * nodes, and where in the file each entry stands. One that was begun from the index has the head, and reads from its
 * beginning or its end on.
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

  /** The entry of that id, or undefined. @throws {WholeLogNeeded} */
  find(id: string): StoredEntry | undefined {
    const seq = this.#seqOf(id);
    if (seq === undefined) return undefined;
    const [entry] = [...this.readPages({ after: seq - 1, before: seq + 1, limit: 1, reverse: false })].flat();
    if (entry?.id !== id) throw new StaleView("The log is not what it was.");
    return { entry, path: this.#paths[seq - this.#start.seq] ?? null };
  }

  /** What the `variables` node at a position holds. @throws {WholeLogNeeded} */
  readonly settingsAt = (seq: number): SettingsNode => {
    const node = this.#paths[seq - this.#start.seq]?.settings ?? this.#settings.get(seq);
    if (node === undefined) throw new WholeLogNeeded();
    return node;
  };

  /**
   * Opens the entries of a range, in the order that it asks for, in pages that take long enough to let others have a turn
   * between two. What is appended meanwhile is not among them.
   *
   * @throws {StaleView} when another file is in the log's place.
   * @throws {WholeLogNeeded}
   */
  readPages(range: ReadRange): Iterable<Entry[]> {
    const { after, reverse } = range;
    const before = Math.min(range.before, this.#head.version);
    const limit = Math.min(range.limit, before - after - 1);
    if (limit <= 0) return [];
    const first = reverse ? this.#endOf(before) : this.#beginningOf(after + 1);
    const to = reverse ? this.identity.headerEnd : this.#endOf(Math.max(before, this.#start.seq)).offset;
    return this.#readPages(openLog(this.identity), first, to, { after, before, limit, reverse });
  }

  /** What of the log is its first entries, as many as `version` says. @throws {WholeLogNeeded} */
  upTo(version: number): LogPart {
    if (version === this.#head.version) return { offset: this.#size, rest: [] };
    const { seq, offset } = this.#beginningOf(version);
    const range = { after: seq - 1, before: version, limit: version - seq, reverse: false };
    return { offset, rest: [...this.readPages(range)].flat() };
  }

  /** Reads from the beginning of a line, in reverse from the end of one, up to another offset. */
  *#readPages(
    log: OpenFile,
    { seq: start, offset }: Anchor,
    to: number,
    { after, before, limit, reverse }: ReadRange,
  ): Generator<Entry[], undefined> {
    using file = log;
    let left = limit;
    let seq = start;
    const [from, end] = reverse ? [to, offset] : [offset, to];
    for (const piece of readPieces(file.fd, from, end, reverse)) {
      const texts = textsIn(piece.bytes);
      if (texts === null) throw damageIn(this.identity, file.fd, piece);
      const page: Entry[] = [];
      for (const text of reverse ? texts.reverse() : texts) {
        const entries = knownEntries(text);
        if (entries === null) throw damageIn(this.identity, file.fd, piece);
        for (const entry of reverse ? entries.reverse() : entries) {
          (entry as { seq: number }).seq = reverse ? --seq : seq++;
          if (entry.seq > after && entry.seq < before && page.length < left) page.push(entry);
        }
        if (page.length === left) break;
      }
      yield page;
      left -= page.length;
      if (left === 0) return;
    }
    throw new StaleView("The log is shorter than it was.");
  }

  /** Where the line begins that holds the entry at a position. @throws {WholeLogNeeded} */
  #beginningOf(seq: number): Anchor {
    const { seq: start } = this.#start;
    if (seq === 0) return { seq: 0, offset: this.identity.headerEnd };
    if (seq < start) throw new WholeLogNeeded();
    const offset = this.#offsets[seq - start] as number;
    let first = seq;
    while (this.#offsets[first - 1 - start] === offset) first -= 1;
    return { seq: first, offset };
  }

  /** Where the line ends that holds the entry before a position. @throws {WholeLogNeeded} */
  #endOf(seq: number): Anchor {
    const { seq: start } = this.#start;
    if (seq === start) return this.#start;
    if (seq < start) throw new WholeLogNeeded();
    let next = seq;
    while (next < this.#head.version && this.#offsets[next - start] === this.#offsets[seq - 1 - start]) next += 1;
    return { seq: next, offset: next === this.#head.version ? this.#size : (this.#offsets[next - start] as number) };
  }

  #seqOf(id: string): number | undefined {
    const seq = this.#seqs.get(id);
    if (seq === undefined && this.#start.seq > 0) throw new WholeLogNeeded();
    return seq;
  }

  /** The path that a step with this entry leads to. */
  #pathAfter(head: SessionHead, entry: Entry, line: RawLine): PathSummary {
    if (!isNode(entry) && entry.type !== "leaf") return EMPTY_PATH;
    const id = entry.type === "leaf" ? entry.targetId : entry.parentId;
    const path = this.#pathOf(id, head);
    if (path && entry.type === "leaf") return path;
    if (path && isNode(entry)) return stepPath(path, entry, head.header, this.settingsAt);
    const what = entry.type === "leaf" ? `it moves the leaf to ${show(id)}, which` : `its parent ${show(id)}`;
    const problem = path === null ? "is a fact, not a node" : "does not stand before it";
    throw damageAt(this.identity, line, `${what} ${problem}`);
  }

  /** The path of the node of that id; null for a fact, undefined when there is no such entry. @throws {WholeLogNeeded} */
  #pathOf(id: string | null, head: SessionHead): PathSummary | null | undefined {
    if (id === null) return EMPTY_PATH;
    if (id === head.leafId) return head.path;
    const seq = this.#seqOf(id);
    return seq === undefined ? undefined : this.#paths[seq - this.#start.seq];
  }
}

/** The first entries of a log. */
export interface LogPart {
  /** Where those end that are whole lines. */
  readonly offset: number;
  /** Those that are a part of the next line. */
  readonly rest: readonly Entry[];
}

/** A log's file, opened for reading. @throws {StaleView} when another file is in its place. */
export function openLog({ paths, ino }: LogIdentity): OpenFile {
  const file = nullIfMissing(() => new OpenFile(paths.log));
  if (file === null) throw new StaleView("The log's file is gone.");
  if (fstatSync(file.fd).ino === ino) return file;
  file[Symbol.dispose]();
  throw new StaleView("Another file is in the log's place.");
}

/** What keeps known lines from being read. */
function damageIn(identity: LogIdentity, fd: number, { offset, bytes }: Piece): Error {
  for (const lines of readLines(fd, offset, offset + bytes.length)) {
    for (const line of lines) {
      const problem = parseLine(line, 0);
      if (typeof problem === "string") return damageAt(identity, line, problem);
    }
  }
  return new StaleView("The log is not what it was.");
}

function damageAt(identity: LogIdentity, { offset, bytes }: RawLine, reason: string): SessionDamagedError {
  using log = openLog(identity);
  const line = countLines(log.fd, offset) + 1;
  return new SessionDamagedError({ path: identity.paths.log, line, offset, reason, cause: jsonErrorOf(bytes) });
}
