import { fstatSync } from "node:fs";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import type { StoredEntry } from "../../session/log/append-plan.ts";
import { type Entry, isNode } from "../../session/log/entry.ts";
import { SessionDamagedError, show } from "../../session/errors.ts";
import { EMPTY_PATH, type PathSummary, type SessionHead, stepHead, stepPath } from "../../session/log/fold.ts";
import type { SettingsNode } from "../../session/log/settings.ts";
import type { ReadRange } from "../../session/store-driver.ts";
import type { LinePosition, IndexCoverage, LogIdentity, LogPoint } from "./log-index.ts";
import { jsonErrorOf, knownEntries, parseLine, type RawLine, textsIn } from "./log-line.ts";
import { countLines, OpenFile, type Piece, readLines, readPieces } from "./read-lines.ts";
import { nullIfMissing, StaleView } from "./store-failure.ts";

/** Thrown if the answer is in a part of the log that was not read, because reading began at the index. */
export class WholeLogNeeded extends Error {}

/**
 * The fold of a log as far as it has been read. If it was read from the beginning, it finds entries by id, the paths of
 * nodes, and the file offset of each entry. If it was begun from the index, it has the head, and can only read from the
 * log's beginning, from its end, or from where it was begun.
 */
export class LogState {
  readonly identity: LogIdentity;
  /** The part of the log that the index covers; null if other processes may have changed the index. */
  coverage: IndexCoverage | null;
  /** The position at which reading began. `#seqs`, `#offsets` and `#paths` describe the entries from here on. */
  readonly #start: LinePosition;
  readonly #seqs = new Map<string, number>();
  /** For each entry, the offset of the line that holds it. */
  readonly #offsets: number[] = [];
  readonly #paths: (PathSummary | null)[] = [];
  /** Settings from before the start that later ones refer to. */
  readonly #settings: ReadonlyMap<number, SettingsNode>;
  #head: SessionHead;
  #size: number;

  constructor(identity: LogIdentity, { end, head, settings }: LogPoint, coverage: IndexCoverage | null) {
    this.identity = identity;
    this.coverage = coverage;
    this.#start = end;
    this.#settings = new Map(settings.map((node) => [node.seq, node]));
    this.#head = head;
    this.#size = end.offset;
  }

  get head(): SessionHead {
    return this.#head;
  }

  /** The offset after the last complete line. */
  get size(): number {
    return this.#size;
  }

