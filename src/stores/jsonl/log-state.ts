import { closeSync, fstatSync, openSync } from "node:fs";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import type { StoredEntry } from "../../session/append-plan.ts";
import { type Entry, isNode } from "../../session/entry.ts";
import { SessionDamagedError, show } from "../../session/errors.ts";
import { EMPTY_PATH, type PathSummary, type SessionHead, stepHead, stepPath } from "../../session/fold.ts";
import type { SessionHeader } from "../../session/header.ts";
import { type SettingsNode, SettingsTable } from "../../session/settings.ts";
import { Anchors } from "./anchors.ts";
import { type Anchor, type IndexReach, type LogIdentity, type LogPoint, TAIL_BYTES } from "./log-index.ts";
import { parseLine, type RawLine } from "./log-line.ts";
import { PathCache } from "./path-cache.ts";
import { countLines, readLines } from "./read-lines.ts";

const SPANS_MAX = 8;

/** What is known of a log does not fit its file any more: it must be loaded anew. */
export class StaleView extends Error {}

/** Thrown where the whole log must be read, as it was begun from its index. */
export class WholeLogNeeded extends Error {}

/**
 * What a log adds up to as far as it has been read. One that was read from its beginning is `whole`: it finds entries by
 * id and the paths of nodes. One that was begun from the index has the head, and reads ranges.
 */
export class LogState {
  readonly identity: LogIdentity;
  /** How far the index reaches; null where others may have written to it. */
  reach: IndexReach | null;
  #anchors!: Anchors;
  #settings: SettingsTable;
  #paths = new PathCache();
  /** The positions of all entries; null where the log was not read from its beginning. */
  #ids: Map<string, number> | null = null;
  #spans: { readonly from: number; readonly to: number; readonly entries: readonly Entry[] }[] = [];
  #head: SessionHead;
  #end: number;
  #lines: number;
  #tail: Buffer;

  constructor(identity: LogIdentity, point: LogPoint, reach: IndexReach | null) {
    this.identity = identity;
    this.reach = reach;
    this.#settings = tableOf(point.settings);
    this.#head = point.head;
    this.#end = point.end.offset;
    this.#lines = point.lines;
    this.#tail = point.tail;
    this.#startAtEnd();
  }

  get head(): SessionHead {
    return this.#head;
  }

  /** The position and the offset after the last whole line. */
  get end(): Anchor {
    return { seq: this.#head.version, offset: this.#end };
  }

  /** The offset after the last whole line. */
  get size(): number {
    return this.#end;
  }

  /** The last bytes of the last line, by which it is known again. */
  get tail(): Buffer {
    return this.#tail;
  }

  get anchors(): Anchors {
    return this.#anchors;
  }

  /** What an index says of the log's present end. */
  get point(): LogPoint {
    const settings = this.#settings.chainOf(this.#head.path.settings) ?? [];
    return { end: this.end, lines: this.#lines, tail: this.#tail, head: this.#head, settings };
  }

  /** Folds whole lines that follow. @throws {SessionDamagedError} at the first that cannot follow. */
  fold(lines: readonly RawLine[]): void {
    for (const line of lines) {
      const entries = parseLine(line, this.#head.version);
      if (typeof entries === "string") throw this.#damage(line, entries);
      let head = this.#head;
      for (const entry of entries) {
        if (this.#ids?.has(entry.id) ?? this.#paths.get(entry.id) !== undefined)
          throw this.#damage(line, `the id ${show(entry.id)} stands before it already`);
        const path = this.#pathAfter(head, entry, line);
        head = stepHead(head, entry, path, head.updatedAt);
        this.learn({ entry, path: isNode(entry) ? path : null });
      }
      this.advance(line, head);
    }
  }

  /** Takes over an entry of the next line. */
  learn({ entry, path }: StoredEntry): void {
    this.#ids?.set(entry.id, entry.seq);
    if (path === null) return;
    this.#paths.set(entry.id, path);
    this.#settings.add(path.settings);
  }

  /** Takes over the next line, whose entries were learned, with what it makes of the head. */
  advance({ offset, length, bytes }: RawLine, head: SessionHead): void {
    this.#anchors.add({ seq: this.#head.version, offset });
    this.#head = head;
    this.#end = offset + length;
    this.#lines += 1;
    // A copy, so that neither a long line nor the piece that was read stays in memory.
    this.#tail = Buffer.from(bytes.subarray(-TAIL_BYTES));
  }

  /** Takes over the header of another version that the log's first line has now. */
  raise(header: SessionHeader): void {
    this.#head = freezeDeep({ ...this.#head, header });
  }

  /** Sets the time of the last append, which the file system knows. */
  touch(updatedAt: string): void {
    this.#head = freezeDeep(this.#head.updatedAt === updatedAt ? this.#head : { ...this.#head, updatedAt });
  }

  /** Keeps only what a listing needs. */
  slim(): void {
    this.#settings = tableOf(this.point.settings);
    this.#spans = [];
    this.#startAtEnd();
  }

  /** The entry of that id, or null. @throws {WholeLogNeeded} */
  find(id: string): Entry | null {
    const seq = this.#seqOf(id);
    if (seq === undefined) return null;
    const entry = this.#entryAt(seq);
    if (entry?.id !== id) throw new StaleView("The log is not what it was.");
    return entry;
  }

  /** An entry and the path that it ends, or null. @throws {WholeLogNeeded} */
  findStored(id: string): StoredEntry | null {
    const entry = this.find(id);
    return entry === null ? null : { entry, path: this.pathOf(id) ?? null };
  }

  /** The path of the node of that id; null for a fact, undefined when there is no such entry. @throws {WholeLogNeeded} */
  pathOf(id: string | null): PathSummary | null | undefined {
    if (id === this.#head.leafId) return this.#head.path;
    const known = this.#paths.get(id);
    if (known !== undefined || id === null) return known;
    const seq = this.#seqOf(id);
    if (seq === undefined) return undefined;
    // The line that is being folded: its nodes are known.
    if (seq >= this.#head.version) return null;
    const found = this.find(id) as Entry;
    return isNode(found) ? this.#walk(found) : null;
  }

  /** What the `variables` node at a position holds. @throws {WholeLogNeeded} */
  readonly settingsAt = (seq: number): SettingsNode => {
    if (this.#ids === null && !this.#settings.has(seq)) throw new WholeLogNeeded();
    return this.#settings.at(seq);
  };

  /** Knows of what comes before the end only the head. */
  #startAtEnd(): void {
    this.#ids = this.#head.version === 0 ? new Map() : null;
    this.#anchors = new Anchors({ seq: 0, offset: this.identity.headerEnd });
    this.#anchors.add(this.end);
    this.#paths = new PathCache();
    if (this.#head.leafId !== null) this.#paths.set(this.#head.leafId, this.#head.path);
  }

  #seqOf(id: string): number | undefined {
    if (this.#ids === null) throw new WholeLogNeeded();
    return this.#ids.get(id);
  }

  /** The path that a step with this entry leads to. */
  #pathAfter(head: SessionHead, entry: Entry, line: RawLine): PathSummary {
    const pathOf = (id: string | null): PathSummary | null | undefined =>
      id === head.leafId ? head.path : this.pathOf(id);
    if (isNode(entry)) {
      const parent = pathOf(entry.parentId);
      if (parent === undefined) throw this.#damage(line, `its parent ${show(entry.parentId)} does not stand before it`);
      if (parent === null) throw this.#damage(line, `its parent ${show(entry.parentId)} is a fact, not a node`);
      return stepPath(parent, entry, head.header, this.settingsAt);
    }
    if (entry.type !== "leaf") return EMPTY_PATH;
    const target = pathOf(entry.targetId);
    if (target) return target;
    const problem = target === null ? "is a fact, not a node" : "does not stand before it";
    throw this.#damage(line, `it moves the leaf to ${show(entry.targetId)}, which ${problem}`);
  }

  /** The path of a node: steps down from the nearest ancestor whose path is known, or from the root. */
  #walk(last: Entry): PathSummary {
    const nodes = [last];
    let path: PathSummary | undefined;
    for (let node = last; ; nodes.push(node)) {
      path = this.#paths.get(node.parentId);
      if (path !== undefined) break;
      const parent = this.find(node.parentId as string);
      // A parent stands before its child, so that the walk ends.
      if (parent === null || parent.seq >= node.seq) throw new StaleView("The log is not what it was.");
      node = parent;
    }
    for (const entry of nodes.reverse()) {
      path = stepPath(path, entry, this.#head.header, this.settingsAt);
      this.#paths.set(entry.id, path);
    }
    return path;
  }

  #entryAt(seq: number): Entry | undefined {
    const from = this.#anchors.before(seq);
    const to = this.#anchors.after(seq + 1)?.offset ?? this.#end;
    const known = this.#spans.find((span) => span.from === from.offset && span.to === to);
    if (known !== undefined) return known.entries[seq - from.seq];
    const entries: Entry[] = [];
    const fd = openLog(this.identity);
    try {
      for (const lines of readLines(fd, from.offset, to)) {
        for (const line of lines) {
          const parsed = parseLine(line, from.seq + entries.length);
          if (typeof parsed === "string") throw damageAt(fd, this.identity, line, parsed);
          for (const entry of parsed) entries.push(entry);
        }
      }
    } finally {
      closeSync(fd);
    }
    this.#spans = [{ from: from.offset, to, entries }, ...this.#spans.slice(0, SPANS_MAX - 1)];
    return entries[seq - from.seq];
  }

  #damage({ offset }: RawLine, reason: string): SessionDamagedError {
    return new SessionDamagedError({ path: this.identity.places.log, line: this.#lines + 1, offset, reason });
  }
}

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

/** The error for a line that was met while reading, not while counting lines. */
export function damageAt(fd: number, { places }: LogIdentity, line: RawLine, reason: string): SessionDamagedError {
  const before = countLines(fd, line.offset);
  return new SessionDamagedError({ path: places.log, line: before + 1, offset: line.offset, reason });
}

function tableOf(nodes: readonly SettingsNode[]): SettingsTable {
  const table = new SettingsTable();
  for (const node of nodes) table.add(node);
  return table;
}