  /** The fold up to the log's current end, as an index stores it. */
  get point(): LogPoint {
    const settings: SettingsNode[] = [];
    for (let node = this.#head.path.settings; node !== null; ) {
      settings.push(node);
      node = node.before === null ? null : this.settingsAt(node.before);
    }
    return { end: { seq: this.#head.version, offset: this.#size }, head: this.#head, settings };
  }

  /** Folds the next complete lines. @throws {SessionDamagedError} at the first invalid line. */
  fold(lines: readonly RawLine[]): void {
    for (const line of lines) {
      const entries = parseLine(line, this.#head.version);
      if (typeof entries === "string") throw damageAt(this.identity, line, entries);
      let head = this.#head;
      for (const entry of entries) {
        if (this.#seqs.has(entry.id))
          throw damageAt(this.identity, line, `the id ${show(entry.id)} is already used by an earlier entry`);
        const path = this.#pathAfter(head, entry, line);
        head = stepHead(head, entry, path, head.updatedAt);
        this.addEntry({ entry, path: isNode(entry) ? path : null });
      }
      this.advance(line.length, head);
    }
  }

  /** Adds an entry of the next line to the index of entries. */
  addEntry({ entry, path }: StoredEntry): void {
    this.#seqs.set(entry.id, entry.seq);
    this.#offsets.push(this.#size);
    this.#paths.push(path);
  }

  /** Moves past the next line after its entries were added; `head` is the head after it. */
  advance(length: number, head: SessionHead): void {
    this.#head = head;
    this.#size += length;
  }

  /** Sets fields of the head that come from the file itself: the header in its first line, or the time of its last append. */
  amend(fields: Partial<Pick<SessionHead, "header" | "updatedAt">>): void {
    this.#head = freezeDeep({ ...this.#head, ...fields });
  }

  /** The entry with an id, or undefined. @throws {WholeLogNeeded} */
  find(id: string): StoredEntry | undefined {
    const seq = this.#seqOf(id);
    if (seq === undefined) return undefined;
    const [entry] = [...this.readPages({ after: seq - 1, before: seq + 1, limit: 1, reverse: false })].flat();
    if (entry?.id !== id) throw new StaleView("The log has changed.");
    return { entry, path: this.#paths[seq - this.#start.seq] ?? null };
  }

  /** The settings of the `variables` node at a position. @throws {WholeLogNeeded} */
  readonly settingsAt = (seq: number): SettingsNode => {
    const node = this.#paths[seq - this.#start.seq]?.settings ?? this.#settings.get(seq);
    if (node === undefined) throw new WholeLogNeeded();
    return node;
  };

  /**
   * Reads the entries of a range, in the order that the range asks for, in pages. A page is large enough that callers yield
   * to the event loop between two of them. Entries that are appended meanwhile are not included.
   *
   * @throws {StaleView} if another file has replaced the log.
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

  /** The part of the log that holds its first `version` entries. @throws {WholeLogNeeded} */
  prefixOf(version: number): LogPrefix {
    if (version === this.#head.version) return { offset: this.#size, rest: [] };
    const { seq, offset } = this.#beginningOf(version);
    const range = { after: seq - 1, before: version, limit: version - seq, reverse: false };
    return { offset, rest: [...this.readPages(range)].flat() };
  }

  /** Reads from the beginning of a line up to another offset; in reverse, from the end of a line. */
  *#readPages(
    log: OpenFile,
    { seq: start, offset }: LinePosition,
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

  /** The beginning of the line that holds the entry at a position. @throws {WholeLogNeeded} */
  #beginningOf(seq: number): LinePosition {
    const { seq: start } = this.#start;
    if (seq === 0) return { seq: 0, offset: this.identity.headerEnd };
    if (seq < start) throw new WholeLogNeeded();
    const offset = this.#offsets[seq - start] as number;
    let first = seq;
    while (this.#offsets[first - 1 - start] === offset) first -= 1;
    return { seq: first, offset };
  }

  /** The end of the line that holds the entry before a position. @throws {WholeLogNeeded} */
  #endOf(seq: number): LinePosition {
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

  /** The path summary after folding an entry. */
  #pathAfter(head: SessionHead, entry: Entry, line: RawLine): PathSummary {
    if (!isNode(entry) && entry.type !== "leaf") return EMPTY_PATH;
    const id = entry.type === "leaf" ? entry.targetId : entry.parentId;
    const path = this.#pathOf(id, head);
    if (path && entry.type === "leaf") return path;
    if (path && isNode(entry)) return stepPath(path, entry, head.header, this.settingsAt);
    const what = entry.type === "leaf" ? `it moves the leaf to ${show(id)}, which` : `its parent ${show(id)}`;
    const problem = path === null ? "is a fact, not a node" : "does not come before it";
    throw damageAt(this.identity, line, `${what} ${problem}`);
  }

  /** The path of the node with an id; null for a fact, undefined if there is no such entry. @throws {WholeLogNeeded} */
  #pathOf(id: string | null, head: SessionHead): PathSummary | null | undefined {
    if (id === null) return EMPTY_PATH;
    if (id === head.leafId) return head.path;
    const seq = this.#seqOf(id);
    return seq === undefined ? undefined : this.#paths[seq - this.#start.seq];
  }
}

/** The first entries of a log. */
export interface LogPrefix {
  /** The end of the complete lines of the prefix. */
  readonly offset: number;
  /** The entries after them, which are a part of the next line. */
  readonly rest: readonly Entry[];
}

/** Opens a log's file for reading. @throws {StaleView} if the file was removed or replaced. */
export function openLog({ paths, ino }: LogIdentity): OpenFile {
  const file = nullIfMissing(() => new OpenFile(paths.log));
  if (file === null) throw new StaleView("The log's file was removed.");
  if (fstatSync(file.fd).ino === ino) return file;
  file[Symbol.dispose]();
  throw new StaleView("Another file has replaced the log.");
}

/** The error for lines that could be read before and cannot any more. */
function damageIn(identity: LogIdentity, fd: number, { offset, bytes }: Piece): Error {
  for (const lines of readLines(fd, offset, offset + bytes.length)) {
    for (const line of lines) {
      const problem = parseLine(line, 0);
      if (typeof problem === "string") return damageAt(identity, line, problem);
    }
  }
  return new StaleView("The log has changed.");
}

function damageAt(identity: LogIdentity, { offset, bytes }: RawLine, reason: string): SessionDamagedError {
  using log = openLog(identity);
  const line = countLines(log.fd, offset) + 1;
  return new SessionDamagedError({ path: identity.paths.log, line, offset, reason, cause: jsonErrorOf(bytes) });
}
